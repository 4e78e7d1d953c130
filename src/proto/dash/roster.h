/* What the page of a batch knows: the state of each order, how the last ones failed, how long runs
 * took. Pure; the shell says what happens (batch/page).
 *
 * Pages are told JSON. Everything:
 *
 *     {"all":true,"now":MS,"n":ORDERS,"sum":{…},"times":[BIN,RUNS,…],"failures":[{…},…]}
 *
 * and then what has changed: the same members without "all" and "n", each only if it changed;
 * "failures" are those since, "times" the bins that differ, and "rows" the orders that changed,
 * [index,state,attempts,runs,µs,host,started ms]. "many":true instead of rows: more changed than
 * ROSTER_ROWS, and the page asks again for those that it shows. It never gets the whole list: it
 * asks for a window of what a filter lets through (struct roster_query), so that what a page costs
 * does not grow with the list. */
#ifndef PROTO_DASH_ROSTER_H
#define PROTO_DASH_ROSTER_H

#include "base/bytes.h"
#include "base/clock.h"
#include "proto/orders.h"
#include "proto/result.h"

#define ROSTER_ROWS 100	      /* told of at a time, and in a window */
#define ROSTER_FAILURES 100   /* kept: the last ones */
#define ROSTER_TAIL_MAX 2048  /* bytes of an output */
#define ROSTER_TEXT_MAX 400   /* bytes of a command, an id, labels, a host */
#define ROSTER_HOSTS_MAX 4096 /* further ones have no name */
#define ROSTER_QUERY_TEXT 200 /* bytes of a filter */
#define ROSTER_RATE_S 60      /* the throughput is that of these last seconds */
#define ROSTER_BINS 256	      /* 4 to the double: the logarithm of nanoseconds and 2 bits more */

enum roster_state {
	ROSTER_QUEUED,
	ROSTER_RUNNING,
	ROSTER_WAITING, /* for its next run or attempt */
	ROSTER_OK,
	ROSTER_FAILED,
	ROSTER_SKIPPED,
	ROSTER_STATE_COUNT,
};

/* What the shell knows of the whole. */
struct roster_sum {
	const char *state;    /* "running", at the end "done", "failed" or "stopped" */
	uint64_t left_ns;     /* NS_NEVER: not known */
	uint64_t before;      /* orders that an earlier batch has done */
	uint64_t jobs, hosts; /* at a time; 0: not known */
	int exit_code;	      /* -1: it still runs */
};

struct roster_query {
	int state; /* enum roster_state, or -1: all */
	uint64_t from;
	char *text;	    /* in its id, its command or its labels, upper or lower case; or NULL */
	struct strv labels; /* terms of core/batch/label.h */
};

#define ROSTER_QUERY_INIT ((struct roster_query){ .state = -1 })

struct roster;

typedef const struct order *roster_order_fn(void *arg, size_t index);

struct roster *roster_new(size_t count, roster_order_fn *order, void *arg, uint64_t now_ns,
			  uint64_t wall_ms);
void roster_free(struct roster *roster);

/* What happens. An index beyond the list is ignored. `host`: NULL where there is only one. */
void roster_started(struct roster *roster, size_t index, const char *host, uint64_t now_ns);
/* `how`: the words for a failure. `again`: it was stopped, and counts as not run. */
void roster_ended(struct roster *roster, size_t index, const struct result *result, bool final,
		  bool again, const char *how, uint64_t now_ns);
void roster_skipped(struct roster *roster, size_t index);
uint64_t roster_count(const struct roster *roster, enum roster_state state);

/* Orders per second lately. */
double roster_rate(const struct roster *roster, uint64_t now_ns);

/* For a page that knows nothing, after the changes for the others; and for those that know all that
 * was told before. False: nothing has changed. */
void roster_put_all(const struct roster *roster, const struct roster_sum *sum, uint64_t now_ns,
		    struct buf *out);
bool roster_put_changes(struct roster *roster, const struct roster_sum *sum, uint64_t now_ns,
			struct buf *out);

/* {"state":"failed","text":"gcc","label":"lang=C*","from":100}, each optional. -EINVAL: it is not
 * such a text, and why. The caller frees the query in any case. */
int roster_query_parse(struct bytes text, struct roster_query *ret_query, struct err *err);
void roster_query_done(struct roster_query *query);

/* {"count":MATCHES,"from":N,"rows":[[as above…,id,command,labels],…]} */
void roster_put_rows(const struct roster *roster, const struct roster_query *query,
		     struct buf *out);

#endif
