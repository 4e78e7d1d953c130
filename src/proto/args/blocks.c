#include "proto/args/blocks.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/args/regex.h"

#define HEX_DIGITS 2

/* ---- rules ---- */

static bool take_hex(const char *text, struct buf *out)
{
	AUTO_FREE char *digits = mem_strndup(text, HEX_DIGITS);
	uint64_t value;
	if (strlen(digits) != HEX_DIGITS || str_hex_to_u64(digits, &value) < 0)
		return false;
	buf_append_char(out, (char)value);
	return true;
}

/* "\n", "\x1f": what the backslash says. Any other character stands for itself. */
static void unescape(const char *text, struct buf *out)
{
	static const char names[] = "abefnrtv0", bytes[] = "\a\b\033\f\n\r\t\v";
	for (const char *p = text; *p; p++) {
		if (*p != '\\' || !p[1]) {
			buf_append_char(out, *p);
			continue;
		}
		const char *name = strchr(names, *++p);
		if (name)
			buf_append_char(out, bytes[name - names]);
		else if (*p == 'x' && take_hex(p + 1, out))
			p += HEX_DIGITS;
		else
			buf_append_char(out, *p);
	}
}

/* `given` is what the user wrote. */
static int compile(regex_t *regex, const char *text, const char *option, const char *given,
		   struct err *err)
{
	int r = regex_compile(regex, text, REG_NEWLINE, NULL, err);
	return r < 0 ? err_wrap(err, "option '--%s': '%s' is not a regular expression", option,
				given)
		     : 0;
}

/* "(end)(start)", so that the first group says where to cut. */
static int init_border(struct block_cutter *cutter, struct err *err)
{
	const struct block_rules *rules = &cutter->rules;
	bool neither = !rules->recstart && !rules->recend;
	const char *start = rules->recstart ? rules->recstart : "";
	const char *end = rules->recend ? rules->recend : neither ? "\\n" : "";
	unescape(start, &cutter->recstart);
	unescape(end, &cutter->recend);
	bool empty = buf_len(&cutter->recstart) + buf_len(&cutter->recend) == 0;
	if (empty && (rules->records || rules->regexp))
		return err_set(err, EINVAL,
			       "without --recstart and --recend there are no records "
			       "to count");
	if (!rules->regexp)
		return 0;
	AUTO_FREE char *both = mem_printf("(%s)(%s)", end, start);
	int r = compile(&cutter->border, both, rules->recend ? "recend" : "recstart",
			rules->recend ? end : start, err);
	cutter->has_border_regex = r == 0;
	return r;
}

static int init_header(struct block_cutter *cutter, struct err *err)
{
	const char *header = cutter->rules.header;
	if (!header)
		return 0;
	cutter->header_due = true;
	if (str_eq(header, ":"))
		cutter->head_lines = 1;
	else if (str_to_u64(header, &cutter->head_lines) < 0)
		cutter->head_lines = 0;
	else if (cutter->head_lines == 0)
		cutter->header_due = false;
	if (cutter->head_lines > 0 || !cutter->header_due)
		return 0;
	int r = compile(&cutter->head, header, "header", header, err);
	cutter->has_head_regex = r == 0;
	return r;
}

int block_cutter_init(struct block_cutter *cutter, const struct block_rules *rules, struct err *err)
{
	*cutter = (struct block_cutter){ .rules = *rules };
	cutter->size = rules->size ? rules->size : BLOCK_SIZE_DEFAULT;
	if (cutter->size > BLOCK_SIZE_MAX)
		return err_set(err, EINVAL, "option '--block': at most 2 GiB");
	int r = init_border(cutter, err);
	if (r >= 0)
		r = init_header(cutter, err);
	if (r < 0)
		block_cutter_done(cutter);
	return r;
}

void block_cutter_done(struct block_cutter *cutter)
{
	buf_done(&cutter->in);
	buf_done(&cutter->recstart);
	buf_done(&cutter->recend);
	buf_done(&cutter->header);
	if (cutter->has_border_regex)
		regfree(&cutter->border);
	if (cutter->has_head_regex)
		regfree(&cutter->head);
	*cutter = (struct block_cutter){ .size = 0 };
}

size_t block_cutter_wants(const struct block_cutter *cutter)
{
	return (size_t)(cutter->size - buf_len(&cutter->in) % cutter->size);
}

void block_cutter_end(struct block_cutter *cutter)
{
	cutter->ended = true;
}

