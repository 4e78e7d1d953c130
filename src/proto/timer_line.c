#include "proto/timer_line.h"

#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

#define FAR_FUTURE_S 1e9 /* a deadline beyond it is none */
#define NUMBER_MAX 128	 /* characters of a number that we look into; Python writes up to 24 */
#define REPLACEMENT 0xfffd

static const char *const fault_texts[] = {
	[TIMER_FAULT_NONE] = "no fault",
	[TIMER_FAULT_EMPTY] = "empty line",
	[TIMER_FAULT_TOO_LONG] = "line too long",
	[TIMER_FAULT_NOT_UTF8] = "not UTF-8",
	[TIMER_FAULT_SYNTAX] = "not a JSON object",
	[TIMER_FAULT_MEMBER_MISSING] = "a member is missing",
	[TIMER_FAULT_MEMBER_TYPE] = "a member has the wrong type",
	[TIMER_FAULT_OUT_OF_RANGE] = "a number is out of range",
	[TIMER_FAULT_TORN] = "unfinished line",
};
static_assert(ARRAY_LEN(fault_texts) == TIMER_FAULT_COUNT, "every fault needs a text");

const char *timer_fault_text(enum timer_fault fault)
{
	return fault_texts[fault];
}

enum value_type {
	VALUE_OTHER, /* true, false, null, array, object */
	VALUE_STRING,
	VALUE_INTEGER,
	VALUE_REAL, /* fraction, exponent, NaN, infinity */
};

struct value {
	enum value_type type;
	const char *text; /* of a number */
	size_t len;
};

struct scanner {
	const char *at;
	const char *end;
	unsigned depth;
};

static bool more(const struct scanner *in)
{
	return in->at < in->end;
}

static bool accept(struct scanner *in, char c)
{
	if (!more(in) || *in->at != c)
		return false;
	in->at++;
	return true;
}

static bool accept_word(struct scanner *in, const char *word)
{
	size_t len = strlen(word);
	if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
		return false;
	in->at += len;
	return true;
}

static void skip_blanks(struct scanner *in)
{
	while (more(in) &&
	       (*in->at == ' ' || *in->at == '\t' || *in->at == '\r' || *in->at == '\n'))
		in->at++;
}

static bool digits(struct scanner *in)
{
	const char *start = in->at;
	while (more(in) && *in->at >= '0' && *in->at <= '9')
		in->at++;
	return in->at > start;
}

static void append_utf8(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_append_char(out, (char)c);
	} else if (c < 0x800) {
		buf_append_char(out, (char)(0xc0 | c >> 6));
		buf_append_char(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_append_char(out, (char)(0xe0 | c >> 12));
		buf_append_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_append_char(out, (char)(0xf0 | c >> 18));
		buf_append_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (c & 0x3f)));
	}
}

static bool hex4(struct scanner *in, uint32_t *ret)
{
	uint32_t value = 0;
	if (in->end - in->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		unsigned char c = (unsigned char)in->at[i];
		if (!isxdigit(c))
			return false;
		value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	in->at += 4;
	*ret = value;
	return true;
}

/* After "\u". A pair of surrogates is one character, half a pair is none. */
static bool unicode_escape(struct scanner *in, struct buf *out)
{
	uint32_t c, low;
	if (!hex4(in, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		struct scanner ahead = *in;
		if (accept_word(&ahead, "\\u") && hex4(&ahead, &low) && low >= 0xdc00 &&
		    low < 0xe000) {
			*in = ahead;
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		} else {
			c = REPLACEMENT;
		}
	} else if ((c >= 0xdc00 && c < 0xe000) || c == 0) {
		c = REPLACEMENT;
	}
	append_utf8(out, c);
	return true;
}

static bool escape(struct scanner *in, struct buf *out)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	if (!more(in) || !*in->at)
		return false;
	char c = *in->at++;
	if (c == 'u')
		return unicode_escape(in, out);
	const char *name = strchr(names, c);
	if (!name)
		return false;
	buf_append_char(out, values[name - names]);
	return true;
}

/* After the opening quote. */
static bool string_body(struct scanner *in, struct buf *out)
{
	for (;;) {
		const char *run = in->at;
		while (more(in) && (unsigned char)*in->at >= 0x20 && *in->at != '"' &&
		       *in->at != '\\')
			in->at++;
		buf_append(out, run, (size_t)(in->at - run));
		if (accept(in, '"'))
			return true;
		if (!accept(in, '\\') || !escape(in, out))
			return false;
	}
}

static bool number(struct scanner *in, struct value *ret)
{
	ret->text = in->at;
	ret->type = VALUE_INTEGER;
	bool negative = accept(in, '-');
	if (accept_word(in, "Infinity") || (!negative && accept_word(in, "NaN"))) {
		ret->type = VALUE_REAL;
	} else {
		if (!accept(in, '0') && !digits(in))
			return false;
		if (accept(in, '.')) {
			ret->type = VALUE_REAL;
			if (!digits(in))
				return false;
		}
		if (accept(in, 'e') || accept(in, 'E')) {
			ret->type = VALUE_REAL;
			if (!accept(in, '+'))
				accept(in, '-');
			if (!digits(in))
				return false;
		}
	}
	ret->len = (size_t)(in->at - ret->text);
	return true;
}

static bool value(struct scanner *in, struct value *ret, struct buf *text);

/* Calls back for every member of the object at the scanner; NULL: only its syntax counts. */
typedef void member_fn(void *arg, const struct buf *name, const struct value *value,
		       const struct buf *text);

static bool object_body(struct scanner *in, member_fn *on_member, void *arg)
{
	AUTO(buf_done) struct buf name = BUF_INIT, text = BUF_INIT;
	skip_blanks(in);
	if (accept(in, '}'))
		return true;
	do {
		struct value member;
		buf_clear(&name);
		buf_clear(&text);
		skip_blanks(in);
		if (!accept(in, '"') || !string_body(in, &name))
			return false;
		skip_blanks(in);
		if (!accept(in, ':') || !value(in, &member, &text))
			return false;
		if (on_member)
			on_member(arg, &name, &member, &text);
		skip_blanks(in);
	} while (accept(in, ','));
	return accept(in, '}');
}

static bool array_body(struct scanner *in)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	skip_blanks(in);
	if (accept(in, ']'))
		return true;
	do {
		struct value item;
		if (!value(in, &item, &text))
			return false;
		skip_blanks(in);
	} while (accept(in, ','));
	return accept(in, ']');
}

