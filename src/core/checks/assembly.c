#include "core/checks/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define REMEDY \
	"start muster doctor there, too, with the same --rdzv-endpoint and token; if it runs " \
	"there, see what it says"

struct step {
	struct assembly *assembly;
	const struct assembly_event *event;
	uint64_t now_ns;
	struct assembly_actions *actions;
};

void assembly_init(struct assembly *assembly, uint32_t expected, const struct strv *names,
		   uint64_t begin_ns, uint64_t wait_ns)
{
	*assembly = (struct assembly){ .roll = ROLL_INIT,
				       .begin_ns = begin_ns,
				       .wait_ns = wait_ns,
				       .deadline_ns = ns_add(begin_ns, wait_ns) };
	assembly->roll.expected = expected;
	for (size_t i = 0; i < names->count; i++)
		strv_add(&assembly->roll.names, names->items[i]);
}

void assembly_done(struct assembly *assembly)
{
	for (size_t i = 0; i < assembly->count; i++)
		free(assembly->peers[i].host);
	free(assembly->peers);
	free(assembly->why);
	roll_done(&assembly->roll);
	*assembly = (struct assembly){ .roll = ROLL_INIT };
}

static struct assembly_action *act(struct step *s, enum assembly_action_type type)
{
	struct assembly_action *action = assembly_actions_add(s->actions);
	*action = (struct assembly_action){ .type = type, .peer = s->event->peer };
	return action;
}

static void end(struct step *s)
{
	s->assembly->state = ASSEMBLY_ENDED;
	act(s, ASSEMBLY_OVER);
}

static void give_up(struct step *s, const char *what, const char *why)
{
	struct assembly *assembly = s->assembly;
	assembly->gave_up = true;
	assembly->why = mem_printf("%s%s", what, why ? why : "");
	act(s, ASSEMBLY_GIVE_UP)->why = assembly->why;
	end(s);
}

/* ---- on the host that shows the table ---- */

static struct assembly_peer *find(const struct assembly *assembly, uint64_t id)
{
	for (size_t i = 0; i < assembly->count; i++)
		if (assembly->peers[i].id == id && assembly->peers[i].here)
			return &assembly->peers[i];
	return NULL;
}

/* A port says nothing: a host that comes again has another. */
static void add_peer(struct step *s)
{
	struct assembly *assembly = s->assembly;
	const char *port = strrchr(s->event->name, ':');
	size_t len = port ? (size_t)(port - s->event->name) : strlen(s->event->name);
	ARRAY_RESERVE(assembly->peers, assembly->count, assembly->cap);
	assembly->peers[assembly->count++] = (struct assembly_peer){
		.id = s->event->peer, .host = mem_strndup(s->event->name, len), .here = true
	};
}

static bool has_told(const struct assembly *assembly, const char *host)
{
	for (size_t i = 0; i < assembly->count; i++)
		if (assembly->peers[i].told && str_eq(assembly->peers[i].host, host))
			return true;
	return false;
}

static bool is_listed(const struct strv *list, const char *host)
{
	for (size_t i = 0; i < list->count; i++)
		if (str_eq(list->items[i], host))
			return true;
	return false;
}

/* Hosts that came and went, or are here and say nothing: they have no name yet. */
static void list_seen(struct assembly *assembly)
{
	struct strv *seen = &assembly->roll.seen;
	for (size_t i = 0; i < assembly->count; i++) {
		const char *host = assembly->peers[i].host;
		if (!has_told(assembly, host) && !is_listed(seen, host))
			strv_add(seen, host);
	}
}

static void leave_if_alone(struct step *s)
{
	const struct assembly *assembly = s->assembly;
	for (size_t i = 0; i < assembly->count; i++)
		if (assembly->peers[i].here)
			return;
	end(s);
}

/* All have told, or no more will. Those that have not are not waited for. */
static void close_roll(struct step *s)
{
	struct assembly *assembly = s->assembly;
	list_seen(assembly);
	roll_close(&assembly->roll, s->now_ns - assembly->begin_ns, REMEDY);
	assembly->worst = across_worst(&assembly->roll.across);
	for (size_t i = 0; i < assembly->count; i++) {
		struct assembly_peer *peer = &assembly->peers[i];
		if (!peer->here)
			continue;
		act(s, peer->told ? ASSEMBLY_VERDICT : ASSEMBLY_HANG_UP)->peer = peer->id;
		peer->here = peer->told;
	}
	assembly->state = ASSEMBLY_LEAVING;
	assembly->deadline_ns = ns_add(s->now_ns, ASSEMBLY_LEAVE_NS);
	leave_if_alone(s);
}

