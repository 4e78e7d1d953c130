#include "proto/discovery_line.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "proto/json_in.h"
#include "proto/json_out.h"

bool discovery_coordinator_ok(const char *text)
{
	size_t len = 0;
	for (; text[len]; len++)
		if (text[len] <= ' ' || text[len] > '~' || len + 1 == DISCOVERY_COORDINATOR_MAX)
			return false;
	return len > 0;
}

static const char *const ends[] = { [RULING_DONE] = "done", [RULING_FAILED] = "failed" };
static_assert(ARRAY_LEN(ends) == RULING_COUNT, "every ruling needs a word");

const char *discovery_end_name(enum ruling ruling)
{
	return ends[ruling];
}

enum ruling discovery_end_parse(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends[i] && str_eq(word, ends[i]))
			return (enum ruling)i;
	return RULING_NONE;
}

struct members {
	struct buf coordinator, ended;
	int64_t epoch, until_ms, ended_epoch;
	bool has_coordinator, has_epoch;
};

static void members_done(struct members *members)
{
	buf_done(&members->coordinator);
	buf_done(&members->ended);
}

static int read_member(struct json_in *in, const char *key, struct members *members)
{
	if (str_eq(key, "coordinator")) {
		members->has_coordinator = true;
		return json_in_string(in, &members->coordinator);
	}
	if (str_eq(key, "epoch")) {
		members->has_epoch = true;
		return json_in_int(in, &members->epoch);
	}
	if (str_eq(key, "until_ms"))
		return json_in_int(in, &members->until_ms);
	if (str_eq(key, "ended_epoch"))
		return json_in_int(in, &members->ended_epoch);
	if (str_eq(key, "ended"))
		return json_in_string(in, &members->ended);
	return json_in_skip(in);
}

static int read_object(const char *text, size_t len, struct members *members)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_in in;
	json_in_init(&in, text, len);
	int r = json_in_enter(&in, '{');
	while (r >= 0 && (r = json_in_member(&in, &key)) > 0)
		r = read_member(&in, buf_str(&key), members);
	return r < 0 ? r : json_in_end(&in);
}

/* The lease and the recorded end, each of which may be missing. */
static int check_rest(struct members *members, struct err *err)
{
	if (members->until_ms < 0 || members->until_ms > INT64_MAX / (int64_t)NS_PER_MS)
		return err_set(err, EINVAL, "\"until_ms\" is not a time");
	bool named = discovery_end_parse(buf_str(&members->ended)) != RULING_NONE;
	if (members->ended_epoch < 0 || named != (members->ended_epoch > 0))
		return err_set(err, EINVAL,
			       "\"ended_epoch\" from 1 on needs \"ended\", which is \"done\" or "
			       "\"failed\"");
	return 0;
}

int discovery_line_parse(const char *text, size_t len, struct discovery_line *ret_line,
			 struct err *err)
{
	AUTO(members_done) struct members members = { .coordinator = BUF_INIT, .ended = BUF_INIT };
	if (len > DISCOVERY_LINE_MAX)
		return err_set(err, EINVAL, "longer than %d bytes", DISCOVERY_LINE_MAX);
	if (read_object(text, len, &members) < 0)
		return err_set(err, EINVAL,
			       "no JSON object with a text \"coordinator\" and a number \"epoch\"");
	if (!members.has_coordinator || !members.has_epoch)
		return err_set(err, EINVAL, "\"%s\" is missing",
			       members.has_coordinator ? "epoch" : "coordinator");
	const char *coordinator = buf_str(&members.coordinator);
	if (!discovery_coordinator_ok(coordinator))
		return err_set(err, EINVAL, "\"coordinator\" is not host:port");
	if (members.epoch < 1)
		return err_set(err, EINVAL, "epoch %" PRId64 " is below 1", members.epoch);
	int r = check_rest(&members, err);
	if (r < 0)
		return r;
	memcpy(ret_line->coordinator, coordinator, strlen(coordinator) + 1);
	ret_line->epoch = (uint64_t)members.epoch;
	ret_line->until_ns = (uint64_t)members.until_ms * NS_PER_MS;
	ret_line->past = (struct recorded_end){ (uint64_t)members.ended_epoch,
						discovery_end_parse(buf_str(&members.ended)) };
	return 0;
}

void discovery_line_format(struct buf *out, const struct discovery_line *line)
{
	struct json_out json = JSON_OUT(out);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "coordinator", line->coordinator);
	json_out_int(&json, "epoch", (int64_t)line->epoch);
	if (line->until_ns)
		json_out_int(&json, "until_ms", (int64_t)(line->until_ns / NS_PER_MS));
	if (line->past.epoch) {
		json_out_int(&json, "ended_epoch", (int64_t)line->past.epoch);
		json_out_text(&json, "ended", discovery_end_name(line->past.ruling));
	}
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}
