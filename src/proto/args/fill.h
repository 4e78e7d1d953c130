/* Orders from a template and rows of arguments: one row each, or several. */
#ifndef PROTO_ARGS_FILL_H
#define PROTO_ARGS_FILL_H

#include "base/buf.h"
#include "proto/args/sources.h"
#include "proto/orders.h"

/* Templates: text with places for arguments, as in GNU parallel and hyperfine.
 *
 *     {}  {.}  {/}  {//}  {/.}      all arguments; without extension, base name, directory, base
 *                                   name without extension
 *     {1} {2/} {-1}                 one of them, from the front or from the end, in any form
 *     {name} {name.}                a column named by --header, or a parameter
 *     {#}  {%}                      the number of the order, the slot it runs in
 *
 * Other braces stay as they are, but "{= perl =}" is refused. */
struct arg_template {
	const char *text;
	const char *replace;		/* stands for "{}" (-I); NULL: "{}" */
	const struct strv *names;	/* of the row's columns; may be NULL */
	const struct strv *param_names; /* of the parameters; may be NULL */
	bool raw;			/* arguments are put in as they are, else quoted */
	bool context;			/* -X: the word around {} is repeated for every argument */
	bool closed;			/* nothing is appended when {} is missing */
};

/* What a template is filled with. Parameters are never quoted: hyperfine does not. */
struct arg_values {
	const struct arg_row *row, *params; /* `params` may be NULL */
	size_t number;			    /* of the order, from 1 */
};

/* Appends the text; "{%}" becomes ORDER_SLOT_MARK. Returns whether there was one. */
bool arg_template_expand(const struct arg_template *template, const struct arg_values *values,
			 struct buf *out);

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
