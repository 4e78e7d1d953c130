#include "core/host/hostlist.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define NOT_IN_NAMES "[] \t\r\n"

/* "08-11", or "7", which is a range of one. */
struct range {
	uint64_t low, high;
	int width;
};

/* A bracket, and the text before it. */
struct bracket {
	const char *before;
	size_t before_len;
	struct range *ranges;
	size_t count, cap;
	uint64_t size;	/* how many numbers */
	size_t at;	/* the current range, */
	uint64_t value; /* and the current number in it */
};

/* One item of the list: a name, or a pattern for many. */
struct pattern {
	struct bracket brackets[HOSTLIST_BRACKETS_MAX];
	size_t count;
	const char *after; /* the last bracket */
	size_t after_len;
	uint64_t names;
};

static void pattern_done(struct pattern *pattern)
{
	for (size_t i = 0; i < pattern->count; i++)
		free(pattern->brackets[i].ranges);
}

static int wrong(struct err *err, const char *what, const char *text, size_t len)
{
	return err_set(err, EINVAL, "'%.*s': %s", (int)MIN(len, 64), text, what);
}

/* ---- reading ---- */

static int parse_number(const char *text, size_t len, uint64_t *ret_value)
{
	char digits[HOSTLIST_DIGITS_MAX + 1];
	if (len == 0 || len > HOSTLIST_DIGITS_MAX)
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	return strspn(digits, "0123456789") == len ? str_to_u64(digits, ret_value) : -EINVAL;
}

static int parse_range(const char *text, size_t len, struct range *ret_range, struct err *err)
{
	const char *dash = memchr(text, '-', len);
	size_t low_len = dash ? (size_t)(dash - text) : len;
	const char *high = dash ? dash + 1 : text;
	size_t high_len = dash ? len - low_len - 1 : len;
	struct range range = { .width = (int)low_len };
	if (parse_number(text, low_len, &range.low) < 0 ||
	    parse_number(high, high_len, &range.high) < 0)
		return wrong(err, "not a number or a range of numbers", text, len);
	if (range.low > range.high)
		return wrong(err, "a range that ends before it begins", text, len);
	if (range.high - range.low >= HOSTLIST_HOSTS_MAX)
		return wrong(err, "too many hosts", text, len);
	*ret_range = range;
	return 0;
}

/* What is between '[' and ']'. */
static int parse_bracket(const char *text, size_t len, struct bracket *bracket, struct err *err)
{
	const char *at = text, *end = text + len;
	for (;;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t piece_len = (size_t)((comma ? comma : end) - at);
		ARRAY_RESERVE(bracket->ranges, bracket->count, bracket->cap);
		struct range *range = &bracket->ranges[bracket->count];
		int r = parse_range(at, piece_len, range, err);
		if (r < 0)
			return r;
		bracket->size += range->high - range->low + 1;
		bracket->count++;
		if (!comma)
			return 0;
		at = comma + 1;
	}
}

/* Multiplies without an overflow: both factors are within the limit. */
static int count_names(struct pattern *pattern, const struct bracket *bracket)
{
	if (bracket->size > HOSTLIST_HOSTS_MAX)
		return -EINVAL;
	pattern->names *= bracket->size;
	return pattern->names > HOSTLIST_HOSTS_MAX ? -EINVAL : 0;
}

static int parse_pattern(const char *text, size_t len, struct pattern *pattern, struct err *err)
{
	const char *at = text, *end = text + len;
	pattern->names = 1;
	for (;;) {
		const char *open = memchr(at, '[', (size_t)(end - at));
		size_t plain = (size_t)((open ? open : end) - at);
		for (size_t i = 0; i < plain; i++)
			if (strchr(NOT_IN_NAMES, at[i]))
				return wrong(err, "not the name of a host", text, len);
		if (!open) {
			pattern->after = at;
			pattern->after_len = plain;
			return 0;
		}
		const char *close = memchr(open, ']', (size_t)(end - open));
		if (!close)
			return wrong(err, "a bracket that is not closed", text, len);
		if (pattern->count == HOSTLIST_BRACKETS_MAX)
			return wrong(err, "too many brackets", text, len);
		struct bracket *bracket = &pattern->brackets[pattern->count++];
		*bracket = (struct bracket){ .before = at, .before_len = plain };
		int r = parse_bracket(open + 1, (size_t)(close - open - 1), bracket, err);
		if (r < 0)
			return r;
		if (count_names(pattern, bracket) < 0)
			return wrong(err, "too many hosts", text, len);
		at = close + 1;
	}
}

