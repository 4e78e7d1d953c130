/* Orders from a template and rows of arguments: one row each, or several. */
#ifndef PROTO_ARGS_FILL_H
#define PROTO_ARGS_FILL_H

#include "proto/args/arg_template.h"
#include "proto/orders.h"

#define ARG_LINE_MAX 131000 /* bytes of a command; the kernel takes 128 KiB as one argument */

enum arg_fill {
	ARG_FILL_ROW,	 /* max_rows rows an order */
	ARG_FILL_LINE,	 /* as many rows as fit (--xargs) */
	ARG_FILL_SPREAD, /* as many as fit, and all jobs get about the same (-m, -X) */
};

struct arg_filling {
	struct arg_template command;	   /* an empty text: the arguments are the command */
	const struct arg_sources *sources; /* NULL: one order for each set of parameters */
	const struct arg_sources *params;  /* NULL: none */
	const char *tag;		   /* template of extra->tag; NULL: none */
	const char *output;		   /* template of extra->output_path; NULL: none */
	enum arg_fill fill;
	size_t max_rows;  /* 0: one, or as many as fit */
	size_t max_chars; /* 0: ARG_LINE_MAX */
	size_t jobs;	  /* for SPREAD */
	bool drop;	  /* the row is read, not used (-N0) */
};

int orders_add_filled(struct orders *orders, const struct arg_filling *filling, struct err *err);

/* Fills the place of an order that is over, with one empty argument, for the order of
 * this number. */
int orders_refill(struct orders *orders, size_t index, const struct arg_filling *filling,
		  uint64_t number, struct err *err);

/* "words ::: a b ::: x y": the words joined by blanks are the command, all combinations of the
 * arguments are orders. */
int orders_add_template(struct orders *orders, int argc, char *const *argv, struct err *err);

#endif