static void count_in(struct step *s)
{
	struct roll *roll = &s->assembly->roll;
	bool counts = roll_add(roll, s->event->name, s->event->results);
	*s->event->results = CHECK_LIST_INIT;
	if (!counts)
		return;
	act(s, ASSEMBLY_CAME)->name = s->event->name;
	if (roll_is_complete(roll))
		close_roll(s);
}

static void on_peer_told(struct step *s)
{
	struct assembly_peer *peer = find(s->assembly, s->event->peer);
	if (!peer || peer->told)
		return;
	peer->told = true;
	count_in(s);
}

static void step_leading(struct step *s)
{
	struct assembly_peer *peer = find(s->assembly, s->event->peer);
	switch (s->event->type) {
	case ASSEMBLY_EV_PEER:
		return add_peer(s);
	case ASSEMBLY_EV_PEER_TOLD:
		return on_peer_told(s);
	case ASSEMBLY_EV_PEER_BAD:
		if (peer)
			act(s, ASSEMBLY_HANG_UP);
		/* fall through */
	case ASSEMBLY_EV_PEER_DOWN:
		if (peer)
			peer->here = false;
		return;
	case ASSEMBLY_EV_ENOUGH:
	case ASSEMBLY_EV_TIMER:
		return close_roll(s);
	default:
		return;
	}
}

static void step_leaving(struct step *s)
{
	struct assembly_peer *peer = find(s->assembly, s->event->peer);
	if (s->event->type == ASSEMBLY_EV_TIMER)
		return end(s); /* a host does not take the verdict */
	if (s->event->type != ASSEMBLY_EV_PEER_DOWN || !peer)
		return;
	peer->here = false;
	leave_if_alone(s);
}

/* ---- on the others ---- */

static void step_searching(struct step *s)
{
	struct assembly *assembly = s->assembly;
	switch (s->event->type) {
	case ASSEMBLY_EV_COORDINATE:
		assembly->state = ASSEMBLY_LEADING;
		return count_in(s);
	case ASSEMBLY_EV_UP:
		assembly->state = ASSEMBLY_TOLD;
		/* The first host may have begun to wait only now. */
		assembly->deadline_ns =
			ns_add(s->now_ns, ns_add(assembly->wait_ns, ASSEMBLY_GRACE_NS));
		act(s, ASSEMBLY_TELL);
		return;
	case ASSEMBLY_EV_TIMER:
		return give_up(s, "found no host that shows the table: ", s->event->why);
	default:
		return;
	}
}

static void step_told(struct step *s)
{
	if (s->event->type == ASSEMBLY_EV_TIMER)
		return give_up(s, "the host that shows the table does not answer", NULL);
	if (s->event->type != ASSEMBLY_EV_VERDICT)
		return;
	s->assembly->worst = s->event->worst;
	end(s);
}

/* ---- both ---- */

/* Nobody will ever show what was found here, until there is a verdict. */
static bool ends_all(struct step *s)
{
	switch (s->event->type) {
	case ASSEMBLY_EV_DOWN:
		give_up(s, "the host that shows the table is gone: ", s->event->why);
		return true;
	case ASSEMBLY_EV_BARRED:
		give_up(s, s->event->why, NULL);
		return true;
	case ASSEMBLY_EV_SUPERSEDED:
		give_up(s, "another host shows the table by now", NULL);
		return true;
	default:
		return false;
	}
}

void assembly_step(struct assembly *assembly, const struct assembly_event *event, uint64_t now_ns,
		   struct assembly_actions *actions)
{
	static void (*const table[])(struct step *) = {
		[ASSEMBLY_SEARCHING] = step_searching,
		[ASSEMBLY_TOLD] = step_told,
		[ASSEMBLY_LEADING] = step_leading,
		[ASSEMBLY_LEAVING] = step_leaving,
	};
	struct step s = { assembly, event, now_ns, actions };
	if (assembly->state == ASSEMBLY_ENDED ||
	    (event->type == ASSEMBLY_EV_TIMER && now_ns < assembly->deadline_ns))
		return;
	if (assembly->state == ASSEMBLY_LEAVING || !ends_all(&s))
		table[assembly->state](&s);
}
