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
#include "core/checks/roll.h"
#include "core/worker/exit_code.h"
#include "nodes/crew.h"
#include "proto/checks/check_json.h"

#define MESSAGE_MAX ((size_t)1 << 20) /* what one host tells another */
#define LEAVE_NS (3 * NS_PER_S)	      /* for the others to hear the verdict */
#define GRACE_NS (10 * NS_PER_S)      /* for the verdict, after the time in which all must come */

/* A text ends with a NUL, of which JSON has none. */
struct inbox {
	struct buf text;
	bool whole;
};

struct meeting_hall {
	const struct command *self;
	const struct doctor_meet *meet;
	const struct check_list *results; /* of this host */
	struct event_base *base;
	struct crew *crew;
	struct event *late, *enough;
	uint64_t begin_ns; /* of the checks here */
	uint64_t wait_ns;  /* from then on */
	struct roll roll;  /* on the host that shows the table */
	struct map peers;  /* id -> struct inbox */
	struct inbox verdict;
	bool first;  /* this is that host */
	bool told;   /* the results are there, or here */
	bool closed; /* the table is complete, the others leave */
	int status;  /* the exit code; -1: see doctor_meet() */
};

/* A line on stderr, in one piece: others write there, too. */
#define say(hall, fmt, ...) \
	fprintf(stderr, "%s: " fmt "\n", command_title((hall)->self), ##__VA_ARGS__)

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

static void wait_until(struct meeting_hall *hall, uint64_t deadline_ns)
{
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	event_add(hall->late, &left);
}

static int code_of(enum check_state worst)
{
	return worst == CHECK_BAD ? EXIT_CODE_BAD_NODE : EXIT_CODE_OK;
}

/* ---- on the host that shows the table ---- */

static void drop_peer(struct meeting_hall *hall, uint64_t id)
{
	struct inbox *inbox = map_remove(&hall->peers, &id, sizeof(id));
	if (inbox)
		buf_done(&inbox->text);
	free(inbox);
}

static void leave_if_alone(struct meeting_hall *hall)
{
	if (hall->closed && hall->peers.count == 0)
		event_base_loopbreak(hall->base);
}

/* All have come, or no more will. The others are told first: a terminal may be slow. */
static void close_roll(struct meeting_hall *hall)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	hall->closed = true;
	roll_close(&hall->roll, clock_now_ns() - hall->begin_ns,
		   "start muster doctor there, too, with the same --rdzv-endpoint and token; if it "
		   "runs there, see what it says");
	hall->status = code_of(across_worst(&hall->roll.across));
	check_json_write_verdict(hall->meet->name, across_worst(&hall->roll.across), &text);
	buf_append_char(&text, '\0');
	map_foreach(entry, &hall->peers)
	{
		const struct inbox *inbox = entry->value;
		uint64_t id;
		memcpy(&id, entry->key, sizeof(id));
		if (inbox->whole) {
			crew_peer_send(hall->crew, id, buf_data(&text), buf_len(&text));
		} else {
			crew_peer_hang_up(hall->crew, id);
			drop_peer(hall, id);
		}
	}
	wait_until(hall, ns_add(clock_now_ns(), LEAVE_NS));
	leave_if_alone(hall);
}

static void count(struct meeting_hall *hall, const char *name, struct check_list *results)
{
	if (!roll_add(&hall->roll, name, results))
		return;
	if (!hall->meet->by_engine)
		say(hall, "%s has come, %zu of %u hosts", name, hall->roll.across.count,
		    hall->roll.expected);
	if (roll_is_complete(&hall->roll))
		close_roll(hall);
}

static void on_coordinate(void *arg)
{
	struct meeting_hall *hall = arg;
	struct check_list own = CHECK_LIST_INIT;
	hall->first = hall->told = true;
	event_add(hall->enough, NULL);
	for (size_t i = 0; i < hall->results->count; i++)
		check_list_add(&own, &hall->results->items[i]);
	count(hall, hall->meet->name, &own);
}

static void on_peer(void *arg, uint64_t id, const char *name UNUSED)
{
	struct meeting_hall *hall = arg;
	struct inbox *inbox = NEW(struct inbox);
	map_put(&hall->peers, &id, sizeof(id), inbox);
}

static void on_peer_bytes(void *arg, uint64_t id, const void *data, size_t len)
{
	struct meeting_hall *hall = arg;
	struct inbox *inbox = map_get(&hall->peers, &id, sizeof(id));
	struct check_list results = CHECK_LIST_INIT;
	char name[ACROSS_NAME_MAX];
	if (!inbox || inbox->whole || hall->closed)
		return;
	bool fits = inbox_take(inbox, data, len);
	if (fits && !inbox->whole)
		return;
	const char *text = buf_str(&inbox->text);
	struct err err = ERR_INIT;
	if (!fits || check_json_read_all(text, buf_len(&inbox->text), &results, &err) < 0) {
		say(hall, "a host sends %s", fits ? err.msg : "too much");
		crew_peer_hang_up(hall->crew, id);
		drop_peer(hall, id);
		return;
	}
	check_json_host(text, buf_len(&inbox->text), name, sizeof(name));
	count(hall, name, &results);
}

