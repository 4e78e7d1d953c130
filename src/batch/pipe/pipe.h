/* --pipe: a command that runs once for every block of standard input.
 *
 * The blocks of orders that run, wait or will be repeated are in files; the places for them are
 * used again, so that memory and disk do not depend on how long the input is. */
#ifndef BATCH_PIPE_PIPE_H
#define BATCH_PIPE_PIPE_H

#include "batch/config.h"
#include "proto/args/blocks.h"
#include "proto/args/fill.h"
#include "proto/orders.h"

#define PIPE_PLACES_PER_JOB 3 /* one runs, one waits, one may wait to be tried again */

struct pipe_orders {
	struct block_rules rules;
	char *command;
	struct arg_filling filling;
	struct orders *orders;	  /* the places; borrowed */
	struct batch_order model; /* of every order, but for place and number */
	int *inputs;		  /* block of each place; -1: none */
	uint64_t count;		  /* of blocks so far */
};

/* `argv`: the words of the command. Fills `orders` with `places` orders without a block. */
int pipe_orders_init(struct pipe_orders *pipe, const struct batch_config *config, int argc,
		     char *const *argv, struct orders *orders, size_t places, struct err *err);
void pipe_orders_done(struct pipe_orders *pipe);

/* Makes the order of the next block, in the place that `order` has. Takes over `input`. */
int pipe_orders_put(struct pipe_orders *pipe, struct batch_order *order, int *input,
		    struct err *err);

/* The block of an order; -1: none. Borrowed. */
int pipe_orders_input(const struct pipe_orders *pipe, const struct batch_order *order);

/* The order is over. */
void pipe_orders_drop(struct pipe_orders *pipe, const struct batch_order *order);

/* --dry-run: prints the command of every block. */
int pipe_orders_print(struct pipe_orders *pipe, struct err *err);

#endif