static bool value(struct scanner *in, struct value *ret, struct buf *text)
{
	*ret = (struct value){ .type = VALUE_OTHER };
	skip_blanks(in);
	if (accept(in, '"')) {
		ret->type = VALUE_STRING;
		return string_body(in, text);
	}
	if (accept_word(in, "true") || accept_word(in, "false") || accept_word(in, "null"))
		return true;
	bool brace = accept(in, '{');
	if (!brace && !accept(in, '['))
		return number(in, ret);
	if (++in->depth > TIMER_LINE_DEPTH_MAX)
		return false;
	bool good = brace ? object_body(in, NULL, NULL) : array_body(in);
	in->depth--;
	return good;
}

static enum timer_fault to_integer(const struct value *value, int64_t *ret)
{
	char digits[NUMBER_MAX];
	if (value->type != VALUE_INTEGER)
		return TIMER_FAULT_MEMBER_TYPE;
	if (value->len >= sizeof(digits))
		return TIMER_FAULT_OUT_OF_RANGE;
	memcpy(digits, value->text, value->len);
	digits[value->len] = '\0';
	return str_to_i64(digits, ret) < 0 ? TIMER_FAULT_OUT_OF_RANGE : TIMER_FAULT_NONE;
}

static enum timer_fault to_real(const struct value *value, double *ret)
{
	char digits[NUMBER_MAX];
	if (value->type != VALUE_INTEGER && value->type != VALUE_REAL)
		return TIMER_FAULT_MEMBER_TYPE;
	if (value->len >= sizeof(digits))
		return TIMER_FAULT_OUT_OF_RANGE;
	memcpy(digits, value->text, value->len);
	digits[value->len] = '\0';
	return str_to_double(digits, ret) < 0 ? TIMER_FAULT_SYNTAX : TIMER_FAULT_NONE;
}

enum member {
	MEMBER_PID,
	MEMBER_SCOPE,
	MEMBER_EXPIRATION,
	MEMBER_SIGNAL,
	MEMBER_COUNT,
};

static const char *const member_names[] = {
	[MEMBER_PID] = "pid",
	[MEMBER_SCOPE] = "scope_id",
	[MEMBER_EXPIRATION] = "expiration_time",
	[MEMBER_SIGNAL] = "signal",
};
static_assert(ARRAY_LEN(member_names) == MEMBER_COUNT, "every member needs a name");

struct members {
	struct timer_line *line;
	bool seen[MEMBER_COUNT];
	enum timer_fault faults[MEMBER_COUNT]; /* of the last one of each name */
};

static enum timer_fault take_member(struct timer_line *line, enum member member,
				    const struct value *value, const struct buf *text)
{
	switch (member) {
	case MEMBER_PID:
		return to_integer(value, &line->pid);
	case MEMBER_SIGNAL:
		return to_integer(value, &line->signal);
	case MEMBER_EXPIRATION:
		return to_real(value, &line->expiration_s);
	case MEMBER_SCOPE:
	case MEMBER_COUNT:
		break;
	}
	if (value->type != VALUE_STRING)
		return TIMER_FAULT_MEMBER_TYPE;
	buf_clear(&line->scope);
	buf_append(&line->scope, buf_data(text), buf_len(text));
	return TIMER_FAULT_NONE;
}

