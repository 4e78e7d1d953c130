#include "proto/args/arg_template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/orders.h"
#include "proto/shell.h"

#define INSIDE_MAX 256 /* bytes between braces */
#define ANYWHERE SIZE_MAX

enum form { FORM_WHOLE, FORM_NO_EXTENSION, FORM_BASE, FORM_DIRECTORY, FORM_BASE_NO_EXTENSION };

static const char *const form_texts[] = {
	[FORM_WHOLE] = "",	 [FORM_NO_EXTENSION] = ".",	  [FORM_BASE] = "/",
	[FORM_DIRECTORY] = "//", [FORM_BASE_NO_EXTENSION] = "/.",
};

/* A replacement string. */
struct place {
	enum { PLACE_NONE, PLACE_ALL, PLACE_ARG, PLACE_PARAM, PLACE_NUMBER, PLACE_SLOT } kind;
	int64_t index; /* ARG: 1 is the first, -1 the last; PARAM: from 0 */
	enum form form;
	size_t len; /* of its text */
};

static bool form_of(const char *text, enum form *ret_form)
{
	for (size_t i = 0; i < ARRAY_LEN(form_texts); i++)
		if (str_eq(form_texts[i], text)) {
			*ret_form = (enum form)i;
			return true;
		}
	return false;
}

/* "name" or "name/.": the name of a column and a form. */
static bool name_of(const struct strv *names, const char *inside, int64_t *ret_index,
		    enum form *ret_form)
{
	for (size_t i = 0; names && i < names->count; i++) {
		const char *name = names->items[i];
		if (*name && str_starts(inside, name) && form_of(inside + strlen(name), ret_form)) {
			*ret_index = (int64_t)i;
			return true;
		}
	}
	return false;
}

static bool number_of(const char *inside, int64_t *ret_index, enum form *ret_form)
{
	const char *digits = inside + (*inside == '-');
	size_t len = strspn(digits, "0123456789");
	if (len == 0 || len > 6 || !form_of(digits + len, ret_form))
		return false;
	*ret_index = 0;
	for (size_t i = 0; i < len; i++)
		*ret_index = *ret_index * 10 + (digits[i] - '0');
	if (*inside == '-')
		*ret_index = -*ret_index;
	return *ret_index != 0;
}

static struct place place_inside(const struct arg_template *template, const char *inside)
{
	struct place place = { .kind = PLACE_NONE };
	if (str_eq(inside, "#"))
		place.kind = PLACE_NUMBER;
	else if (str_eq(inside, "%"))
		place.kind = PLACE_SLOT;
	else if (name_of(template->param_names, inside, &place.index, &place.form))
		place.kind = PLACE_PARAM;
	else if (name_of(template->names, inside, &place.index, &place.form)) {
		place.kind = PLACE_ARG;
		place.index++;
	} else if (number_of(inside, &place.index, &place.form))
		place.kind = PLACE_ARG;
	else if (form_of(inside, &place.form) && (*inside || !template->replace))
		place.kind = PLACE_ALL;
	return place;
}

/* The place that begins at `text`. */
static struct place place_at(const struct arg_template *template, const char *text)
{
	char inside[INSIDE_MAX];
	const char *replace = template->replace;
	if (replace && str_starts(text, replace))
		return (struct place){ .kind = PLACE_ALL, .len = strlen(replace) };
	size_t len = *text == '{' ? strcspn(text + 1, "{}") : 0;
	if (*text != '{' || text[1 + len] != '}' || len >= sizeof(inside))
		return (struct place){ .kind = PLACE_NONE };
	memcpy(inside, text + 1, len);
	inside[len] = '\0';
	struct place place = place_inside(template, inside);
	place.len = len + 2;
	return place;
}

int arg_template_check(const struct arg_template *template, struct err *err)
{
	if (strchr(template->text, ORDER_SLOT_MARK))
		return err_set(err, EINVAL, "the command contains the byte 1");
	if (template->replace && !*template->replace)
		return err_set(err, EINVAL, "the replacement string (-I) is empty");
	const char *perl = strstr(template->text, "{=");
	if (perl && strstr(perl, "=}"))
		return err_set(err, EINVAL,
			       "Perl expressions ({= ... =}) are not supported: use the shell");
	return 0;
}

static bool text_has(const struct arg_template *template, const char *text, size_t len,
		     bool only_all)
{
	for (const char *end = text + len; text < end; text++) {
		struct place place = place_at(template, text);
		bool counts = place.kind != PLACE_NONE && place.kind != PLACE_PARAM;
		if (only_all ? place.kind == PLACE_ALL : counts)
			return true;
	}
	return false;
}

