#include "cli/doctor/doctor_meet.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/checks/assembly.h"
#include "core/worker/exit_code.h"
#include "nodes/peer_links.h"
#include "proto/checks/check_json.h"

#define MESSAGE_MAX ((size_t)1 << 20) /* what one host tells another */

/* A text ends with a NUL, of which JSON has none. */
struct inbox {
	struct buf text;
	bool whole;
};

/* Turns what happens into events of the assembly, which decides. */
struct meeting_hall {
	const struct command *self;
	const struct doctor_meet *meet;
	const struct check_list *results; /* of this host */
	struct event_base *base;
	struct peer_links *links;
	struct event *late, *enough;
	struct assembly assembly;
	struct map peers; /* id -> struct inbox */
	struct inbox verdict;
};

/* False: it is longer than any that we send. */
static bool inbox_take(struct inbox *inbox, const void *data, size_t len)
{
	const char *end = memchr(data, '\0', len);
	if (inbox->whole)
		return true;
	inbox->whole = end;
	buf_append(&inbox->text, data, end ? (size_t)(end - (const char *)data) : len);
	return buf_len(&inbox->text) <= MESSAGE_MAX;
}

static void inbox_free(struct inbox *inbox)
{
	if (inbox)
		buf_done(&inbox->text);
	free(inbox);
}

/* ---- what the assembly wants ---- */

static void tell(struct meeting_hall *hall)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	check_json_write_all(hall->meet->name, hall->results, &text);
	buf_append_char(&text, '\0');
	peer_links_send(hall->links, buf_data(&text), buf_len(&text));
	command_complain(hall->self, "the table of all %u hosts is shown at %s", hall->meet->nodes,
			 hall->meet->rdzv.endpoint_text);
}

static void send_verdict(struct meeting_hall *hall, uint64_t peer)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	check_json_write_verdict(hall->meet->name, hall->assembly.worst, &text);
	buf_append_char(&text, '\0');
	peer_links_send_to(hall->links, peer, buf_data(&text), buf_len(&text));
}

static void say_came(struct meeting_hall *hall, const char *name)
{
	if (!hall->meet->by_engine)
		command_complain(hall->self, "%s has come, %zu of %u hosts", name,
				 hall->assembly.roll.across.count, hall->assembly.roll.expected);
}

static void act(struct meeting_hall *hall, const struct assembly_action *action)
{
	switch (action->type) {
	case ASSEMBLY_TELL:
		return tell(hall);
	case ASSEMBLY_CAME:
		return say_came(hall, action->name);
	case ASSEMBLY_VERDICT:
		return send_verdict(hall, action->peer);
	case ASSEMBLY_HANG_UP:
		peer_links_hang_up_on(hall->links, action->peer);
		return inbox_free(map_remove(&hall->peers, &action->peer, sizeof(action->peer)));
	case ASSEMBLY_GIVE_UP:
		command_complain(hall->self, "%s; this is what was found here", action->why);
		return;
	case ASSEMBLY_OVER:
		event_base_loopbreak(hall->base);
		return;
	}
}

