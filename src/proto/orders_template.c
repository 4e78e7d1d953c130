/* Orders from a command template and arguments: cmd ::: a b ::: x y. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/orders.h"
#include "proto/shell.h"

#define SOURCES_MAX 16
#define SEPARATOR ":::"

struct source {
	char *const *args;
	size_t count;
};

struct template
{
	char *text;
	bool has_place; /* {} or similar: nothing is appended */
	struct source sources[SOURCES_MAX];
	size_t source_count;
	size_t combinations;
};

/* A replacement string in braces. */
struct place {
	enum { PLACE_NONE, PLACE_ARG, PLACE_NUMBER, PLACE_SLOT } kind;
	size_t source; /* 1-based; 0: all */
	char form;     /* 0, '.', '/', 'd' (//), 'b' (/.) */
	size_t len;    /* of the text, braces included */
};

bool orders_is_template(int argc, char *const *argv)
{
	for (int i = 0; i < argc; i++)
		if (str_eq(argv[i], SEPARATOR))
			return true;
	return false;
}

static bool form_of(const char *text, char *ret_form)
{
	static const struct {
		const char *text;
		char form;
	} forms[] = { { "", 0 }, { ".", '.' }, { "/", '/' }, { "//", 'd' }, { "/.", 'b' } };
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (str_eq(forms[i].text, text)) {
			*ret_form = forms[i].form;
			return true;
		}
	return false;
}

/* The place that begins at `text`, which points to '{'. */
static struct place place_at(const char *text)
{
	struct place place = { .kind = PLACE_NONE };
	char inside[8];
	size_t len = strcspn(text + 1, "{}");
	if (text[1 + len] != '}' || len >= sizeof(inside))
		return place;
	memcpy(inside, text + 1, len);
	inside[len] = '\0';
	place.len = len + 2;
	if (str_eq(inside, "#") || str_eq(inside, "%")) {
		place.kind = *inside == '#' ? PLACE_NUMBER : PLACE_SLOT;
		return place;
	}
	size_t digits = strspn(inside, "0123456789");
	for (size_t i = 0; i < digits; i++)
		place.source = place.source * 10 + (size_t)(inside[i] - '0');
	if ((digits == 0 || place.source > 0) && form_of(inside + digits, &place.form))
		place.kind = PLACE_ARG;
	return place;
}

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

static char *apply_form(const char *arg, char form)
{
	const char *base = base_name(arg);
	switch (form) {
	case '.':
		return mem_strndup(arg, stem_len(arg));
	case '/':
		return mem_strdup(base);
	case 'b':
		return mem_strndup(base, stem_len(base));
	case 'd':
		return base == arg ? mem_strdup(".")
				   : mem_strndup(arg, (size_t)MAX(base - arg - 1, 1));
	default:
		return mem_strdup(arg);
	}
}

/* The argument of each source for combination `index`: the last source changes fastest. */
static void pick_args(const struct template *template, size_t index, const char *args[SOURCES_MAX])
{
	for (size_t i = template->source_count; i-- > 0;) {
		args[i] = template->sources[i].args[index % template->sources[i].count];
		index /= template->sources[i].count;
	}
}

static void put_place(struct buf *out, const struct template *template, const struct place *place,
		      const char *const *args, size_t number)
{
	if (place->kind == PLACE_NUMBER) {
		buf_printf(out, "%zu", number);
		return;
	}
	if (place->kind == PLACE_SLOT) {
		buf_append_char(out, ORDER_SLOT_MARK);
		return;
	}
	size_t first = place->source ? place->source - 1 : 0;
	size_t end = place->source ? place->source : template->source_count;
	for (size_t i = first; i < end && i < template->source_count; i++) {
		AUTO_FREE char *text = apply_form(args[i], place->form);
		if (i > first)
			buf_append_char(out, ' ');
		shell_quote(out, text);
	}
}

static char *expand(const struct template *template, const char *const *args, size_t number,
		    bool *ret_uses_slot)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	*ret_uses_slot = false;
	for (const char *p = template->text; *p;) {
		struct place place = *p == '{' ? place_at(p) : (struct place){ .kind = PLACE_NONE };
		if (place.kind == PLACE_NONE) {
			buf_append_char(&out, *p++);
			continue;
		}
		put_place(&out, template, &place, args, number);
		*ret_uses_slot = *ret_uses_slot || place.kind == PLACE_SLOT;
		p += place.len;
	}
	if (!template->has_place) {
		if (buf_len(&out) > 0)
			buf_append_char(&out, ' ');
		put_place(&out, template, &(struct place){ .kind = PLACE_ARG }, args, number);
	}
	return buf_take_str(&out);
}

static bool has_place(const char *text)
{
	for (const char *p = text; (p = strchr(p, '{')); p++)
		if (place_at(p).kind == PLACE_ARG)
			return true;
	return false;
}

static int read_sources(struct template *template, int argc, char *const *argv, struct err *err)
{
	template->combinations = 1;
	for (int i = 0; i < argc;) {
		if (template->source_count == SOURCES_MAX)
			return err_set(err, E2BIG, "more than %d lists of arguments", SOURCES_MAX);
		struct source *source = &template->sources[template->source_count++];
		source->args = argv + ++i;
		for (; i < argc && !str_eq(argv[i], SEPARATOR); i++) {
			if (strchr(argv[i], ORDER_SLOT_MARK))
				return err_set(err, EINVAL, "an argument contains the byte 1");
			source->count++;
		}
		template->combinations *= source->count;
		if (template->combinations > ORDERS_MAX)
			return err_set(err, E2BIG, "more than %d orders", ORDERS_MAX);
	}
	return 0;
}

int orders_add_template(struct orders *orders, int argc, char *const *argv, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct template template = { .text = NULL };
	int words = 0;
	for (; words < argc && !str_eq(argv[words], SEPARATOR); words++) {
		if (words > 0)
			buf_append_char(&text, ' ');
		buf_append_str(&text, argv[words]);
	}
	int r = read_sources(&template, argc - words, argv + words, err);
	if (r < 0)
		return r;
	AUTO_FREE char *template_text = buf_take_str(&text);
	template.text = template_text;
	template.has_place = has_place(template_text);
	if (strchr(template_text, ORDER_SLOT_MARK))
		return err_set(err, EINVAL, "the command contains the byte 1");
	for (size_t i = 0; i < template.combinations; i++) {
		struct order *order = orders_append(orders);
		order->line = (uint32_t)orders->count;
		const char *args[SOURCES_MAX];
		pick_args(&template, i, args);
		/* Without words the arguments are the commands. */
		if (*template.text) {
			order->shell = expand(&template, args, orders->count, &order->uses_slot);
			for (size_t k = 0; k < template.source_count; k++)
				strv_add(&order_extra(order)->args, args[k]);
		} else {
			order->shell = mem_strdup(args[0]);
		}
		order_close(order);
	}
	return 0;
}
