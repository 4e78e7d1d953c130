#include "batch/load_ab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/batch/repeat.h"
#include "proto/args/fill.h"

#define ONLY_ID "ab"

/* The orders of one command over all arguments. */
static int add_command(struct orders *orders, const char *command, int argc, char *const *args,
		       struct err *err)
{
	if (argc == 0) {
		struct order *order = orders_append(orders);
		order->shell = mem_strdup(command);
		order->line = 1;
		order_close(order);
		return 0;
	}
	AUTO_FREE char **words = NEW_ARRAY(char *, (size_t)argc + 2);
	AUTO_FREE char *first = mem_strdup(command);
	words[0] = first;
	memcpy(words + 1, args, (size_t)argc * sizeof(*words));
	words[argc + 1] = NULL;
	return orders_add_template(orders, argc + 1, words, err);
}

/* Names the orders by their arguments, alike in all variants, and rejects duplicate arguments. */
static int name_orders(struct orders *orders, size_t count, int argc, char *const *args,
		       struct err *err)
{
	AUTO(orders_done) struct orders names = ORDERS_INIT;
	int r = add_command(&names, argc ? "{}" : ONLY_ID, argc, args, err);
	if (r >= 0)
		r = orders_check_unique(&names, false, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		bool fits = strlen(names.items[i].shell) <= ORDER_ID_MAX;
		char *id = fits ? mem_strdup(names.items[i].shell) : mem_printf("pair-%zu", i + 1);
		orders->items[i].id = id;
		for (size_t k = count + i; k < orders->count; k += count)
			orders->items[k].id = mem_strdup(id);
	}
	return 0;
}

/* How many of the words are "A=…", "B=…" and so on. */
static int count_variants(int argc, char *const *argv)
{
	int n = 0;
	while (n < argc && n < REPEAT_SIDES_MAX && argv[n][0] == 'A' + n && argv[n][1] == '=')
		n++;
	return n;
}

int load_ab(struct orders *orders, int argc, char *const *argv, size_t *ret_count, struct err *err)
{
	int n = count_variants(argc, argv), rest = argc - n;
	if (n < 2 || (rest && !str_eq(argv[n], ":::")))
		return err_set(err, EINVAL,
			       "--ab takes A='COMMAND' B='COMMAND', more of them up to %c=, then "
			       "::: and arguments, or nothing",
			       'A' + REPEAT_SIDES_MAX - 1);
	int r = 0;
	for (int i = 0; i < n && r >= 0; i++)
		r = add_command(orders, argv[i] + 2, rest, argv + n, err);
	size_t count = orders->count / (size_t)n;
	if (r >= 0)
		r = name_orders(orders, count, rest, argv + n, err);
	*ret_count = count;
	return r < 0 ? r : n;
}
