#include "proto/args/fill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/args/words.h"
#include "proto/shell.h"

/* ---- templates ---- */

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

/* Refuses what has a meaning in GNU parallel and none here. */
static int check_template(const struct arg_template *template, struct err *err)
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

/* {#} and {%} included: then no arguments are appended. */
static bool has_place(const struct arg_template *template)
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
	if (template->closed || values->row->count == 0 || has_place(template))
		return uses_slot;
	if (buf_len(out) > 0)
		buf_append_char(out, ' ');
	put_place(template, &(struct place){ .kind = PLACE_ALL }, values, ANYWHERE, out);
	return uses_slot;
}

/* ---- filling ---- */

/* What stays the same for all orders of a filling. */
struct filler {
	const struct arg_filling *filling;
	struct strv names, param_names;
	struct arg_template templates[3]; /* command, tag, output; without text: none */
	size_t rows, base_len;
};

static void filler_done(struct filler *filler)
{
	strv_done(&filler->names);
	strv_done(&filler->param_names);
}

static int filler_init(struct filler *filler, const struct arg_filling *filling, struct err *err)
{
	const char *plain[] = { filling->tag, filling->output };
	*filler = (struct filler){ .filling = filling, .rows = 1 };
	if (filling->sources)
		arg_sources_names(filling->sources, &filler->names);
	if (filling->params)
		arg_sources_names(filling->params, &filler->param_names);
	filler->templates[0] = filling->command;
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		filler->templates[i + 1] =
			(struct arg_template){ .text = plain[i], .raw = true, .closed = true };
	for (size_t i = 0; i < ARRAY_LEN(filler->templates); i++) {
		struct arg_template *template = &filler->templates[i];
		template->names = &filler->names;
		template->param_names = &filler->param_names;
		int r = template->text ? check_template(template, err) : 0;
		if (r < 0)
			return r;
	}
	return filling->sources ? arg_sources_rows(filling->sources, &filler->rows, err) : 0;
}

/* ---- how many rows an order takes ---- */

static size_t expanded_len(const struct filler *filler, const struct arg_row *row)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct arg_values values = { .row = row, .number = ORDERS_MAX };
	arg_template_expand(&filler->templates[0], &values, &text);
	return buf_len(&text);
}

/* What a row adds to the line, without the blank before it where there is a place. */
static size_t row_cost(const struct filler *filler, size_t index)
{
	AUTO(arg_row_done) struct arg_row row = ARG_ROW_INIT;
	arg_sources_row(filler->filling->sources, index, &row);
	size_t len = expanded_len(filler, &row);
	return len > filler->base_len ? len - filler->base_len : 0;
}

/* The number of rows from `first` on for one order. */
static size_t take_rows(struct filler *filler, size_t first, struct err *err)
{
	const struct arg_filling *filling = filler->filling;
	size_t left = filler->rows - first, limit = filling->max_rows ? filling->max_rows : left;
	if (filling->fill == ARG_FILL_ROW)
		return MIN(left, filling->max_rows ? filling->max_rows : 1);
	if (filling->fill == ARG_FILL_SPREAD)
		limit = MIN(limit, (filler->rows + filling->jobs - 1) / MAX(filling->jobs, 1));
	size_t room = filling->max_chars ? filling->max_chars : ARG_LINE_MAX, count = 0;
	size_t used = filler->base_len + 1; /* and its end */
	bool placed = has_place(&filler->templates[0]);
	for (limit = MIN(limit, left); count < limit; count++) {
		size_t cost = row_cost(filler, first + count) + (placed && count > 0);
		if (used + cost > room)
			break;
		used += cost;
	}
	if (count == 0)
		err_set(err, E2BIG, "argument %zu does not fit into a command of %zu bytes",
			first + 1, room);
	return count;
}

/* ---- orders ---- */

static void join_raw(const struct arg_row *row, struct buf *out)
{
	for (size_t i = 0; i < row->count; i++) {
		buf_append_str(out, i ? " " : "");
		buf_append_str(out, row->args[i]);
	}
}

static char *expand(const struct arg_template *template, const struct arg_values *values,
		    bool *ret_uses_slot)
{
	struct buf text = BUF_INIT;
	if (*template->text) {
		*ret_uses_slot = arg_template_expand(template, values, &text);
	} else {
		*ret_uses_slot = false;
		join_raw(values->row, &text);
	}
	return buf_take_str(&text);
}

