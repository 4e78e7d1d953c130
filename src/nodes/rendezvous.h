/* How the nodes of a job find each other: the options, checked and complete.
 *
 * Names and defaults are torchrun's (docs/differences.md has the exceptions). `static` is a list of
 * one endpoint whose host is known and whose port the workers' store shares. */
#ifndef NODES_RENDEZVOUS_H
#define NODES_RENDEZVOUS_H

#include "base/strv.h"
#include "base/err.h"
#include "core/rounds/coordinator.h"
#include "net/addr.h"
#include "net/token.h"

#define RENDEZVOUS_C10D_PORT 29400
#define RENDEZVOUS_STATIC_PORT 29500

#define RENDEZVOUS_PORT_UNSET INT64_MIN
#define RENDEZVOUS_RANK_UNSET INT64_MIN

/* The option values as typed; texts are borrowed from argv or the environment. */
struct rendezvous_options {
	const char *nnodes;
	const char *backend;
	const char *endpoint;
	const char *id;
	const char *conf;
	bool standalone;
	int64_t node_rank; /* RENDEZVOUS_RANK_UNSET: not given */
	const char *master_addr;
	int64_t master_port; /* RENDEZVOUS_PORT_UNSET: not given */
	const char *local_addr;
	bool munge; /* the engine's hosts have it: use it if there is no token */
};

enum rendezvous_kind {
	RENDEZVOUS_LOCAL,     /* one node, coordinated in this process, without a socket */
	RENDEZVOUS_ENDPOINTS, /* at one of a list of endpoints */
	RENDEZVOUS_PROGRAM,   /* at the address that a program prints */
};

enum rendezvous_host {
	RENDEZVOUS_HOST_WHO_CAN, /* the node that can listen on an endpoint */
	RENDEZVOUS_HOST_YES,	 /* this node, even if the endpoint's address is not local */
	RENDEZVOUS_HOST_NO,
};

struct rendezvous {
	const char *run_id;
	uint32_t min_nodes, max_nodes;
	enum rendezvous_kind kind;
	const char *backend; /* its name, for display */
	bool is_static;	     /* nodes with given ranks; the workers' store is at the endpoint too */
	bool store_at_endpoint; /* this node coordinates, and the workers\' store shares its port */
	struct addr_name *endpoints;
	size_t endpoint_count;
	enum rendezvous_host host;
	bool is_etcd;
	struct strv program; /* of PROGRAM: its command line without run id and address */
	/* a host of its service, for the route to it; "": unknown */
	char program_reaches[ADDR_HOST_MAX];
	const char *endpoint_text; /* as typed; borrowed, as all texts here */
	const char *conf;	   /* as typed */
	const char *local_addr;	   /* NULL: the one that reaches the coordinator */
	int32_t node_rank;	   /* -1: any */
	bool has_token;
	struct token token;
	bool munge;    /* agents prove that they belong to the same user */
	bool no_guard; /* any process may join, and the user says so */

	enum quorum_rule quorum; /* where another process could coordinate */
	uint64_t join_timeout_ns, last_call_ns, close_timeout_ns;
	uint64_t scale_up_delay_ns, failover_after_ns;
	uint64_t lookup_delay_ns; /* before the first look-up of an endpoint's name */
	uint64_t period_ns;	  /* between two signs of life; 0: by the number of nodes */
	uint32_t lease_periods;
};

#define RENDEZVOUS_INIT ((struct rendezvous){ .kind = RENDEZVOUS_LOCAL, .node_rank = -1 })

/* Whether muster has a backend of that name (`exec:PROGRAM` counts as one). */
bool rendezvous_has_backend(const char *name);

/* -EINVAL: a usage error; any other code: a system error, such as a token file that cannot be read.
 * Takes MUSTER_TOKEN out of the environment, so that no child inherits it. */
int rendezvous_make(const struct rendezvous_options *options, uint32_t min_nodes,
		    uint32_t max_nodes, struct rendezvous *ret_rdzv, struct err *err);
void rendezvous_done(struct rendezvous *rdzv);

/* The time between two signs of life in a job of this many nodes. */
uint64_t rendezvous_period_ns(const struct rendezvous *rdzv, uint32_t max_nodes);

#endif
