#include "proto/timer_line.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"
#include "proto/json_in.h"

#define FAR_FUTURE_S 1e9 /* a deadline beyond it never comes */

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

static enum timer_fault to_integer(const struct json_number *number, int64_t *ret_value)
{
	int r = json_number_int(number, ret_value);
	return r == 0	      ? TIMER_FAULT_NONE
	       : r == -EINVAL ? TIMER_FAULT_MEMBER_TYPE
			      : TIMER_FAULT_OUT_OF_RANGE;
}

static enum timer_fault to_real(const struct json_number *number, double *ret_value)
{
	return json_number_double(number, ret_value) < 0 ? TIMER_FAULT_OUT_OF_RANGE
							 : TIMER_FAULT_NONE;
}

static enum timer_fault take_number(struct timer_line *line, enum member member,
				    const struct json_number *number)
{
	switch (member) {
	case MEMBER_PID:
		return to_integer(number, &line->pid);
	case MEMBER_SIGNAL:
		return to_integer(number, &line->signal);
	default:
		return to_real(number, &line->expiration_s);
	}
}

/* The reader's result is about the syntax; a value of the wrong kind is a fault of the member. */
static int read_known(struct json_in *in, struct members *members, enum member member)
{
	struct json_number number;
	enum json_kind wanted = member == MEMBER_SCOPE ? JSON_STRING : JSON_NUMBER;
	members->seen[member] = true;
	members->faults[member] = TIMER_FAULT_NONE;
	if (json_in_peek(in) != wanted) {
		members->faults[member] = TIMER_FAULT_MEMBER_TYPE;
		return json_in_skip(in);
	}
	if (member == MEMBER_SCOPE)
		return json_in_string(in, &members->line->scope);
	int r = json_in_number(in, &number);
	if (r == 0)
		members->faults[member] = take_number(members->line, member, &number);
	return r;
}

static int read_member(struct json_in *in, struct members *members, const char *name)
{
	for (size_t i = 0; i < MEMBER_COUNT; i++)
		if (str_eq(name, member_names[i]))
			return read_known(in, members, (enum member)i);
	return json_in_skip(in);
}

static int read_members(struct json_in *in, struct members *members)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &name)) > 0)
		r = read_member(in, members, buf_str(&name));
	return r < 0 ? r : json_in_end(in);
}

void timer_line_done(struct timer_line *line)
{
	buf_done(&line->scope);
}

enum timer_fault timer_line_parse(const char *text, size_t len, struct timer_line *line)
{
	struct members members = { .line = line };
	struct json_in in;
	json_in_init(&in, text, len);
	in.python = true;
	if (json_in_end(&in) == 0)
		return TIMER_FAULT_EMPTY;
	if (len > TIMER_LINE_MAX)
		return TIMER_FAULT_TOO_LONG;
	if (!utf8_valid(text, len))
		return TIMER_FAULT_NOT_UTF8;
	if (read_members(&in, &members) < 0)
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
