/* What roster.c (what pages are told) and roster_rows.c (what they ask for) share. */
#ifndef PROTO_DASH_ROSTER_PRIVATE_H
#define PROTO_DASH_ROSTER_PRIVATE_H

#include "proto/dash/roster.h"
#include "proto/json_out.h"

struct roster_row {
	uint64_t wall_us; /* of the last run */
	uint64_t started_ms : 62;
	bool timed : 1, changed : 1; /* changed: not told yet */
	uint32_t runs;		     /* that went well */
	uint16_t attempts, host;     /* host: from 1; 0: none */
	uint8_t state;
};

struct roster_failure {
	size_t index;
	char *how, *tail;
};

struct roster_second {
	uint64_t number, ends;
};

struct roster {
	size_t count;
	roster_order_fn *order;
	void *arg;
	uint64_t start_ns, start_ms;
	struct roster_row *rows;
	uint64_t states[ROSTER_STATE_COUNT];
	struct strv hosts;
	uint64_t bins[ROSTER_BINS];
	struct roster_second seconds[ROSTER_RATE_S];
	struct roster_failure failures[ROSTER_FAILURES]; /* a ring */
	uint64_t failure_count;				 /* of all */
	/* What was not told yet. */
	size_t changed[ROSTER_ROWS], changed_count;
	bool many; /* more than these */
	bool bin_changed[ROSTER_BINS];
	uint64_t failures_told;
	struct buf told_sum;
};

const char *roster_state_name(enum roster_state state);

/* The elements of an open array. */
void roster_put_row(const struct roster *roster, size_t index, struct json_out *out);
/* Its id and command; as further elements, and its labels, or as members of an object. */
void roster_put_order(const struct order *order, bool elements, struct json_out *out);

#endif
