/* What the checks of many hosts say together: who could not be asked, who found something, and who
 * stands out among the others (fitness.h).
 *
 * All of it becomes results of the hosts: "reached" of each, and "compared" of those that answered.
 */
#ifndef CORE_CHECKS_ACROSS_H
#define CORE_CHECKS_ACROSS_H

#include "base/strv.h"
#include "core/checks/check.h"

#define ACROSS_REACHED "reached"
#define ACROSS_COMPARED "compared"
#define ACROSS_NAME_MAX 256
#define ACROSS_NAMES_SHOWN 16 /* hosts that are named with one finding; more are counted */

struct across_host {
	char name[ACROSS_NAME_MAX];
	bool answered;
	struct check_list results;
};

struct across {
	struct across_host *items;
	size_t count, cap;
};

#define ACROSS_INIT ((struct across){ .items = NULL })
void across_done(struct across *across);

/* A host that answered; takes over the results. */
void across_add(struct across *across, const char *name, struct check_list *results);

/* One that could not be asked. */
void across_add_lost(struct across *across, const char *name, const char *remedy, const char *why);

/* Nobody else comes of the `expected` hosts: names those that are missing, as far as `names` (of
 * all of them, or empty) tells, and puts all in the order of their names. */
void across_add_missing(struct across *across, uint32_t expected, const struct strv *names,
			uint64_t waited_ns, const char *remedy);

/* Compares those that answered; once, after all were added. */
void across_compare(struct across *across);

enum check_state across_worst(const struct across *across);

/* A row for each check, each finding with its hosts and its remedy, and a line that counts. */
void across_print(const struct across *across, struct buf *out);

#endif
