#include "proto/event_in.h"

#include <errno.h>

#include "base/str.h"
#include "proto/json_in.h"

enum member_type { MEMBER_TEXT, MEMBER_NUMBER };

static const struct {
	const char *name;
	enum member_type type;
	size_t offset;
} members[] = {
	{ "event", MEMBER_TEXT, offsetof(struct event_in, name) },
	{ "rank", MEMBER_NUMBER, offsetof(struct event_in, rank) },
	{ "local_rank", MEMBER_NUMBER, offsetof(struct event_in, local_rank) },
	{ "pid", MEMBER_NUMBER, offsetof(struct event_in, pid) },
	{ "round", MEMBER_NUMBER, offsetof(struct event_in, round) },
	{ "restarts", MEMBER_NUMBER, offsetof(struct event_in, restarts) },
	{ "timestamp", MEMBER_NUMBER, offsetof(struct event_in, timestamp) },
	{ "world_size", MEMBER_NUMBER, offsetof(struct event_in, world_size) },
	{ "exit_code", MEMBER_NUMBER, offsetof(struct event_in, exit_code) },
	{ "signal", MEMBER_TEXT, offsetof(struct event_in, signal) },
	{ "error_file", MEMBER_TEXT, offsetof(struct event_in, error_file) },
};

static int read_member(struct json_in *in, const char *key, struct event_in *event)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		void *field = (char *)event + members[i].offset;
		if (!str_eq(members[i].name, key))
			continue;
		return members[i].type == MEMBER_TEXT ? json_in_string(in, field)
						      : json_in_int(in, field);
	}
	return json_in_skip(in);
}

int event_in_parse(const char *line, size_t len, struct event_in *ret_event)
{
	AUTO(event_in_done) struct event_in event = EVENT_IN_INIT;
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_in in;
	json_in_init(&in, line, len);
	int r = json_in_enter(&in, '{');
	while (r >= 0 && (r = json_in_member(&in, &key)) > 0)
		r = read_member(&in, buf_str(&key), &event);
	if (r == 0)
		r = json_in_end(&in);
	if (r < 0 || buf_len(&event.name) == 0)
		return -EINVAL;
	*ret_event = event;
	event = EVENT_IN_INIT;
	return 0;
}

void event_in_done(struct event_in *event)
{
	buf_done(&event->name);
	buf_done(&event->signal);
	buf_done(&event->error_file);
	*event = EVENT_IN_INIT;
}