bool block_cutter_over(const struct block_cutter *cutter)
{
	return cutter->ended && buf_len(&cutter->in) == 0;
}

/* ---- where records meet ---- */

static bool match_at(const struct block_cutter *cutter, const char *data, size_t len, size_t from,
		     struct block_border *ret_border)
{
	regmatch_t found[2] = { { .rm_so = (regoff_t)from, .rm_eo = (regoff_t)len } };
	if (regexec(&cutter->border, data, ARRAY_LEN(found), found, REG_STARTEND) != 0)
		return false;
	*ret_border = (struct block_border){ (size_t)found[0].rm_so, (size_t)found[1].rm_eo,
					     (size_t)found[0].rm_eo };
	return ret_border->end > ret_border->start;
}

/* The text, which may be empty, stands at `at`. */
static bool is_at(const char *at, const struct buf *text)
{
	size_t len = buf_len(text);
	return bytes_eq(bytes_of(at, len), bytes_of(buf_data(text), len));
}

/* The two texts in sequence. */
static bool is_border(const struct block_cutter *cutter, const char *at, size_t left)
{
	size_t end = buf_len(&cutter->recend), start = buf_len(&cutter->recstart);
	return left >= end + start && is_at(at, &cutter->recend) &&
	       is_at(at + end, &cutter->recstart);
}

static char first_byte(const struct block_cutter *cutter)
{
	const struct buf *first = buf_len(&cutter->recend) ? &cutter->recend : &cutter->recstart;
	return (char)*buf_data(first);
}

static struct block_border border_at(const struct block_cutter *cutter, size_t at)
{
	size_t cut = at + buf_len(&cutter->recend);
	return (struct block_border){ at, cut, cut + buf_len(&cutter->recstart) };
}

/* Without separators a block may end anywhere, and no record does. */
static bool has_separator(const struct block_cutter *cutter)
{
	return buf_len(&cutter->recend) + buf_len(&cutter->recstart) > 0;
}

/* The next border from `from` on that has something before its cut. */
static bool next_border(const struct block_cutter *cutter, const char *data, size_t len,
			size_t from, struct block_border *ret_border)
{
	if (cutter->rules.regexp) {
		while (from < len && match_at(cutter, data, len, from, ret_border)) {
			if (ret_border->cut > 0)
				return true;
			from = ret_border->end;
		}
		return false;
	}
	if (!has_separator(cutter))
		return false;
	const char *end = data + len, *p = data + from;
	for (; p < end && (p = memchr(p, first_byte(cutter), (size_t)(end - p))); p++) {
		*ret_border = border_at(cutter, (size_t)(p - data));
		if (ret_border->cut > 0 && is_border(cutter, p, (size_t)(end - p)))
			return true;
	}
	return false;
}

/* The cut behind `count` records; 0: there are fewer. */
static size_t cut_records(const struct block_cutter *cutter, const char *data, size_t len,
			  uint64_t count)
{
	struct block_border border = { .end = 0 };
	for (size_t from = 0; count > 0; count--, from = border.end)
		if (!next_border(cutter, data, len, from, &border))
			return 0;
	return border.cut;
}

static size_t cut_last_match(const struct block_cutter *cutter, const char *data, size_t len)
{
	struct block_border border;
	size_t cut = 0;
	for (size_t from = 0; next_border(cutter, data, len, from, &border); from = border.end)
		cut = border.cut;
	return cut;
}

/* The last cut of all; 0: there is none. */
static size_t cut_last(const struct block_cutter *cutter, const char *data, size_t len)
{
	if (cutter->rules.regexp)
		return cut_last_match(cutter, data, len);
	if (!has_separator(cutter))
		return len;
	const char *p = data + len;
	while ((p = memrchr(data, first_byte(cutter), (size_t)(p - data)))) {
		size_t cut = border_at(cutter, (size_t)(p - data)).cut;
		if (cut > 0 && is_border(cutter, p, len - (size_t)(p - data)))
			return cut;
	}
	return 0;
}

/* Behind as many groups of `lines` lines as there are; 0: none. */
static size_t cut_lines(const char *data, size_t len, uint64_t lines)
{
	size_t cut = 0;
	uint64_t count = 0;
	for (const char *p = data, *end = data + len;
	     p < end && (p = memchr(p, '\n', (size_t)(end - p)));)
		if (++count % lines == 0)
			cut = (size_t)(++p - data);
		else
			p++;
	return cut;
}

