/* One host's part when hosts tell one of them what their checks found (muster doctor, in a step of
 * Slurm or with --nnodes): whether to wait, to show the table or to give up. Pure; the shell is
 * cli/doctor/doctor_meet.c.
 *
 *     assembly_step(&assembly, &event, now_ns, &actions);
 *
 *     SEARCHING --UP--> TOLD --VERDICT--> OVER
 *         |  \____________\___ too late, or nobody to tell: GIVE_UP
 *     COORDINATE --> LEADING --all have told, too late, ENOUGH--> LEAVING --nobody is left--> OVER
 */
#ifndef CORE_CHECKS_ASSEMBLY_H
#define CORE_CHECKS_ASSEMBLY_H

#include "base/actions.h"
#include "base/clock.h"
#include "core/checks/roll.h"

#define ASSEMBLY_LEAVE_NS (3 * NS_PER_S)  /* for the others to hear the verdict */
#define ASSEMBLY_GRACE_NS (10 * NS_PER_S) /* for the verdict, after the time for all to come */

enum assembly_event_type {
	ASSEMBLY_EV_COORDINATE, /* name, results: this host shows the table */
	ASSEMBLY_EV_UP,		/* there is a link to the one that does */
	ASSEMBLY_EV_VERDICT,	/* worst */
	ASSEMBLY_EV_DOWN,	/* why: that link is gone */
	ASSEMBLY_EV_BARRED,	/* why: it can never work, or makes no sense */
	ASSEMBLY_EV_SUPERSEDED, /* another shows the table */
	ASSEMBLY_EV_PEER,	/* peer, name: the address of a host, with a port */
	ASSEMBLY_EV_PEER_TOLD,	/* peer, name, results */
	ASSEMBLY_EV_PEER_BAD,	/* peer: what it sends makes no sense */
	ASSEMBLY_EV_PEER_DOWN,	/* peer */
	ASSEMBLY_EV_ENOUGH,	/* the user waits no longer */
	ASSEMBLY_EV_TIMER,	/* why: what the search has tried */
};

struct assembly_event {
	enum assembly_event_type type;
	uint64_t peer;
	const char *name, *why;
	struct check_list *results; /* empty afterwards, if they counted */
	enum check_state worst;
};

enum assembly_action_type {
	ASSEMBLY_TELL,	  /* what was found here */
	ASSEMBLY_CAME,	  /* name: one more host has told */
	ASSEMBLY_VERDICT, /* peer: send it `worst` */
	ASSEMBLY_HANG_UP, /* peer */
	ASSEMBLY_GIVE_UP, /* why: nobody has what was found here; OVER follows */
	ASSEMBLY_OVER,
};

/* Texts live as long as the assembly, or the event. */
struct assembly_action {
	enum assembly_action_type type;
	uint64_t peer;
	const char *name, *why;
};

ACTIONS_OF(assembly);

enum assembly_state {
	ASSEMBLY_SEARCHING,
	ASSEMBLY_TOLD,
	ASSEMBLY_LEADING,
	ASSEMBLY_LEAVING,
	ASSEMBLY_ENDED,
};

struct assembly_peer {
	uint64_t id;
	char *host; /* its address */
	bool here, told;
};

/* Fields are private, but the roll and the verdict, which the shell shows. */
struct assembly {
	enum assembly_state state;
	uint64_t begin_ns, wait_ns, deadline_ns;
	struct roll roll;	/* on the host that shows the table */
	enum check_state worst; /* the verdict */
	bool gave_up;
	char *why;
	struct assembly_peer *peers;
	size_t count, cap;
};

/* So many hosts are to come in `wait_ns` from `begin_ns` on, when the checks here began; their
 * names, if they are known. */
void assembly_init(struct assembly *assembly, uint32_t expected, const struct strv *names,
		   uint64_t begin_ns, uint64_t wait_ns);
void assembly_done(struct assembly *assembly);

/* Appends to the actions. */
void assembly_step(struct assembly *assembly, const struct assembly_event *event, uint64_t now_ns,
		   struct assembly_actions *actions);

/* When ASSEMBLY_EV_TIMER is due. */
static inline uint64_t assembly_deadline_ns(const struct assembly *assembly)
{
	return assembly->deadline_ns;
}

/* Whether this host shows the table. */
static inline bool assembly_shows(const struct assembly *assembly)
{
	return assembly->roll.across.count > 0 && !assembly->gave_up;
}

#endif
