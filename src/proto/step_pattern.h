/* Finds the number of a training step in a line that a worker printed, with a regular expression of
 * the user (proto/args/regex.h): `step (\d+)`, or `step (\d+)/(\d+)` with the number of steps in
 * all. */
#ifndef PROTO_STEP_PATTERN_H
#define PROTO_STEP_PATTERN_H

#include "base/err.h"

#define STEP_PATTERN_MAX 128   /* bytes of a pattern */
#define STEP_PATTERN_LINE 2048 /* of a line that are looked at */

struct step_pattern;

/* -EINVAL with the reason. */
int step_pattern_new(const char *text, struct step_pattern **ret_pattern, struct err *err);
void step_pattern_free(struct step_pattern *pattern);

/* The numbers in the leftmost match; false if there is none, or no number of a step in it.
 * *ret_total is 0 without a second group. */
bool step_pattern_find(const struct step_pattern *pattern, const char *line, size_t len,
		       uint64_t *ret_step, uint64_t *ret_total);

#endif
