/* The nodes of a job as the coordinator here saw them when the last round formed: what their checks
 * found, who was not fit, and why. For the report. */
#ifndef RUN_CHECKS_NODE_TABLE_H
#define RUN_CHECKS_NODE_TABLE_H

#include "base/buf.h"
#include "core/rounds/coordinator.h"

#define NODE_TABLE_MAX 1024 /* rows; beyond that only of nodes that are not fit */

struct json_out;

struct node_row {
	char name[MSG_NAME_MAX];
	bool in_round;
	bool unfit;
	char why[MSG_TEXT_MAX];
	struct check_digest checks;
};

struct node_table {
	struct node_row *rows;
	size_t count, cap;
};

#define NODE_TABLE_INIT ((struct node_table){ .rows = NULL })
void node_table_done(struct node_table *table);

/* After a round has formed. A node that was not fit and is gone keeps its row. Without checks and
 * strikes there are no rows. */
void node_table_update(struct node_table *table, const struct coordinator *coordinator);

/* The array "nodes"; nothing if there are no rows. */
void node_table_json(const struct node_table *table, struct json_out *out);

/* The names of those that are not fit, with commas and without domains, as Slurm's --exclude takes
 * them. Returns how many. */
size_t node_table_unfit(const struct node_table *table, struct buf *out);

#endif