static void on_peer_down(void *arg, uint64_t id, bool dead UNUSED)
{
	struct meeting_hall *hall = arg;
	drop_peer(hall, id);
	leave_if_alone(hall);
}

/* Ctrl-C: whoever has not come is not waited for. */
static void on_enough(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct meeting_hall *hall = arg;
	if (!hall->closed)
		close_roll(hall);
}

/* ---- on the others ---- */

static void on_up(void *arg)
{
	struct meeting_hall *hall = arg;
	AUTO(buf_done) struct buf text = BUF_INIT;
	check_json_write_all(hall->meet->name, hall->results, &text);
	buf_append_char(&text, '\0');
	crew_send(hall->crew, buf_data(&text), buf_len(&text));
	hall->told = true;
	say(hall, "the table of all %u hosts is shown at %s", hall->meet->nodes,
	    hall->meet->rdzv.endpoint_text);
	/* The first host may have begun to wait only now. */
	wait_until(hall, ns_add(clock_now_ns(), ns_add(hall->wait_ns, GRACE_NS)));
}

static void give_up(struct meeting_hall *hall, const char *why)
{
	if (hall->closed)
		return;
	hall->closed = true;
	hall->status = -1;
	say(hall, "%s; this is what was found here", why);
	event_base_loopbreak(hall->base);
}

static void on_bytes(void *arg, const void *data, size_t len)
{
	struct meeting_hall *hall = arg;
	enum check_state worst;
	struct err err = ERR_INIT;
	if (!inbox_take(&hall->verdict, data, len)) {
		give_up(hall, "the host that shows the table sends too much");
	} else if (!hall->verdict.whole) {
		return;
	} else if (check_json_read_verdict(buf_str(&hall->verdict.text),
					   buf_len(&hall->verdict.text), &worst, &err) < 0) {
		give_up(hall, err.msg);
	} else {
		hall->closed = true;
		hall->status = code_of(worst);
		event_base_loopbreak(hall->base);
	}
}

static void on_down(void *arg, const char *why)
{
	AUTO_FREE char *text = mem_printf("the host that shows the table is gone: %s", why);
	give_up(arg, text);
}

static void on_barred(void *arg, const char *why)
{
	give_up(arg, why);
}

static void on_superseded(void *arg)
{
	give_up(arg, "another host shows the table by now");
}

static void on_drained(void *arg UNUSED)
{
}

static const struct crew_handler crew_handler = {
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

/* ---- both ---- */

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct meeting_hall *hall = arg;
	AUTO(buf_done) struct buf tried = BUF_INIT;
	AUTO_FREE char *why = NULL;
	if (hall->closed) {
		event_base_loopbreak(hall->base); /* a host that does not take the verdict */
	} else if (hall->first) {
		close_roll(hall);
	} else {
		crew_explain(hall->crew, &tried);
		why = hall->told ? mem_strdup("the host that shows the table does not answer")
				 : mem_printf("found no host that shows the table: %s",
					      buf_str(&tried));
		give_up(hall, why);
	}
}

static void show(struct meeting_hall *hall, bool json)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (json)
		check_json_write_hosts(&hall->roll.across, &text);
	else
		across_print(&hall->roll.across, &text);
	fputs(buf_str(&text), stdout);
}

int doctor_meet(const struct command *self, const struct doctor_meet *meet, uint64_t begin_ns,
		const struct check_list *results, bool json)
{
	struct meeting_hall hall = { .self = self,
				     .meet = meet,
				     .results = results,
				     .base = event_base_new(),
				     .begin_ns = begin_ns,
				     .wait_ns = meet->wait_ns,
				     .roll = ROLL_INIT };
	hall.roll.expected = meet->nodes;
	if (meet->names.count)
		strv_add_all(&hall.roll.names, meet->names.items);
	hall.late = evtimer_new(hall.base, on_late, &hall);
	hall.enough = evsignal_new(hall.base, SIGINT, on_enough, &hall);
	if (!meet->by_engine)
		say(&hall, "meets %u hosts at %s", meet->nodes, meet->rdzv.endpoint_text);
	wait_until(&hall, ns_add(begin_ns, meet->wait_ns));
	hall.crew = crew_new(hall.base, &meet->rdzv, &crew_handler, &hall);
	event_base_dispatch(hall.base);
	crew_free(hall.crew);
	event_free(hall.late);
	event_free(hall.enough);
	event_base_free(hall.base);
	if (hall.first && hall.status >= 0)
		show(&hall, json);
	map_foreach(entry, &hall.peers)
	{
		struct inbox *inbox = entry->value;
		buf_done(&inbox->text);
		free(inbox);
	}
	map_done(&hall.peers);
	buf_done(&hall.verdict.text);
	roll_done(&hall.roll);
	return hall.status;
}
