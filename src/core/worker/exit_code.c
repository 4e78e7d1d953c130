#include "core/worker/exit_code.h"

#include <ctype.h>
#include <errno.h>

#include "base/mem.h"
#include "base/str.h"

#define ITS_OWN (-1)

const struct exit_row exit_rows[EXIT_REASON_COUNT] = {
	[EXIT_REASON_DONE] = { "done", EXIT_CODE_OK, false, EXIT_ADVICE_NOTHING,
			       "every worker ended with 0" },
	[EXIT_REASON_CAUSE] = { "cause", ITS_OWN, false, EXIT_ADVICE_RETRY,
				"a worker failed; its code, or 128 + its signal" },
	[EXIT_REASON_SIGNAL] = { "signal", ITS_OWN, false, EXIT_ADVICE_RETRY,
				 "a signal stopped the job; 128 + the signal" },
	[EXIT_REASON_BAD_NODE] = { "bad-node", EXIT_CODE_BAD_NODE, true, EXIT_ADVICE_AGAIN,
				   "this node is not fit for workers" },
	[EXIT_REASON_BUDGET] = { "budget", EXIT_CODE_BUDGET, true, EXIT_ADVICE_FAIL,
				 "a worker failed, and every restart was used up" },
	[EXIT_REASON_NO_PROGRESS] = { "no-progress", EXIT_CODE_NO_PROGRESS, false, EXIT_ADVICE_FAIL,
				      "attempts failed one after the other without progress" },
	[EXIT_REASON_SAVED] = { "saved", EXIT_CODE_SAVED, false, EXIT_ADVICE_AGAIN,
				"the job left on request after it had saved its state" },
	[EXIT_REASON_NO_ROUND] = { "no-round", EXIT_CODE_TIMEOUT, false, EXIT_ADVICE_RETRY,
				   "the nodes did not come together in time" },
	[EXIT_REASON_SYSTEM] = { "system", EXIT_CODE_SYSTEM, false, EXIT_ADVICE_RETRY,
				 "muster or the system failed, not the job" },
};

int exit_reason_code(enum exit_reason reason, int code)
{
	const struct exit_row *row = &exit_rows[reason];
	return row->code == ITS_OWN || row->mapped ? code : row->code;
}

/* 0 to 255, or a signal, which is 128 + its number; -EINVAL. */
static int parse_code(const char *text)
{
	uint64_t number;
	if (isdigit((unsigned char)*text))
		return str_to_u64(text, &number) < 0 || number >= EXIT_CODES ? -EINVAL
									     : (int)number;
	int sig = str_to_signal(text);
	return sig < 0 ? -EINVAL : EXIT_CODE_SIGNAL_BASE + sig;
}

static int find_reason(const char *name)
{
	for (int i = 0; i < EXIT_REASON_COUNT; i++)
		if (str_eq(exit_rows[i].name, name))
			return i;
	return -ENOENT;
}

static int take_item(struct exit_map *map, char *item)
{
	char *sign = strchr(item, '=');
	if (sign)
		*sign = '\0';
	int to = sign ? parse_code(sign + 1) : EXIT_MAP_NONE;
	if (sign && to < 0)
		return -EINVAL;
	int reason = find_reason(item);
	if (reason >= 0) {
		int code = sign ? to : exit_rows[reason].code;
		map->reasons[reason] = (int16_t)code;
		return code == ITS_OWN ? -EINVAL : 0; /* it has none to be turned on */
	}
	int from = parse_code(item);
	if (from < 0 || !sign)
		return -EINVAL;
	map->codes[from] = (int16_t)to;
	return 0;
}

int exit_map_parse(const char *text, struct exit_map *ret_map, struct err *err)
{
	struct exit_map map = { .given = true };
	for (size_t i = 0; i < EXIT_REASON_COUNT; i++)
		map.reasons[i] = EXIT_MAP_NONE;
	for (size_t i = 0; i < EXIT_CODES; i++)
		map.codes[i] = EXIT_MAP_NONE;
	const char *rest = text, *piece;
	size_t len;
	while ((piece = str_split(&rest, ',', &len))) {
		piece = str_trim(piece, &len);
		AUTO_FREE char *item = mem_strndup(piece, len);
		if (take_item(&map, item) < 0)
			return err_set(err, EINVAL,
				       "'%.*s' is neither NAME nor NAME=CODE, CODE=CODE or "
				       "SIGNAL=CODE, such as budget, saved=99 or SIGTERM=0",
				       (int)MIN(len, 64), piece);
	}
	*ret_map = map;
	return 0;
}

int exit_map_apply(const struct exit_map *map, enum exit_reason reason, int code)
{
	if (!map->given)
		return code;
	if (map->reasons[reason] != EXIT_MAP_NONE)
		return map->reasons[reason];
	return code >= 0 && code < EXIT_CODES && map->codes[code] != EXIT_MAP_NONE
		       ? map->codes[code]
		       : code;
}