static bool has_names(const struct filler *filler)
{
	for (size_t i = 0; i < filler->names.count; i++)
		if (*filler->names.items[i])
			return true;
	return filler->param_names.count > 0;
}

static void note_args(struct order *order, const struct filler *filler,
		      const struct arg_values *values)
{
	struct order_extra *extra = order_extra(order);
	const struct arg_row *rows[] = { values->params, values->row };
	const struct strv *names[] = { &filler->param_names, &filler->names };
	bool named = has_names(filler);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; rows[i] && k < rows[i]->count; k++) {
			strv_add(&extra->args, rows[i]->args[k]);
			if (named)
				strv_add(&extra->arg_names,
					 k < names[i]->count ? names[i]->items[k] : "");
		}
}

static void fill_order(struct order *order, const struct filler *filler,
		       const struct arg_values *values)
{
	bool unused;
	order->line = (uint32_t)values->number;
	order->shell = expand(&filler->templates[0], values, &order->uses_slot);
	bool has_args = (values->row->count > 0 && filler->filling->sources) || values->params;
	if (has_args && *filler->templates[0].text)
		note_args(order, filler, values);
	if (filler->templates[1].text)
		order_extra(order)->tag = expand(&filler->templates[1], values, &unused);
	if (filler->templates[2].text)
		order_extra(order)->output_path = expand(&filler->templates[2], values, &unused);
	order_close(order);
}

static int add_order(struct orders *orders, const struct filler *filler,
		     const struct arg_values *values, struct err *err)
{
	struct arg_values numbered = *values;
	if (orders->count >= ORDERS_MAX)
		return err_set(err, E2BIG, "more than %d orders", ORDERS_MAX);
	numbered.number = orders->count + 1;
	fill_order(orders_append(orders), filler, &numbered);
	return 0;
}

int orders_refill(struct orders *orders, size_t index, const struct arg_filling *filling,
		  uint64_t number, struct err *err)
{
	AUTO(filler_done) struct filler filler;
	int r = filler_init(&filler, filling, err);
	if (r < 0)
		return r;
	struct order *order = orders_renew(orders, index);
	const char *nothing = "";
	struct arg_row row = { .args = &nothing, .count = 1 };
	fill_order(order, &filler, &(struct arg_values){ .row = &row, .number = (size_t)number });
	order_set_copy(order, number);
	return 0;
}

static int add_orders(struct orders *orders, struct filler *filler, const struct arg_row *params,
		      struct err *err)
{
	for (size_t first = 0, count; first < filler->rows; first += count) {
		AUTO(arg_row_done) struct arg_row row = ARG_ROW_INIT;
		count = take_rows(filler, first, err);
		if (count == 0)
			return -E2BIG;
		for (size_t i = 0; i < count && filler->filling->sources && !filler->filling->drop;
		     i++)
			arg_sources_row(filler->filling->sources, first + i, &row);
		struct arg_values values = { .row = &row, .params = params };
		int r = add_order(orders, filler, &values, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int orders_add_filled(struct orders *orders, const struct arg_filling *filling, struct err *err)
{
	AUTO(filler_done) struct filler filler;
	size_t sets = 1;
	int r = filler_init(&filler, filling, err);
	if (r >= 0 && filling->params)
		r = arg_sources_rows(filling->params, &sets, err);
	filler.base_len = r >= 0 ? expanded_len(&filler, &ARG_ROW_INIT) : 0;
	for (size_t i = 0; r >= 0 && i < sets; i++) {
		AUTO(arg_row_done) struct arg_row params = ARG_ROW_INIT;
		if (filling->params)
			arg_sources_row(filling->params, i, &params);
		r = add_orders(orders, &filler, filling->params ? &params : NULL, err);
	}
	return r;
}

int orders_add_template(struct orders *orders, int argc, char *const *argv, struct err *err)
{
	struct arg_words words;
	AUTO(arg_sources_done) struct arg_sources sources = ARG_SOURCES_INIT;
	const struct arg_cutter whole = { .format = { .end = '\n' } };
	int r = arg_words_parse(&words, argc, argv, err);
	for (size_t i = 0; r >= 0 && i < words.list_count; i++)
		r = words.lists[i].files
			    ? err_set(err, EINVAL, "files of arguments (::::) do not work here")
			    : arg_sources_add_words(&sources, &words.lists[i], &whole, err);
	if (r < 0)
		return r;
	AUTO_FREE char *command = arg_words_command(&words, false);
	struct arg_filling filling = { .command = { .text = command }, .sources = &sources };
	return orders_add_filled(orders, &filling, err);
}
