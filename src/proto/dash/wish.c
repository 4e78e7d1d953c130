#include "proto/dash/wish.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/json_value.h"

static const char *const names[] = {
	[WISH_STACKS] = "stacks",   [WISH_COLLECTIVES] = "collectives",
	[WISH_WORKERS] = "workers", [WISH_STOP] = "stop",
	[WISH_RESTART] = "restart", [WISH_CHECKPOINT] = "checkpoint",
};
static_assert(ARRAY_LEN(names) == WISH_KIND_COUNT, "every kind needs a name");

const char *wish_name(enum wish_kind kind)
{
	return names[kind];
}

static int read_ranks(struct json_value ranks, struct wish *wish, struct err *err)
{
	struct json_value item;
	struct json_in in;
	if (ranks.kind == JSON_NONE)
		return 0;
	if (ranks.kind != JSON_ARRAY || json_value_count(ranks) > WISH_RANKS_MAX)
		return err_set(err, EINVAL, "\"ranks\" is not an array of at most %d numbers",
			       WISH_RANKS_MAX);
	for (json_value_enter(ranks, &in); json_value_next(&in, &item);) {
		int64_t rank;
		if (!json_value_int(item, &rank) || rank < 0 || rank > UINT32_MAX)
			return err_set(err, EINVAL, "\"ranks\" has something that is not a rank");
		wish->ranks[wish->rank_count++] = (uint32_t)rank;
	}
	return 0;
}

int wish_parse(struct bytes text, struct wish *ret_wish, struct err *err)
{
	struct json_value root;
	struct wish wish = { .rank_count = 0 };
	if (text.len == 0 || json_value_parse((const char *)text.data, text.len, &root) < 0 ||
	    root.kind != JSON_OBJECT)
		return err_set(err, EINVAL, "this is not a JSON object");
	AUTO_FREE char *name = json_value_text(json_value_get(root, "do"));
	for (; wish.kind < WISH_KIND_COUNT; wish.kind++)
		if (name && str_eq(name, names[wish.kind]))
			break;
	if (wish.kind == WISH_KIND_COUNT)
		return err_set(err, EINVAL, "\"do\" is none of the things that can be done");
	int r = read_ranks(json_value_get(root, "ranks"), &wish, err);
	if (r == 0)
		*ret_wish = wish;
	return r;
}