static void step(struct meeting_hall *hall, const struct assembly_event *event)
{
	AUTO(assembly_actions_done) struct assembly_actions actions = { .items = NULL };
	uint64_t now_ns = clock_now_ns();
	assembly_step(&hall->assembly, event, now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(hall, &actions.items[i]);
	struct timeval left = clock_left(assembly_deadline_ns(&hall->assembly), now_ns);
	event_add(hall->late, &left);
}

/* ---- what happens ---- */

static void on_coordinate(void *arg)
{
	struct meeting_hall *hall = arg;
	AUTO(check_list_done) struct check_list own = CHECK_LIST_INIT;
	event_add(hall->enough, NULL);
	for (size_t i = 0; i < hall->results->count; i++)
		check_list_add(&own, &hall->results->items[i]);
	step(hall, &(struct assembly_event){ .type = ASSEMBLY_EV_COORDINATE,
					     .name = hall->meet->name,
					     .results = &own });
}

static void on_peer(void *arg, uint64_t id, const char *name)
{
	struct meeting_hall *hall = arg;
	map_put(&hall->peers, &id, sizeof(id), NEW(struct inbox));
	step(hall, &(struct assembly_event){ .type = ASSEMBLY_EV_PEER, .peer = id, .name = name });
}

static void on_peer_bytes(void *arg, uint64_t id, const void *data, size_t len)
{
	struct meeting_hall *hall = arg;
	struct inbox *inbox = map_get(&hall->peers, &id, sizeof(id));
	AUTO(check_list_done) struct check_list results = CHECK_LIST_INIT;
	char name[ACROSS_NAME_MAX];
	if (!inbox || inbox->whole)
		return;
	bool fits = inbox_take(inbox, data, len);
	if (fits && !inbox->whole)
		return;
	const char *text = buf_str(&inbox->text);
	struct err err = ERR_INIT;
	if (!fits || check_json_read_all(text, buf_len(&inbox->text), &results, &err) < 0) {
		command_complain(hall->self, "a host sends %s", fits ? err.msg : "too much");
		return step(hall,
			    &(struct assembly_event){ .type = ASSEMBLY_EV_PEER_BAD, .peer = id });
	}
	check_json_host(text, buf_len(&inbox->text), name, sizeof(name));
	step(hall, &(struct assembly_event){ .type = ASSEMBLY_EV_PEER_TOLD,
					     .peer = id,
					     .name = name,
					     .results = &results });
}

static void on_peer_down(void *arg, uint64_t id, bool dead UNUSED)
{
	struct meeting_hall *hall = arg;
	inbox_free(map_remove(&hall->peers, &id, sizeof(id)));
	step(hall, &(struct assembly_event){ .type = ASSEMBLY_EV_PEER_DOWN, .peer = id });
}

/* Ctrl-C: whoever has not come is not waited for. */
static void on_enough(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	step(arg, &(struct assembly_event){ .type = ASSEMBLY_EV_ENOUGH });
}

static void on_up(void *arg)
{
	step(arg, &(struct assembly_event){ .type = ASSEMBLY_EV_UP });
}

static void on_bytes(void *arg, const void *data, size_t len)
{
	struct meeting_hall *hall = arg;
	struct inbox *inbox = &hall->verdict;
	struct assembly_event event = { .type = ASSEMBLY_EV_VERDICT };
	struct err err = ERR_INIT;
	bool fits = inbox_take(inbox, data, len);
	if (fits && !inbox->whole)
		return;
	if (!fits) {
		event.type = ASSEMBLY_EV_BARRED;
		event.why = "the host that shows the table sends too much";
	} else if (check_json_read_verdict(buf_str(&inbox->text), buf_len(&inbox->text),
					   &event.worst, &err) < 0) {
		event.type = ASSEMBLY_EV_BARRED;
		event.why = err.msg;
	}
	step(hall, &event);
}

static void on_down(void *arg, const char *why)
{
	step(arg, &(struct assembly_event){ .type = ASSEMBLY_EV_DOWN, .why = why });
}

static void on_barred(void *arg, const char *why)
{
	step(arg, &(struct assembly_event){ .type = ASSEMBLY_EV_BARRED, .why = why });
}

static void on_superseded(void *arg)
{
	step(arg, &(struct assembly_event){ .type = ASSEMBLY_EV_SUPERSEDED });
}

static void on_drained(void *arg UNUSED)
{
}

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct meeting_hall *hall = arg;
	AUTO(buf_done) struct buf tried = BUF_INIT;
	peer_links_explain(hall->links, &tried);
	step(hall, &(struct assembly_event){ .type = ASSEMBLY_EV_TIMER, .why = buf_str(&tried) });
}

static const struct peer_links_handler peer_links_handler = {
	.risk = "pose as one of the hosts, and say what its checks found",
	.on_coordinate = on_coordinate,
	.on_superseded = on_superseded,
	.on_up = on_up,
	.on_down = on_down,
	.on_bytes = on_bytes,
	.on_drained = on_drained,
	.on_peer = on_peer,
	.on_peer_bytes = on_peer_bytes,
	.on_peer_down = on_peer_down,
	.on_barred = on_barred,
};

static void show(const struct across *across, bool json)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (json)
		check_json_write_hosts(across, &text);
	else
		across_print(across, &text);
	command_print("%s", buf_str(&text));
}

static int exit_code(const struct assembly *assembly)
{
	if (assembly->gave_up)
		return -1;
	return assembly->worst == CHECK_BAD ? EXIT_CODE_BAD_NODE : EXIT_CODE_OK;
}

int doctor_meet(const struct command *self, const struct doctor_meet *meet, uint64_t begin_ns,
		const struct check_list *results, bool json)
{
	struct meeting_hall hall = {
		.self = self, .meet = meet, .results = results, .base = event_base_new()
	};
	assembly_init(&hall.assembly, meet->nodes, &meet->names, begin_ns, meet->wait_ns);
	hall.late = evtimer_new(hall.base, on_late, &hall);
	hall.enough = evsignal_new(hall.base, SIGINT, on_enough, &hall);
	if (!meet->by_engine)
		command_complain(self, "meets %u hosts at %s", meet->nodes,
				 meet->rdzv.endpoint_text);
	struct timeval left = clock_left(assembly_deadline_ns(&hall.assembly), clock_now_ns());
	event_add(hall.late, &left);
	hall.links = peer_links_new(hall.base, &meet->rdzv, &peer_links_handler, &hall);
	event_base_dispatch(hall.base);
	peer_links_free(hall.links);
	event_free(hall.late);
	event_free(hall.enough);
	event_base_free(hall.base);
	if (assembly_shows(&hall.assembly))
		show(&hall.assembly.roll.across, json);
	int code = exit_code(&hall.assembly);
	map_foreach(entry, &hall.peers) inbox_free(entry->value);
	map_done(&hall.peers);
	buf_done(&hall.verdict.text);
	assembly_done(&hall.assembly);
	return code;
}
