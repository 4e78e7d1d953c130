#include "core/rounds/election.h"

#include <string.h>

#include "base/str.h"

struct step {
	struct election *e;
	const struct election_event *event;
	uint64_t now_ns;
	struct election_actions *actions;
};

typedef void handler(struct step *s);

static struct election_action *act(struct step *s, enum election_action_type type)
{
	assert(s->actions->count < ELECTION_ACTIONS_MAX);
	struct election_action *action = &s->actions->items[s->actions->count++];
	*action = (struct election_action){ .type = type, .endpoint = s->e->endpoint };
	return action;
}

static void set_state(struct election *e, enum election_state state)
{
	e->state = state;
	if (state != ELECTION_LEADING)
		e->keep_ns = NS_NEVER;
	if (state != ELECTION_LEADING && state != ELECTION_FOLLOWING) {
		e->read_ns = NS_NEVER;
		e->watching = false; /* begins again from the revision read next */
	}
}

/* A leader must know how the job ended before, if it did, before it says that it leads. */
static bool must_read_past(const struct election *e)
{
	return e->state == ELECTION_LEADING && e->config.fences && e->past_epoch != e->epoch;
}

static bool must_record(const struct election *e)
{
	return e->state == ELECTION_LEADING && e->ruling != RULING_NONE &&
	       e->past.epoch != e->epoch;
}

/* The request that the state waits for, or will send at its time. */
static enum election_request due(const struct election *e, uint64_t now_ns)
{
	static const enum election_request always[ELECTION_STATE_COUNT] = {
		[ELECTION_LOOKING] = ELECTION_READ,
		[ELECTION_STANDING] = ELECTION_GRANT,
		[ELECTION_CAMPAIGNING] = ELECTION_CAMPAIGN,
		[ELECTION_RESIGNING] = ELECTION_REVOKE,
	};
	if (e->asked || now_ns < e->pause_ns)
		return ELECTION_NOTHING;
	if (e->keep_ns <= now_ns)
		return ELECTION_KEEP;
	if (e->read_ns <= now_ns)
		return ELECTION_READ;
	if (must_read_past(e))
		return ELECTION_READ_PAST;
	if (must_record(e))
		return e->past_lease ? ELECTION_RECORD : ELECTION_GRANT_PAST;
	return always[e->state];
}

static void ask(struct step *s)
{
	enum election_request request = due(s->e, s->now_ns);
	if (!request)
		return;
	s->e->asked = request;
	s->e->asked_ns = s->now_ns;
	if (request == ELECTION_READ)
		s->e->changed = false;
	struct election_action *action = act(s, ELECTION_ASK);
	action->request = request;
	action->lease = request == ELECTION_RECORD ? s->e->past_lease : s->e->lease;
	action->epoch = s->e->epoch;
	action->ruling = s->e->ruling;
}

/* From the revision after the one we have seen: no change falls between a read and its watch. */
static void watch(struct step *s)
{
	struct election *e = s->e;
	if (e->watching)
		return;
	e->watching = true;
	e->watch_ns = s->now_ns;
	act(s, ELECTION_WATCH)->from = e->revision + 1;
}

static void say(struct step *s)
{
	struct election *e = s->e;
	struct election_action *action = act(s, ELECTION_ANNOUNCE);
	memcpy(action->text, e->announced, sizeof(action->text));
	action->epoch = e->announced_epoch;
	if (e->state == ELECTION_LEADING && e->config.fences) {
		action->until_ns = e->until_ns;
		action->past = e->past;
	}
}

static void announce(struct step *s, const char *value)
{
	struct election *e = s->e;
	if (e->announced_epoch == e->epoch && str_eq(e->announced, value))
		return;
	size_t len = MIN(strlen(value), sizeof(e->announced) - 1);
	memcpy(e->announced, value, len);
	e->announced[len] = '\0';
	e->announced_epoch = e->epoch;
	say(s);
}

/* The end of a lease that a process before us kept is unknown until we have kept it, too. */
static void announce_own(struct step *s)
{
	const struct election *e = s->e;
	if (!e->config.fences || (e->until_ns && !must_read_past(e)))
		announce(s, e->config.own);
}

static void lead(struct step *s)
{
	struct election *e = s->e;
	if (e->state != ELECTION_LEADING) {
		set_state(e, ELECTION_LEADING);
		/* if a process before us kept it, little time may be left */
		e->keep_ns = s->now_ns;
	}
	e->read_ns = e->changed ? s->now_ns : NS_NEVER;
	announce_own(s);
	watch(s);
}

