/* How one host of a batch on many finds the coordinator, or becomes it: joins the finder (or what
 * an arbiter names) with the link to the coordinator elsewhere. Pure; the shell is
 * nodes/crew.h.
 *
 *     meeting_step(&meeting, &event, now_ns, &actions);
 *
 * What the shell promises: LISTENING comes first where there are endpoints, and again when an
 * endpoint is had later; TERM comes with an arbiter. Each PROBE is answered as core/rounds/finder.h
 * says. CONNECT makes a link unless one is being made; that leads to LINK_UP or not, and ends in
 * LINK_DOWN. TIMER comes at meeting_deadline_ns() or soon after. */
#ifndef CORE_DEAL_MEETING_H
#define CORE_DEAL_MEETING_H

#include "core/rounds/finder.h"

#define MEETING_RETRY_NS (300 * NS_PER_MS) /* from the end of a link to the next search */

struct meeting_config {
	bool arbiter;		     /* a program names the coordinator; else endpoints do */
	struct finder_config finder; /* LISTENING sets `own` */
};

enum meeting_event_type {
	MEETING_EV_LISTENING, /* index; -1: on none */
	MEETING_EV_ANSWER,    /* index, probe, answer, ballot */
	MEETING_EV_TERM,      /* here */
	MEETING_EV_LINK_UP,
	MEETING_EV_LINK_DOWN, /* also where it could not be made, or was hung up here */
	MEETING_EV_WITHDRAW,  /* after COORDINATE: another has the result file, so search again */
	MEETING_EV_TIMER,
};

struct meeting_event {
	enum meeting_event_type type;
	int32_t index;
	uint32_t probe;
	enum finder_answer answer;
	struct ballot ballot;
	bool here; /* the arbiter named this process */
};

enum meeting_action_type {
	MEETING_DO_PROBE,      /* index, probe */
	MEETING_DO_CONNECT,    /* index; -1: to whom the arbiter named */
	MEETING_DO_COORDINATE, /* here, from now on; comes once, or again after WITHDRAW */
	MEETING_DO_SUPERSEDED, /* another coordinates: it is over for this one */
};

struct meeting_action {
	enum meeting_action_type type;
	int32_t index;
	uint32_t probe;
};

struct meeting_actions {
	struct meeting_action items[FINDER_ENDPOINTS_MAX + 2];
	size_t count;
};

/* Fields are private. */
struct meeting {
	struct meeting_config config;
	struct finder finder;
	bool begun;	   /* the finder */
	bool coordinates;  /* here */
	bool named;	   /* by the arbiter, at last */
	bool up;	   /* the link to the coordinator elsewhere */
	uint64_t retry_ns; /* when to search again; NS_NEVER: no need */
};

void meeting_init(struct meeting *meeting, const struct meeting_config *config);
void meeting_step(struct meeting *meeting, const struct meeting_event *event, uint64_t now_ns,
		  struct meeting_actions *actions);
uint64_t meeting_deadline_ns(const struct meeting *meeting);

/* The answer to a probe, and whether hosts that call are let in. */
static inline bool meeting_coordinates(const struct meeting *meeting)
{
	return meeting->coordinates;
}

#endif
