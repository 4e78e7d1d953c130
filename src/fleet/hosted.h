/* The agent that a relay starts on its host: `muster run` or `muster batch` with the starter's
 * options, whose output goes up in whole lines. */
#ifndef FLEET_HOSTED_H
#define FLEET_HOSTED_H

#include "base/err.h"
#include "proto/fleet/fleet_msg.h"

struct event_base;
struct hosted;

struct hosted_handler {
	/* OUT, ERR or REPORT. Borrowed for the call. */
	void (*on_output)(void *arg, enum fleet_type type, const void *data, size_t len);
	/* The last callback: all output has come. Free it then. */
	void (*on_ended)(void *arg, const struct exit_status *status);
};

/* What differs between the hosts of a job. */
struct hosted_place {
	uint32_t slots;	   /* 0: as the options say */
	int32_t node_rank; /* -1: any */
	const char *name;  /* of the host, for people */
};

int hosted_start(struct event_base *base, const struct fleet_start *start,
		 const struct hosted_place *place, const struct hosted_handler *handler, void *arg,
		 struct hosted **ret_hosted, struct err *err);
void hosted_signal(struct hosted *hosted, int signal);

/* Pauses or resumes reading its output; it notices when its pipes are full. */
void hosted_hold(struct hosted *hosted, bool hold);
void hosted_free(struct hosted *hosted);

#endif
