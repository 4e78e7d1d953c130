#include "proto/discovery_line.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

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

struct members {
	struct buf coordinator;
	int64_t epoch;
	bool has_coordinator, has_epoch;
};

static void members_done(struct members *members)
{
	buf_done(&members->coordinator);
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

int discovery_line_parse(const char *text, size_t len, struct discovery_line *ret_line,
			 struct err *err)
{
	AUTO(members_done) struct members members = { .coordinator = BUF_INIT };
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
	memcpy(ret_line->coordinator, coordinator, strlen(coordinator) + 1);
	ret_line->epoch = (uint64_t)members.epoch;
	return 0;
}

void discovery_line_format(struct buf *out, const char *coordinator, uint64_t epoch)
{
	struct json_out json = JSON_OUT(out);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "coordinator", coordinator);
	json_out_int(&json, "epoch", (int64_t)epoch);
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}
