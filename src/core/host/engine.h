/* Engines: Slurm and the like, which start muster on many hosts and tell each its place through the
 * environment. This module turns that environment into the settings of a job, so that `muster run`
 * needs no options there.
 *
 * What the user gives wins: an engine fills in only what is missing. One table (engine.c) has all
 * engines; each is a file of its own. Pure. */
#ifndef CORE_HOST_ENGINE_H
#define CORE_HOST_ENGINE_H

#include "base/err.h"
#include "base/strv.h"

#define ENGINE_ENDPOINTS 3 /* first nodes that may coordinate, where an engine lists the nodes */

/* What the user gave, by options or their variables. */
struct engine_asked {
	uint32_t min_nodes, max_nodes; /* 0: not given */
	bool rendezvous;   /* how nodes find each other: any of the following, a backend, a rank */
	bool alone;	   /* --standalone */
	bool place;	   /* where: an endpoint, a master, or a backend that needs another one */
	int64_t node_rank; /* -1: not given */
	const char *hosts_file; /* what /etc/hosts says; NULL: nothing */
	/* the title of the slurmstepd that we descend from, "slurmstepd: [71.2]"; NULL: none is
	 * seen. The environment may not say that we are in a step */
	const char *stepd;
};

/* What the engine adds to it. */
struct engine_settings {
	const char *engine; /* its name; NULL: there is none */
	bool settles;	    /* the fields up to node_rank are settled; else as given */
	uint32_t min_nodes, max_nodes;
	char *endpoint; /* for --rdzv-endpoint; NULL: one node needs none, or there is a master */
	char *master_addr; /* of the node of rank 0, which coordinates; NULL: see endpoint */
	uint16_t master_port;
	char *run_id;
	int64_t node_rank; /* -1: any */
	/* the program that signals every process of this host's part in the job; NULL: none does */
	const char *signaller;
	bool hosts_are_final;	  /* nobody starts one again that was lost */
	bool munge;		  /* its hosts have munge, which tells users apart */
	const char *more_cpus;	  /* how to ask for more CPUs; NULL: unknown */
	const char *more_shm;	  /* how to get a larger /dev/shm; NULL: unknown */
	uint64_t lookup_delay_ns; /* before the names of other nodes are looked up */
	char *notice;		  /* what the user should know; NULL: nothing */
	char *warning;		  /* the same for what is probably wrong */
};

#define ENGINE_SETTINGS_INIT ((struct engine_settings){ .node_rank = -1 })

/* Whether the environment tells of one; only then engine_detect() needs `hosts_file`. */
bool engine_is_here(char *const *environment);

/* Finds the engine whose environment this is, if any. -EINVAL: its settings cannot be used, and
 * `err` says what to change; then nothing is returned. */
int engine_detect(char *const *environment, const struct engine_asked *asked,
		  struct engine_settings *ret_settings, struct err *err);

/* For --slurm: the command that starts what is appended to it on every node of the Slurm job whose
 * batch script has this environment. 1 with the command; 0: this is a step, so that has happened;
 * -EINVAL: this is not a job of Slurm. */
int engine_slurm_spread(char *const *environment, struct strv *ret_command, struct err *err);

void engine_settings_done(struct engine_settings *settings);

#endif