/* ---- writing ---- */

static void rewind_bracket(struct bracket *bracket)
{
	bracket->at = 0;
	bracket->value = bracket->ranges[0].low;
}

/* The next number; false: it has begun again. */
static bool advance(struct bracket *bracket)
{
	if (bracket->value < bracket->ranges[bracket->at].high) {
		bracket->value++;
		return true;
	}
	if (++bracket->at < bracket->count) {
		bracket->value = bracket->ranges[bracket->at].low;
		return true;
	}
	rewind_bracket(bracket);
	return false;
}

/* The next name: the last bracket first, then from the first on. */
static void advance_pattern(struct pattern *pattern)
{
	size_t last = pattern->count - 1;
	if (advance(&pattern->brackets[last]))
		return;
	for (size_t i = 0; i < last; i++)
		if (advance(&pattern->brackets[i]))
			return;
}

static int append_name(const struct pattern *pattern, struct strv *names, struct err *err)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	for (size_t i = 0; i < pattern->count; i++) {
		const struct bracket *bracket = &pattern->brackets[i];
		buf_append(&name, bracket->before, bracket->before_len);
		buf_printf(&name, "%0*" PRIu64, bracket->ranges[bracket->at].width, bracket->value);
	}
	buf_append(&name, pattern->after, pattern->after_len);
	if (buf_len(&name) > HOSTLIST_NAME_MAX)
		return wrong(err, "longer than the name of a host may be", buf_str(&name),
			     buf_len(&name));
	strv_take(names, buf_take_str(&name));
	return 0;
}

static int append_names(struct pattern *pattern, size_t limit, struct strv *names, struct err *err)
{
	for (size_t i = 0; i < pattern->count; i++)
		rewind_bracket(&pattern->brackets[i]);
	for (uint64_t n = 0; n < pattern->names && names->count < limit; n++) {
		int r = append_name(pattern, names, err);
		if (r < 0)
			return r;
		if (pattern->count)
			advance_pattern(pattern);
	}
	return 0;
}

/* ---- the list ---- */

/* The length of the first item: up to a comma outside of brackets. */
static size_t item_len(const char *text)
{
	bool inside = false;
	size_t len = 0;
	for (; text[len] && (inside || text[len] != ','); len++)
		inside = text[len] == '[' || (inside && text[len] != ']');
	return len;
}

static int expand_item(const char *text, size_t len, size_t limit, struct strv *names,
		       uint64_t *count, struct err *err)
{
	AUTO(pattern_done) struct pattern pattern = { .count = 0 };
	if (len == 0) /* as Slurm: "a,,b" */
		return 0;
	int r = parse_pattern(text, len, &pattern, err);
	if (r < 0)
		return r;
	*count += pattern.names;
	if (*count > HOSTLIST_HOSTS_MAX)
		return wrong(err, "too many hosts", text, len);
	return append_names(&pattern, limit, names, err);
}

int hostlist_expand(const char *text, size_t limit, struct strv *ret_names, uint32_t *ret_count,
		    struct err *err)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	uint64_t count = 0;
	for (const char *at = text;;) {
		size_t len = item_len(at);
		int r = expand_item(at, len, limit, &names, &count, err);
		if (r < 0)
			return r;
		if (!at[len])
			break;
		at += len + 1;
	}
	if (count == 0)
		return err_set(err, EINVAL, "the list of hosts is empty");
	strv_add_all(ret_names, strv_argv(&names));
	*ret_count = (uint32_t)count;
	return 0;
}