/* A watch on an etcd member that is cut off stays silent for ever, but a read there fails. So
 * followers read now and then. */
static void follow(struct step *s)
{
	struct election *e = s->e;
	set_state(e, ELECTION_FOLLOWING);
	e->lease = 0; /* a lease without a key ends by itself */
	e->read_ns = e->changed ? s->now_ns : ns_add(s->now_ns, e->config.ttl_ns / 2);
	announce(s, s->event->value);
	watch(s);
}

/* The service answers. */
static void answered(struct step *s)
{
	struct election *e = s->e;
	e->asked = ELECTION_NOTHING;
	if (e->complain_ns != NS_NEVER)
		act(s, ELECTION_ANSWERS);
	e->failures = 0;
	e->complain_ns = NS_NEVER;
	e->pause_ns = 0;
}

static void on_start(struct step *s)
{
	set_state(s->e, ELECTION_LOOKING);
}

static void on_key(struct step *s)
{
	struct election *e = s->e;
	answered(s);
	e->revision = s->event->revision;
	if (!s->event->present) {
		e->lease = 0;
		set_state(e, ELECTION_STANDING);
		return;
	}
	e->epoch = s->event->epoch;
	if (!str_eq(s->event->value, e->config.own)) {
		follow(s);
		return;
	}
	e->lease = s->event->lease;
	lead(s);
}

static void on_granted(struct step *s)
{
	answered(s);
	s->e->lease = s->event->lease;
	s->e->ttl_ns = s->event->ttl_ns;
	s->e->until_ns = ns_add(s->e->asked_ns, s->event->ttl_ns);
	set_state(s->e, ELECTION_CAMPAIGNING);
}

static void on_past(struct step *s)
{
	struct election *e = s->e;
	answered(s);
	e->past = s->event->past;
	e->past_epoch = e->epoch;
	announce_own(s);
}

static void leading_granted(struct step *s)
{
	answered(s);
	s->e->past_lease = s->event->lease;
}

static void on_recorded(struct step *s)
{
	struct election *e = s->e;
	answered(s);
	if (!s->event->alive) {
		set_state(e, ELECTION_LOOKING);
		return;
	}
	e->past = (struct recorded_end){ e->epoch, e->ruling };
	say(s);
}

static void on_won(struct step *s)
{
	struct election *e = s->e;
	answered(s);
	e->epoch = e->revision = s->event->epoch;
	e->ruling = RULING_NONE;
	lead(s);
	e->keep_ns = ns_add(s->now_ns, e->ttl_ns / 3);
}

static void on_kept(struct step *s)
{
	struct election *e = s->e;
	answered(s);
	if (!s->event->alive) {
		set_state(e, ELECTION_LOOKING);
		return;
	}
	e->keep_ns = ns_add(s->now_ns, e->ttl_ns / 3);
	e->until_ns = ns_add(e->asked_ns, e->ttl_ns);
	if (e->config.fences && e->announced_epoch == e->epoch)
		say(s);
	else
		announce_own(s);
}

static void end(struct step *s)
{
	set_state(s->e, ELECTION_ENDED);
	act(s, ELECTION_EXIT);
}

static void on_revoked(struct step *s)
{
	answered(s);
	end(s);
}

static void complain(struct step *s)
{
	struct election *e = s->e;
	if (e->complain_ns != NS_NEVER && s->now_ns < e->complain_ns)
		return;
	e->complain_ns = ns_add(s->now_ns, ELECTION_COMPLAIN_NS);
	act(s, ELECTION_COMPLAIN)->since_ns = s->now_ns - e->failing_ns;
}

/* The outcome of the request is unknown. Reads and keep-alives are just repeated; after the others
 * a read of the key tells. */
static void on_failed(struct step *s)
{
	struct election *e = s->e;
	if (e->failures++ == 0)
		e->failing_ns = s->now_ns;
	e->asked = ELECTION_NOTHING;
	e->endpoint = (e->endpoint + 1) % e->config.endpoints;
	e->watching = false; /* it continues at another endpoint */
	if (e->failures % e->config.endpoints == 0) {
		e->pause_ns = ns_add(s->now_ns, ELECTION_RETRY_NS);
		complain(s);
	}
	if (e->state == ELECTION_STANDING || e->state == ELECTION_CAMPAIGNING)
		set_state(e, ELECTION_LOOKING);
	else if (e->state == ELECTION_LEADING || e->state == ELECTION_FOLLOWING)
		e->read_ns = s->now_ns;
}

