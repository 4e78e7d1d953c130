/* The simulator: agents and their coordinators, the real state machines, in virtual time on a
 * network that delays, cuts, half-opens and heals, with hosts that die, freeze and come back.
 * Everything follows from one seed, so that any run can be repeated.
 *
 * It checks the invariants (invariants.c lists them) after every step; the run ends at the first
 * that does not hold. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "base/buf.h"

#define SIM_ASKERS_MAX 1000

enum sim_mode {
	SIM_MODE_ANY,	    /* the seed decides */
	SIM_MODE_ENDPOINT,  /* one endpoint, no other process can take over */
	SIM_MODE_ENDPOINTS, /* two or three */
	SIM_MODE_ARBITER,   /* a service such as etcd elects the coordinator and counts epochs */
};

struct sim_options {
	uint32_t agents; /* 0: a few, the seed decides */
	uint32_t askers; /* commands that ask all hosts; 0: with faults in every third world */
	uint64_t seed;
	bool faults;
	bool notices; /* in every world; else with faults in every third */
	bool checks;  /* all nodes check themselves and their wires, and are well */
	bool pace;    /* workers tell steps, and hosts compare them; one may be slow */
	bool silence; /* workers fall silent, all of them or all but those of one host */
	enum sim_mode mode;
};

#define SIM_WHY_MAX 256

struct sim_result {
	bool broken;
	char why[SIM_WHY_MAX]; /* the invariant that broke, with names and numbers */
	uint64_t steps;
	uint64_t virtual_ns;
	uint64_t formed_ns; /* from the start to the first round, if there is one */
	uint32_t formed;    /* of many runs: those with a round */
	uint32_t agents;
	uint32_t rounds;	 /* formed */
	uint32_t restarts;	 /* charged */
	uint32_t resumed;	 /* groups that went on from kept state */
	uint32_t takeovers;	 /* coordinators beyond the first */
	uint32_t faults;	 /* injected */
	uint32_t outcomes[8];	 /* by enum outcome_kind */
	uint32_t questions;	 /* to all hosts, asked */
	uint32_t complete;	 /* of those: every host answered or was named */
	uint32_t asked_messages; /* the most to and from one agent for one question */
	uint32_t named;		 /* nodes that were called unfit */
	uint32_t notices;	 /* to leave or to save together */
	uint32_t left, saved;	 /* workers that did so */
	uint32_t late;		 /* verdicts that a worker holds the others up */
	uint32_t judged;	 /* rounds with a slow one that lasted long enough for one */
	uint32_t looks;		 /* of hosts, because all workers were silent */
	uint64_t paces;		 /* PACEs to another process or coordinator */
	uint32_t untaken;	 /* the most pieces that were under way to an asker */
};

/* With a trace, every step except plain PINGs adds a line. */
void sim_run(const struct sim_options *options, struct buf *trace, struct sim_result *ret_result);

#endif
