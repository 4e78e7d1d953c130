#include "batch/pipe/pipe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "batch/pipe/stdin_blocks.h"
#include "proto/args/words.h"

static struct block_rules make_rules(const struct arg_options *options)
{
	return (struct block_rules){
		.size = options->block_size,
		.records = options->max_args > 0 ? (uint64_t)options->max_args : 0,
		.lines = options->max_lines > 0 ? (uint64_t)options->max_lines : 0,
		.recstart = options->recstart,
		.recend = options->recend,
		.regexp = options->regexp,
		.remove = options->remove_separators,
		.header = options->header,
	};
}

/* Before anything runs: a bad rule, and a template with a place that has no meaning. */
static int check(const struct pipe_orders *pipe, struct err *err)
{
	struct block_cutter cutter;
	int r = block_cutter_init(&cutter, &pipe->rules, err);
	if (r >= 0)
		block_cutter_done(&cutter);
	return r;
}

int pipe_orders_init(struct pipe_orders *pipe, const struct batch_config *config, int argc,
		     char *const *argv, struct orders *orders, size_t places, struct err *err)
{
	struct arg_words words;
	int r = arg_words_parse(&words, argc, argv, err);
	if (r < 0)
		return r;
	if (words.list_count || config->args.files.count)
		return err_set(err, EINVAL,
			       "--pipe gives standard input to the command: arguments (:::, -a) "
			       "are not supported with it");
	if (words.command_count == 0)
		return err_set(err, EINVAL, "--pipe needs a command");
	*pipe = (struct pipe_orders){ .rules = make_rules(&config->args),
				      .command = arg_words_command(&words, config->args.quote),
				      .orders = orders,
				      .inputs = NEW_ARRAY(int, places + 1) };
	pipe->filling = (struct arg_filling){
		.command = { .text = pipe->command,
			     .replace = config->args.replace,
			     .closed = true },
		.tag = config->args.tag_text ? config->args.tag_text
		       : config->args.tag    ? "{}"
					     : NULL,
		.output = config->results && strchr(config->results, '{') ? config->results : NULL,
	};
	r = check(pipe, err);
	for (size_t i = 0; r >= 0 && i < places; i++) {
		pipe->inputs[i] = -1;
		r = orders_add_filled(orders, &pipe->filling, err);
	}
	return r;
}

void pipe_orders_done(struct pipe_orders *pipe)
{
	for (size_t i = 0; pipe->inputs && i < pipe->orders->count; i++)
		fd_close(&pipe->inputs[i]);
	free(pipe->inputs);
	free(pipe->command);
	*pipe = (struct pipe_orders){ .inputs = NULL };
}

int pipe_orders_put(struct pipe_orders *pipe, struct batch_order *order, int *input,
		    struct err *err)
{
	uint32_t place = order->item.index;
	uint64_t number = ++pipe->count;
	int r = orders_refill(pipe->orders, place, &pipe->filling, number, err);
	if (r < 0)
		return r;
	struct order *made = &pipe->orders->items[place];
	made->id = mem_printf("block-%llu", (unsigned long long)number);
	fd_close(&pipe->inputs[place]);
	pipe->inputs[place] = fd_take(input);
	*order = pipe->model;
	order->item.index = place;
	order->number = number - 1;
	return 0;
}

int pipe_orders_input(const struct pipe_orders *pipe, const struct batch_order *order)
{
	return pipe->inputs[order->item.index];
}

void pipe_orders_drop(struct pipe_orders *pipe, const struct batch_order *order)
{
	fd_close(&pipe->inputs[order->item.index]);
}

int pipe_orders_print(struct pipe_orders *pipe, struct err *err)
{
	AUTO(buf_done) struct buf block = BUF_INIT;
	AUTO(block_cutter_done) struct block_cutter cutter;
	int r = block_cutter_init(&cutter, &pipe->rules, err);
	while (r >= 0 && (r = stdin_blocks_next(STDIN_FILENO, &cutter, &block, err)) > 0) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		r = orders_refill(pipe->orders, 0, &pipe->filling, ++pipe->count, err);
		order_append_command(&pipe->orders->items[0], 0, &text);
		printf("%s\n", buf_str(&text));
	}
	return r;
}