bool arg_template_has_place(const struct arg_template *template)
{
	return text_has(template, template->text, strlen(template->text), false);
}

/* ---- filling in ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Length without the extension of the last component. */
static size_t stem_len(const char *path)
{
	const char *dot = strrchr(base_name(path), '.');
	return dot ? (size_t)(dot - path) : strlen(path);
}

static char *apply_form(const char *arg, enum form form)
{
	const char *base = base_name(arg);
	switch (form) {
	case FORM_NO_EXTENSION:
		return mem_strndup(arg, stem_len(arg));
	case FORM_BASE:
		return mem_strdup(base);
	case FORM_BASE_NO_EXTENSION:
		return mem_strndup(base, stem_len(base));
	case FORM_DIRECTORY:
		return base == arg ? mem_strdup(".")
				   : mem_strndup(arg, (size_t)MAX(base - arg - 1, 1));
	case FORM_WHOLE:
		break;
	}
	return mem_strdup(arg);
}

static void put_arg(struct buf *out, const char *arg, enum form form, bool raw)
{
	AUTO_FREE char *text = apply_form(arg, form);
	if (raw)
		buf_append_str(out, text);
	else
		shell_quote(out, text);
}

/* `only`: the one argument that {} stands for; ANYWHERE: all. */
static void put_place(const struct arg_template *template, const struct place *place,
		      const struct arg_values *values, size_t only, struct buf *out)
{
	size_t count = values->row->count;
	int64_t index = place->index < 0 ? (int64_t)count + place->index : place->index - 1;
	switch (place->kind) {
	case PLACE_NUMBER:
		buf_printf(out, "%zu", values->number);
		break;
	case PLACE_SLOT:
		buf_append_char(out, ORDER_SLOT_MARK);
		break;
	case PLACE_PARAM:
		if (values->params && (size_t)place->index < values->params->count)
			put_arg(out, values->params->args[place->index], place->form, true);
		break;
	case PLACE_ARG:
		if (index >= 0 && (size_t)index < count)
			put_arg(out, values->row->args[index], place->form, template->raw);
		break;
	case PLACE_ALL:
		for (size_t i = 0; i < count; i++) {
			if (only != ANYWHERE && i != only)
				continue;
			if (i > 0 && only == ANYWHERE)
				buf_append_char(out, ' ');
			put_arg(out, values->row->args[i], place->form, template->raw);
		}
		break;
	case PLACE_NONE:
		break;
	}
}

static bool put_text(const struct arg_template *template, const char *text, size_t len,
		     const struct arg_values *values, size_t only, struct buf *out)
{
	bool uses_slot = false;
	for (const char *end = text + len; text < end;) {
		struct place place = place_at(template, text);
		if (place.kind == PLACE_NONE) {
			buf_append_char(out, *text++);
			continue;
		}
		put_place(template, &place, values, only, out);
		uses_slot = uses_slot || place.kind == PLACE_SLOT;
		text += place.len;
	}
	return uses_slot;
}

/* Word by word: one with {} in it comes once for every argument. */
static bool put_context(const struct arg_template *template, const struct arg_values *values,
			struct buf *out)
{
	bool uses_slot = false;
	for (const char *p = template->text; *p;) {
		size_t blanks = strspn(p, " \t\n"), len = strcspn(p + blanks, " \t\n");
		buf_append(out, p, blanks);
		p += blanks;
		bool repeats = text_has(template, p, len, true);
		for (size_t i = 0; i < (repeats ? values->row->count : 1); i++) {
			if (i > 0)
				buf_append_char(out, ' ');
			uses_slot |=
				put_text(template, p, len, values, repeats ? i : ANYWHERE, out);
		}
		p += len;
	}
	return uses_slot;
}

bool arg_template_expand(const struct arg_template *template, const struct arg_values *values,
			 struct buf *out)
{
	bool uses_slot = template->context
				 ? put_context(template, values, out)
				 : put_text(template, template->text, strlen(template->text),
					    values, ANYWHERE, out);
	if (template->closed || values->row->count == 0 || arg_template_has_place(template))
		return uses_slot;
	if (buf_len(out) > 0)
		buf_append_char(out, ' ');
	put_place(template, &(struct place){ .kind = PLACE_ALL }, values, ANYWHERE, out);
	return uses_slot;
}
