/* Finds the number of a training step in a line that a worker printed, with a pattern of the user:
 * `step (\d+)`, or `step (\d+)/(\d+)` with the number of steps in all.
 *
 * The pattern is a small regular expression in the form that Python and grep -P use:
 *
 *     .  \d \D \s \S \w \W  [a-z_] [^...]  x* x+ x?  a|b  (...)  (?:...)  ^  $  \ before any sign
 *
 * The first group is the step, the second one, if there is one, the total. Matching takes time in
 * proportion to the length of the line and of the pattern, whatever a worker prints: all ways to
 * match are followed side by side, none is tried again. Pure; no allocation. */
#ifndef CORE_LINES_STEP_PATTERN_H
#define CORE_LINES_STEP_PATTERN_H

#include "base/err.h"

#define STEP_PATTERN_MAX 128   /* bytes of a pattern */
#define STEP_PATTERN_LINE 2048 /* of a line that are looked at */
#define STEP_PATTERN_GROUPS 2
#define STEP_PATTERN_CODE (3 * STEP_PATTERN_MAX)

struct byte_set {
	uint64_t bits[4];
};

struct step_instruction {
	uint8_t op;
	int16_t a, b; /* where to go on, relative to here; of a set: its index */
};

/* Fields are private. */
struct step_pattern {
	struct step_instruction code[STEP_PATTERN_CODE];
	struct byte_set sets[STEP_PATTERN_MAX];
	uint16_t length, set_count, group_count;
	struct byte_set first; /* bytes with which a match can begin */
	bool skips;	       /* a match begins with one of these */
};

/* -EINVAL with the reason. */
int step_pattern_parse(struct step_pattern *ret_pattern, const char *text, struct err *err);

/* The numbers in the leftmost match; false if there is none, or no number of a step in it.
 * *ret_total is 0 without a second group. */
bool step_pattern_find(const struct step_pattern *pattern, const void *line, size_t len,
		       uint64_t *ret_step, uint64_t *ret_total);

#endif
