/* Reports of a comparison, whose rows compare_arrange() has put in order: for a terminal, for
 * programs, for a browser, for CI. Every report appends text to a buffer. */
#ifndef BATCH_COMPARE_REPORT_H
#define BATCH_COMPARE_REPORT_H

#include "batch/compare/compare.h"

struct compare_style {
	bool colour; /* ANSI colours */
	bool utf8;   /* line drawing; otherwise ASCII */
	bool all;    /* every order; otherwise long lists show only those that changed */
	int width;   /* characters that fit into a line of the table; 0: no limit */
};

/* One table per metric, from the largest ratio to the smallest, and a summary. */
void compare_table(const struct comparison *comparison, const struct compare_style *style,
		   struct buf *out);

/* Everything, unrounded: see muster-compare(1) for the keys. */
void compare_json(const struct comparison *comparison, struct buf *out);

void compare_markdown(const struct comparison *comparison, const struct compare_style *style,
		      struct buf *out);

/* One self-contained page. */
void compare_html(const struct comparison *comparison, struct buf *out);

/* A test case per order and metric; a regression is a failure. */
void compare_junit(const struct comparison *comparison, struct buf *out);

/* ---- what the reports share ---- */

/* Whether a row belongs in a short report: it changed, or the list is short. */
bool compare_shows(const struct comparison *comparison, const struct compare_row *row, bool all);

/* "slower", or "undecided: about 12 more runs", "undecided: counts come from different sources". */
void compare_verdict(const struct compare_row *row, struct buf *out);

/* "3 slower, 1 faster, 40 same, 2 undecided; geometric mean 1.012; a change is more than 1.00 %" */
void compare_summarise(const struct comparison *comparison, enum metric metric, struct buf *out);

#endif