static size_t find_cut(const struct block_cutter *cutter)
{
	const struct block_rules *rules = &cutter->rules;
	const char *data = (const char *)buf_data(&cutter->in);
	size_t len = buf_len(&cutter->in);
	if (len == 0)
		return 0;
	if (rules->records)
		return cut_records(cutter, data, len, rules->records * MAX(rules->lines, 1ull));
	if (rules->lines)
		return cut_lines(data, len, rules->lines);
	return cutter->ended ? 0 : cut_last(cutter, data, len);
}

/* ---- blocks ---- */

/* Where the header ends: -1 if that cannot be told yet. */
static ssize_t header_end(const struct block_cutter *cutter)
{
	const char *data = (const char *)buf_data(&cutter->in);
	size_t len = buf_len(&cutter->in), at = 0;
	if (cutter->has_head_regex) {
		regmatch_t found = { .rm_so = 0, .rm_eo = (regoff_t)len };
		bool matches =
			len > 0 && regexec(&cutter->head, data, 1, &found, REG_STARTEND) == 0;
		return matches && found.rm_so == 0 ? found.rm_eo : -1;
	}
	for (uint64_t i = 0; i < cutter->head_lines; i++) {
		const char *newline = len > at ? memchr(data + at, '\n', len - at) : NULL;
		if (!newline)
			return -1;
		at = (size_t)(newline - data) + 1;
	}
	return (ssize_t)at;
}

/* False if more bytes may complete it. */
static bool take_header(struct block_cutter *cutter)
{
	ssize_t end = header_end(cutter);
	if (end < 0 && !cutter->ended)
		return false;
	cutter->header_due = false;
	if (end > 0) {
		buf_append(&cutter->header, buf_data(&cutter->in), (size_t)end);
		buf_consume(&cutter->in, (size_t)end);
	}
	return true;
}

/* Without the separators between, before and after records. */
static void append_bare(const struct block_cutter *cutter, const char *data, size_t len,
			struct buf *out)
{
	struct block_border border;
	size_t from = 0, start = buf_len(&cutter->recstart), end = buf_len(&cutter->recend);
	bool fixed = !cutter->rules.regexp;
	if (fixed && len >= start && is_at(data, &cutter->recstart))
		from = start;
	while (next_border(cutter, data, len, from, &border)) {
		buf_append(out, data + from, border.start - from);
		from = border.end;
	}
	bool has_end = fixed && len - from >= end && is_at(data + len - end, &cutter->recend);
	buf_append(out, data + from, len - from - (has_end ? end : 0));
}

static void take_block(struct block_cutter *cutter, size_t len, struct buf *ret_block)
{
	const char *data = (const char *)buf_data(&cutter->in);
	buf_clear(ret_block);
	buf_append(ret_block, buf_data(&cutter->header), buf_len(&cutter->header));
	if (cutter->rules.remove)
		append_bare(cutter, data, len, ret_block);
	else
		buf_append(ret_block, data, len);
	buf_consume(&cutter->in, len);
}

/* No record ends in what was read: read more at a time. */
static int grow(struct block_cutter *cutter, struct err *err)
{
	if (buf_len(&cutter->in) >= BLOCK_SIZE_MAX)
		return err_set(err, EFBIG, "a record is longer than 2 GiB");
	uint64_t longer = (cutter->size * 13 + 9) / 10 + 1;
	cutter->size = MIN(longer, BLOCK_SIZE_MAX);
	return 0;
}

int block_cutter_next(struct block_cutter *cutter, struct buf *ret_block, struct err *err)
{
	/* REG_STARTEND names the end, but sanitizers' regexec() looks for a NUL all the same. */
	buf_str(&cutter->in);
	if (cutter->header_due && !take_header(cutter))
		return buf_len(&cutter->in) < BLOCK_SIZE_MAX
			       ? 0
			       : err_set(err, EFBIG, "--header: nothing matches");
	if (buf_len(&cutter->in) == 0)
		return 0;
	/* A block is cut from a full buffer, unless records are counted. */
	bool full = cutter->ended || buf_len(&cutter->in) % cutter->size == 0;
	size_t cut = full || cutter->rules.records ? find_cut(cutter) : 0;
	if (cut == 0 && cutter->ended)
		cut = buf_len(&cutter->in);
	if (cut > 0) {
		take_block(cutter, cut, ret_block);
		return 1;
	}
	return full ? grow(cutter, err) : 0;
}
