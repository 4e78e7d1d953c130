/* Templates: text with places for arguments, as in GNU parallel and hyperfine.
 *
 *     {}  {.}  {/}  {//}  {/.}      all arguments; without extension, base name, directory, base
 *                                   name without extension
 *     {1} {2/} {-1}                 one of them, from the front or from the end, in any form
 *     {name} {name.}                a column named by --header, or a parameter
 *     {#}  {%}                      the number of the order, the slot it runs in
 *
 * Other braces stay as they are, but "{= perl =}" is refused. */
#ifndef PROTO_ARGS_ARG_TEMPLATE_H
#define PROTO_ARGS_ARG_TEMPLATE_H

#include "base/buf.h"
#include "proto/args/sources.h"

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

/* Refuses what has a meaning in GNU parallel and none here. */
int arg_template_check(const struct arg_template *template, struct err *err);

/* Whether it has a place for arguments, {#} and {%} included: then none are appended. */
bool arg_template_has_place(const struct arg_template *template);

/* Appends the text; "{%}" becomes ORDER_SLOT_MARK. Returns whether there was one. */
bool arg_template_expand(const struct arg_template *template, const struct arg_values *values,
			 struct buf *out);

#endif
