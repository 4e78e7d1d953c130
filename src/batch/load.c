#include "batch/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "batch/results.h"

void pasts_done(struct pasts *history)
{
	map_foreach(entry, &history->by_hash) free(entry->value);
	map_done(&history->by_hash);
}

static struct past *past_for(struct pasts *history, const char *hash)
{
	struct past *past = map_get(&history->by_hash, hash, strlen(hash));
	if (!past) {
		past = NEW(struct past);
		map_put(&history->by_hash, hash, strlen(hash), past);
	}
	return past;
}

static int remember(void *arg, struct result *result, struct err *err UNUSED)
{
	if (!*result->hash || result->reason == REASON_CANARY)
		return 0;
	struct past *past = past_for(arg, result->hash);
	past->failed = result->reason != REASON_OK && result->reason != REASON_KILLED;
	if (result->reason != REASON_OK || result->warmup)
		return 0;
	if (result->has[RESULT_WALL_NS])
		past->times[past->good % ARRAY_LEN(past->times)] =
			(uint64_t)result->value[RESULT_WALL_NS];
	past->good++;
	if (result->run == past->next_run)
		past->next_run++;
	return 0;
}

int pasts_read(struct pasts *history, const char *path, uint64_t *ret_end, struct err *err)
{
	return results_read(path, remember, history, NULL, ret_end, err);
}

const struct past *pasts_find(const struct pasts *history, const struct order *order)
{
	char hash[ORDER_HASH_TEXT];
	if (history->by_hash.count == 0)
		return NULL;
	order_hash_text(order, hash);
	return map_get(&history->by_hash, hash, strlen(hash));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

uint64_t past_median_ns(const struct past *past)
{
	uint64_t sorted[ARRAY_LEN(past->times)];
	size_t count = MIN(past->good, ARRAY_LEN(past->times));
	if (count == 0)
		return 0;
	memcpy(sorted, past->times, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	return sorted[count / 2];
}

/* ---- from results ---- */

struct failed_load {
	struct orders *orders;
	const struct pasts *history;
	struct map seen;
};

static char **take_words(struct strv *words)
{
	char **items = words->items;
	*words = STRV_INIT;
	return items;
}

static void take_extra(struct order *order, struct result *result)
{
	if (!result->args.count && !result->env.count && !result->labels.count && !result->cwd &&
	    !result->stdin_path && !result->group && !result->source && !*result->variant)
		return;
	struct order_extra *extra = order_extra(order);
	extra->args = result->args;
	extra->arg_names = result->arg_names;
	extra->env = result->env;
	extra->labels = result->labels;
	result->args = result->arg_names = result->env = result->labels = STRV_INIT;
	extra->cwd = result->cwd;
	extra->stdin_path = result->stdin_path;
	extra->group = result->group;
	extra->source = result->source;
	result->cwd = result->stdin_path = result->group = result->source = NULL;
	extra->variant = *result->variant ? mem_strdup(result->variant) : NULL;
}

static int add_failed(void *arg, struct result *result, struct err *err UNUSED)
{
	struct failed_load *load = arg;
	const struct past *past =
		map_get(&load->history->by_hash, result->hash, strlen(result->hash));
	if (!past || !past->failed || map_find(&load->seen, result->hash, strlen(result->hash)))
		return 0;
	map_put(&load->seen, result->hash, strlen(result->hash), load);
	struct order *order = orders_append(load->orders);
	order->line = (uint32_t)load->orders->count;
	order->shell = result->shell;
	result->shell = NULL;
	if (!order->shell)
		order->argv = take_words(&result->argv);
	take_extra(order, result);
	order->cores = result->width;
	order_close(order);
	/* An id that only repeats the hash is computed again. */
	AUTO(buf_done) struct buf derived = BUF_INIT;
	order_append_id(order, &derived);
	if (!str_eq(buf_str(&derived), result->id)) {
		order->id = result->id;
		result->id = NULL;
	}
	return 0;
}

int load_failed(struct orders *orders, const char *path, const struct pasts *history,
		struct err *err)
{
	struct failed_load load = { .orders = orders, .history = history, .seen = MAP_INIT };
	int r = results_read(path, add_failed, &load, NULL, NULL, err);
	map_done(&load.seen);
	return r;
}
