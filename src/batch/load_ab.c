#include "batch/load_ab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define WORDS_FIXED 2 /* "A=…" and "B=…" */
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

/* Names the pairs by their arguments, and rejects duplicate arguments. */
static int name_pairs(struct orders *orders, size_t count, int argc, char *const *args,
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
		orders->items[count + i].id = mem_strdup(id);
	}
	return 0;
}

int load_ab(struct orders *orders, int argc, char *const *argv, size_t *ret_count, struct err *err)
{
	bool form = argc >= WORDS_FIXED && str_starts(argv[0], "A=") && str_starts(argv[1], "B=") &&
		    (argc == WORDS_FIXED || str_eq(argv[WORDS_FIXED], ":::"));
	if (!form)
		return err_set(
			err, EINVAL,
			"--ab takes A='COMMAND' B='COMMAND', then ::: and arguments, or nothing");
	int rest = argc - WORDS_FIXED;
	char *const *args = argv + WORDS_FIXED;
	int r = add_command(orders, argv[0] + 2, rest, args, err);
	size_t count = orders->count;
	if (r >= 0)
		r = add_command(orders, argv[1] + 2, rest, args, err);
	if (r >= 0)
		r = name_pairs(orders, count, rest, args, err);
	*ret_count = count;
	return r;
}
