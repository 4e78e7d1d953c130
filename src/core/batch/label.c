#include "core/batch/label.h"

#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/str.h"

bool label_name_ok(const char *name)
{
	size_t len = strlen(name);
	return len > 0 && len <= LABEL_NAME_MAX && strcspn(name, "=,!*? \t\r\n") == len;
}

/* ---- values ---- */

static const struct {
	const char *name;
	size_t offset; /* of a text in struct label_of */
} texts[] = {
	{ "id", offsetof(struct label_of, id) },
	{ "program", offsetof(struct label_of, program) },
	{ "source", offsetof(struct label_of, source) },
	{ "group", offsetof(struct label_of, group) },
	{ "variant", offsetof(struct label_of, variant) },
};

static const char *text_of(const struct label_of *of, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (str_eq(texts[i].name, name))
			return *(const char *const *)((const char *)of + texts[i].offset);
	for (size_t i = 0; of->arg_names && i < of->arg_names->count; i++)
		if (str_eq(of->arg_names->items[i], name) && i < of->args->count)
			return of->args->items[i];
	uint64_t number;
	if (of->args && str_to_u64(name, &number) == 0 && number >= 1 && number <= of->args->count)
		return of->args->items[number - 1];
	return NULL;
}

bool label_value(const struct label_of *of, const char *name, struct buf *ret_value)
{
	const char *text = of->labels ? env_get(of->labels, name) : NULL;
	if (!text)
		text = text_of(of, name);
	buf_clear(ret_value);
	if (text)
		buf_append_str(ret_value, text);
	else if (str_eq(name, "cores"))
		buf_printf(ret_value, "%d", MAX(of->cores, 1));
	return buf_len(ret_value) > 0;
}

const char *label_shown(const char *label)
{
	size_t digits = strspn(label, "0123456789");
	return digits > 0 && label[digits] == '=' ? label + digits + 1 : label;
}

void label_format(const struct strv *labels, struct buf *out)
{
	for (size_t i = 0; i < labels->count; i++) {
		buf_append_str(out, i ? ", " : "");
		buf_append_str(out, label_shown(labels->items[i]));
	}
}

/* ---- filters ---- */

/* `*` matches as little as possible at first; after a mismatch it takes one byte more. */
static bool matches(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;
	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			retry = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++retry;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

/* The name of a term and what follows it: "=PATTERN" or "!=PATTERN". */
static char *name_of(const char *term, const char **ret_rest)
{
	size_t len = strcspn(term, "!=");
	*ret_rest = term + len;
	return mem_strndup(term, len);
}

int label_filter_add(struct strv *filter, const char *term, struct err *err)
{
	const char *rest;
	AUTO_FREE char *name = name_of(term, &rest);
	if (!label_name_ok(name) || !(str_starts(rest, "=") || str_starts(rest, "!=")))
		return err_set(err, EINVAL, "'%s' is not LABEL=PATTERN or LABEL!=PATTERN", term);
	strv_add(filter, term);
	return 0;
}

bool label_filter_holds(const struct strv *filter, const struct label_of *of)
{
	AUTO(buf_done) struct buf value = BUF_INIT;
	for (size_t i = 0; i < filter->count; i++) {
		const char *rest;
		AUTO_FREE char *name = name_of(filter->items[i], &rest);
		bool negated = *rest == '!';
		label_value(of, name, &value);
		if (matches(rest + 1 + negated, buf_str(&value)) == negated)
			return false;
	}
	return true;
}