/* Tries every endpoint once. */
static void resigning_failed(struct step *s)
{
	struct election *e = s->e;
	e->asked = ELECTION_NOTHING;
	e->endpoint = (e->endpoint + 1) % e->config.endpoints;
	if (++e->failures >= e->config.endpoints)
		end(s);
}

static void on_changed(struct step *s)
{
	s->e->changed = true;
	s->e->read_ns = s->now_ns;
}

/* A watch that keeps ending at once must not load the service. */
static void on_watch_down(struct step *s)
{
	struct election *e = s->e;
	e->watching = false;
	e->read_ns = MAX(s->now_ns, ns_add(e->watch_ns, ELECTION_RETRY_NS));
}

static void on_timer(struct step *s)
{
	(void)s; /* every step sends what is due */
}

static void on_end(struct step *s)
{
	s->e->ruling = s->event->ruling;
}

/* Workers of the job may live as long as the lease, unless its end is on record. */
static void on_resign(struct step *s)
{
	struct election *e = s->e;
	bool fenced = e->config.fences && e->past.epoch != e->epoch;
	if (!e->lease || fenced) {
		end(s);
		return;
	}
	set_state(e, ELECTION_RESIGNING);
	e->asked = ELECTION_NOTHING;
	e->failures = 0;
	e->pause_ns = 0;
}

#define WHILE_ALIVE \
	[ELECTION_KEY] = on_key, [ELECTION_FAILED] = on_failed, [ELECTION_TIMER] = on_timer, \
	[ELECTION_RESIGN] = on_resign

/* An empty cell: the event changes nothing in that state. */
static handler *const table[][ELECTION_EVENT_COUNT] = {
	[ELECTION_NEW] = {
		[ELECTION_START] = on_start,
		[ELECTION_RESIGN] = on_resign,
	},
	[ELECTION_LOOKING] = {
		WHILE_ALIVE,
	},
	[ELECTION_FOLLOWING] = {
		WHILE_ALIVE,
		[ELECTION_CHANGED] = on_changed,
		[ELECTION_WATCH_DOWN] = on_watch_down,
	},
	[ELECTION_STANDING] = {
		WHILE_ALIVE,
		[ELECTION_GRANTED] = on_granted,
	},
	[ELECTION_CAMPAIGNING] = {
		WHILE_ALIVE,
		[ELECTION_WON] = on_won,
	},
	[ELECTION_LEADING] = {
		WHILE_ALIVE,
		[ELECTION_KEPT] = on_kept,
		[ELECTION_PAST] = on_past,
		[ELECTION_GRANTED] = leading_granted,
		[ELECTION_RECORDED] = on_recorded,
		[ELECTION_END] = on_end,
		[ELECTION_CHANGED] = on_changed,
		[ELECTION_WATCH_DOWN] = on_watch_down,
	},
	[ELECTION_RESIGNING] = {
		[ELECTION_REVOKED] = on_revoked,
		[ELECTION_FAILED] = resigning_failed,
		[ELECTION_TIMER] = on_timer,
	},
	[ELECTION_ENDED] = { NULL },
};
static_assert(ARRAY_LEN(table) == ELECTION_STATE_COUNT, "every state needs a row");

void election_init(struct election *election, const struct election_config *config)
{
	*election = (struct election){
		.config = *config,
		.complain_ns = NS_NEVER,
		.read_ns = NS_NEVER,
		.keep_ns = NS_NEVER,
		.ttl_ns = config->ttl_ns,
	};
}

void election_step(struct election *election, const struct election_event *event, uint64_t now_ns,
		   struct election_actions *ret_actions)
{
	struct step step = { election, event, now_ns, ret_actions };
	ret_actions->count = 0;
	handler *handle = table[election->state][event->type];
	if (!handle)
		return;
	handle(&step);
	ask(&step);
}

uint64_t election_deadline_ns(const struct election *e)
{
	if (e->asked || e->state == ELECTION_ENDED || e->state == ELECTION_NEW)
		return NS_NEVER;
	bool waits = e->state == ELECTION_LEADING || e->state == ELECTION_FOLLOWING;
	if (waits && !must_read_past(e) && !must_record(e))
		return MAX(e->pause_ns, MIN(e->read_ns, e->keep_ns));
	return e->pause_ns;
}
