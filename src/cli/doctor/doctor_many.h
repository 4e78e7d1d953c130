/* `muster doctor` on many hosts: each runs `muster doctor --json` alone, and one table shows what
 * all of them found. Over ssh a relay starts it (fleet/starter.h), which needs no way back; where
 * something else starts muster on each host, it is an order of a batch, of which each host is given
 * one. */
#ifndef CLI_DOCTOR_DOCTOR_MANY_H
#define CLI_DOCTOR_DOCTOR_MANY_H

#include "cli/command.h"
#include "core/checks/across.h"
#include "core/fleet/hosts_options.h"
#include "core/host/engine.h"
#include "nodes/rendezvous.h"
#include "sys/checks/checks.h"

#define DOCTOR_MEET_NS (60 * NS_PER_S)

struct doctor_options {
	struct checks_spec spec;
	bool json;
	struct hosts_options hosts; /* over ssh */
	/* Hosts that meet: as typed. */
	struct rendezvous_options meeting;
	uint64_t meet_timeout_ns; /* for hosts to join, besides their checks */
};

/* ---- doctor_many.c ---- */

/* What the command that a host runs has printed; `why` and `remedy` if those are no results, and
 * then its last words count more than `why`. */
void doctor_add(struct across *across, const char *name, const struct buf *output,
		const struct buf *errors, const char *why, const char *remedy);

/* Prints the table; returns the exit code. */
int doctor_show(const struct across *across, bool json);

/* This host tries those that follow it in the list, around its end. */
void doctor_add_reach(struct strv *reach, const struct strv *names, size_t self);

/* ---- doctor_hosts.c ---- */

/* Returns the exit code, as the next. */
int doctor_on_hosts(const struct command *self, const struct doctor_options *o);
/* On one of these hosts: the others that this one is to reach. */
void doctor_take_place(struct checks_spec *spec);

/* ---- doctor_meet.c ---- */

struct doctor_meeting {
	uint32_t nodes;	   /* 1: this host alone */
	char *name;	   /* of this host */
	char *endpoint;	   /* unless the user gave one */
	bool by_engine;	   /* Slurm started all of them */
	struct strv names; /* of all hosts, if they are known */
	struct engine_settings engine;
	struct rendezvous rdzv;
};

#define DOCTOR_MEETING_INIT \
	((struct doctor_meeting){ \
		.nodes = 1, .engine = ENGINE_SETTINGS_INIT, .rdzv = RENDEZVOUS_INIT })
void doctor_meeting_done(struct doctor_meeting *meeting);

/* How many hosts there are and where they meet, from the options and from Slurm; in a step of Slurm
 * each tries to reach others, too. Returns 0, or the exit code of an error that was told. */
int doctor_plan(const struct command *self, struct doctor_options *o,
		struct doctor_meeting *meeting);

/* Here or on another host the table is shown. Returns the exit code, or -1: nobody has shown one,
 * and why was said. */
int doctor_meet(const struct command *self, const struct doctor_options *o,
		const struct doctor_meeting *meeting);

#endif
