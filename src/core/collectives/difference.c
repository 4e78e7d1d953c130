/* Whether two ranks came to a collective with the same. */
#include "base/str.h"
#include "core/collectives/join_private.h"

static bool is_one_of(const char *op, const char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		if (str_starts(op, names[i]))
			return true;
	return false;
}

static bool empty_list(const char *json)
{
	return !*json || str_eq(json, "[]") || str_eq(json, "[[]]");
}

/* Roots and the others give and get different tensors in some operations. */
enum difference entry_compare(const struct record_entry *usual, const struct record_entry *entry)
{
	static const char *const own_input[] = { "all_to_all", "alltoall", "scatter", NULL };
	static const char *const own_output[] = { "all_to_all", "alltoall", "gather", NULL };
	static const char *const one_input[] = { "scatter", "broadcast", NULL };
	static const char *const one_output[] = { "gather", NULL };
	const struct record_shape *x = &usual->shape, *y = &entry->shape;
	if (!str_eq(usual->op, entry->op))
		return DIFFERENCE_OP;
	if (!is_one_of(usual->op, own_input) && !str_eq(x->in_sizes, y->in_sizes))
		return DIFFERENCE_SIZE;
	if (!is_one_of(usual->op, own_output) && !str_eq(x->out_sizes, y->out_sizes))
		return DIFFERENCE_SIZE;
	if (!is_one_of(usual->op, one_input) && !empty_list(x->in_types) &&
	    !empty_list(y->in_types) && !str_eq(x->in_types, y->in_types))
		return DIFFERENCE_TYPE;
	if (!is_one_of(usual->op, one_output) && !empty_list(x->out_types) &&
	    !empty_list(y->out_types) && !str_eq(x->out_types, y->out_types))
		return DIFFERENCE_TYPE;
	return DIFFERENCE_NONE;
}
