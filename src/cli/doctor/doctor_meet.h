/* `muster doctor` on several hosts that somebody else starts, in a step of Slurm or with --nnodes:
 * the hosts meet as those of a job do, tell one of them what they found, and that one shows the
 * table. */
#ifndef CLI_DOCTOR_DOCTOR_MEET_H
#define CLI_DOCTOR_DOCTOR_MEET_H

#include "cli/command.h"
#include "core/checks/check.h"
#include "core/host/engine.h"
#include "nodes/rendezvous.h"
#include "sys/checks/checks.h"

#define DOCTOR_MEET_NS (60 * NS_PER_S)

struct doctor_meet {
	struct rendezvous_options options; /* as typed */
	uint64_t timeout_ns;		   /* for hosts to come, besides their checks */
	/* Of doctor_meet_plan(). */
	uint32_t nodes;	   /* 1: this host alone */
	uint64_t wait_ns;  /* all of that */
	char *name;	   /* of this host */
	char *endpoint;	   /* unless the user gave one */
	bool by_engine;	   /* Slurm started all of them */
	struct strv names; /* of all hosts, if they are known */
	struct engine_settings engine;
	struct rendezvous rdzv;
};

#define DOCTOR_MEET_INIT \
	((struct doctor_meet){ .options = { .conf = "", \
					    .node_rank = RENDEZVOUS_RANK_UNSET, \
					    .master_port = RENDEZVOUS_PORT_UNSET }, \
			       .timeout_ns = DOCTOR_MEET_NS, \
			       .nodes = 1, \
			       .engine = ENGINE_SETTINGS_INIT, \
			       .rdzv = RENDEZVOUS_INIT })
void doctor_meet_done(struct doctor_meet *meet);

/* How many hosts there are and where they meet, from the options and from Slurm; in a step of Slurm
 * each tries to reach others, too. Returns 0, or the exit code of an error that was told. */
int doctor_meet_plan(const struct command *self, struct doctor_meet *meet,
		     struct checks_spec *spec);

/* Meets the others, for whom this host waits from `begin_ns` on, when its checks began; here or on
 * another host the table is shown. Returns the exit code, or -1: they did not meet, why was said,
 * and nobody has what this host found. */
int doctor_meet(const struct command *self, const struct doctor_meet *meet, uint64_t begin_ns,
		const struct check_list *results, bool json);

#endif