static void on_member(void *arg, const struct buf *name, const struct value *value,
		      const struct buf *text)
{
	struct members *members = arg;
	for (size_t i = 0; i < MEMBER_COUNT; i++) {
		if (buf_len(name) != strlen(member_names[i]) ||
		    memcmp(buf_data(name), member_names[i], buf_len(name)) != 0)
			continue;
		members->seen[i] = true;
		members->faults[i] = take_member(members->line, (enum member)i, value, text);
	}
}

/* Length of the UTF-8 sequence at `at`, 0 if it is none (overlong forms and surrogates are
 * none). */
static size_t utf8_sequence(const unsigned char *at, size_t left)
{
	if (at[0] < 0x80)
		return 1;
	size_t len = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	if (at[0] < 0xc2 || at[0] > 0xf4 || left < len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	bool wrong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
		     (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f);
	return wrong ? 0 : len;
}

static bool is_utf8(const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text;
	for (size_t i = 0, step; i < len; i += step)
		if (!(step = utf8_sequence(at + i, len - i)))
			return false;
	return true;
}

void timer_line_done(struct timer_line *line)
{
	buf_done(&line->scope);
}

enum timer_fault timer_line_parse(const char *text, size_t len, struct timer_line *line)
{
	struct scanner in = { .at = text, .end = text + len };
	struct members members = { .line = line };

	skip_blanks(&in);
	if (!more(&in))
		return TIMER_FAULT_EMPTY;
	if (len > TIMER_LINE_MAX)
		return TIMER_FAULT_TOO_LONG;
	if (!is_utf8(text, len))
		return TIMER_FAULT_NOT_UTF8;
	if (!accept(&in, '{') || !object_body(&in, on_member, &members))
		return TIMER_FAULT_SYNTAX;
	skip_blanks(&in);
	if (more(&in))
		return TIMER_FAULT_SYNTAX;
	for (size_t i = 0; i < MEMBER_COUNT; i++)
		if (!members.seen[i])
			return TIMER_FAULT_MEMBER_MISSING;
	for (size_t i = 0; i < MEMBER_COUNT; i++)
		if (members.faults[i])
			return members.faults[i];
	return TIMER_FAULT_NONE;
}

void timer_splitter_done(struct timer_splitter *splitter)
{
	buf_done(&splitter->pending);
}

void timer_splitter_feed(struct timer_splitter *splitter, const void *data, size_t len)
{
	buf_append(&splitter->pending, data, len);
}

/* A line without an end is held up to its limit, then its bytes go as they come. */
static enum timer_split no_newline(struct timer_splitter *splitter)
{
	size_t len = buf_len(&splitter->pending);
	bool was_skipping = splitter->skipping;
	if (!was_skipping && len <= TIMER_LINE_MAX) {
		splitter->scanned = len;
		return TIMER_SPLIT_NONE;
	}
	buf_clear(&splitter->pending);
	splitter->scanned = 0;
	splitter->skipping = true;
	return was_skipping ? TIMER_SPLIT_NONE : TIMER_SPLIT_TOO_LONG;
}

enum timer_split timer_splitter_next(struct timer_splitter *splitter, const char **ret_text,
				     size_t *ret_len)
{
	for (;;) {
		size_t len = buf_len(&splitter->pending);
		if (len == 0)
			return TIMER_SPLIT_NONE;
		const char *text = (const char *)buf_data(&splitter->pending);
		const char *newline =
			memchr(text + splitter->scanned, '\n', len - splitter->scanned);
		if (!newline)
			return no_newline(splitter);

		size_t line_len = (size_t)(newline - text);
		bool rest_of_skipped = splitter->skipping;
		buf_consume(&splitter->pending, line_len + 1);
		splitter->scanned = 0;
		splitter->skipping = false;
		if (rest_of_skipped)
			continue;
		if (line_len > TIMER_LINE_MAX)
			return TIMER_SPLIT_TOO_LONG;
		*ret_text = text;
		*ret_len = line_len;
		return TIMER_SPLIT_LINE;
	}
}

bool timer_splitter_partial(const struct timer_splitter *splitter)
{
	return splitter->skipping || buf_len(&splitter->pending) > 0;
}

void timer_splitter_drop(struct timer_splitter *splitter)
{
	buf_clear(&splitter->pending);
	splitter->scanned = 0;
	splitter->skipping = false;
}

uint64_t timer_line_deadline_ns(double expiration_s, uint64_t wall_ns, uint64_t now_ns)
{
	double left_s = expiration_s - (double)wall_ns / (double)NS_PER_S;
	if (left_s <= 0)
		return now_ns;
	return left_s > FAR_FUTURE_S ? NS_NEVER : now_ns + (uint64_t)(left_s * (double)NS_PER_S);
}
