#include "core/worker/exit_set.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "base/str.h"

#define CODE_MAX 255
#define ITEM_MAX 32 /* no valid item is longer */

static int add_codes(struct exit_set *set, const char *item)
{
	char text[ITEM_MAX];
	snprintf(text, sizeof(text), "%s", item);
	char *dash = strchr(text, '-');
	if (dash)
		*dash = '\0';
	uint64_t first, last;
	if (str_to_u64(text, &first) < 0 || str_to_u64(dash ? dash + 1 : text, &last) < 0)
		return -EINVAL;
	if (first > last || last > CODE_MAX)
		return -EINVAL;
	for (uint64_t code = first; code <= last; code++)
		set->codes[code / 64] |= (uint64_t)1 << code % 64;
	return 0;
}

static int add_item(struct exit_set *set, const char *item)
{
	if (isdigit((unsigned char)item[0]))
		return add_codes(set, item);
	int sig = str_to_signal(item);
	if (sig <= 0 || sig > 64)
		return -EINVAL;
	set->signals |= (uint64_t)1 << (sig - 1);
	return 0;
}

int exit_set_parse(const char *text, struct exit_set *ret_set, struct err *err)
{
	struct exit_set set = EXIT_SET_INIT;
	const char *rest = *text ? text : NULL, *piece;
	size_t len;
	while (rest && (piece = str_split(&rest, ',', &len))) {
		char item[ITEM_MAX];
		snprintf(item, sizeof(item), "%.*s", (int)MIN(len, sizeof(item) - 1), piece);
		if (len >= sizeof(item) || add_item(&set, item) < 0)
			return err_set(err, EINVAL,
				       "'%s' is neither an exit code (0 to 255, or a range such as "
				       "64-78) nor a "
				       "signal (such as SIGSEGV)",
				       item);
	}
	*ret_set = set;
	return 0;
}

bool exit_set_contains(const struct exit_set *set, const struct exit_status *status)
{
	if (status->kind == EXIT_CODE && status->value >= 0 && status->value <= CODE_MAX)
		return set->codes[status->value / 64] >> status->value % 64 & 1;
	if (status->kind == EXIT_SIGNAL && status->value >= 1 && status->value <= 64)
		return set->signals >> (status->value - 1) & 1;
	return false;
}
