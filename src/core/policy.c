#include "core/policy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/exit_code.h"

static int parse_code(const char *text, int64_t *ret_code)
{
	int r = str_to_i64(text, ret_code);
	if (r < 0)
		return r;
	return *ret_code >= 1 && *ret_code < POLICY_CODES ? 0 : -ERANGE;
}

static int parse_piece(char *piece, struct policy *policy)
{
	int64_t first, last;
	if (parse_code(piece, &first) == 0) {
		policy->final_code[first] = true;
		return 0;
	}
	char *dash = strchr(piece, '-');
	if (dash && dash != piece) {
		*dash = '\0';
		int r = parse_code(piece, &first);
		if (r == 0)
			r = parse_code(dash + 1, &last);
		*dash = '-';
		if (r < 0 || first > last)
			return -EINVAL;
		for (int64_t code = first; code <= last; code++)
			policy->final_code[code] = true;
		return 0;
	}
	/* A bare number is a code, so signals go by name only. */
	int sig = (piece[0] < '0' || piece[0] > '9') ? str_to_signal(piece) : -EINVAL;
	if (sig <= 0 || sig >= POLICY_SIGNALS)
		return -EINVAL;
	policy->final_signal[sig] = true;
	return 0;
}

int policy_parse_no_restart(const char *text, struct policy *policy, struct err *err)
{
	size_t len;
	for (const char *rest = text, *piece; (piece = str_split(&rest, ',', &len));) {
		AUTO_FREE char *copy = mem_strndup(piece, len);
		if (parse_piece(copy, policy) < 0)
			return err_set(err, EINVAL,
				       "'%s' is neither an exit code (1-255), a range nor a signal name",
				       copy);
	}
	return 0;
}

bool policy_is_final(const struct policy *policy, const struct cause *cause)
{
	const struct exit_status *status = &cause->status;
	if (status->kind == EXIT_CODE && cause->reason == CAUSE_SPAWN)
		return status->value == EXIT_CODE_NOT_EXEC || status->value == EXIT_CODE_NOT_FOUND;
	if (status->kind == EXIT_CODE)
		return status->value >= 0 && status->value < POLICY_CODES &&
		       policy->final_code[status->value];
	if (status->kind == EXIT_SIGNAL)
		return status->value >= 0 && status->value < POLICY_SIGNALS &&
		       policy->final_signal[status->value];
	return false;
}

uint64_t policy_backoff_ns(uint64_t base_ns, uint64_t max_ns, uint32_t restart)
{
	uint64_t pause = base_ns;
	for (uint32_t i = 1; i < restart && pause > 0 && pause < max_ns; i++)
		pause = ns_add(pause, pause);
	return MIN(pause, max_ns);
}

uint64_t pace_earliest_ns(const struct pace *pace, uint32_t reserve)
{
	uint64_t slack = pace->interval_ns * (pace->burst - reserve - 1);
	return pace->next_ns > slack ? pace->next_ns - slack : 0;
}

void pace_take(struct pace *pace, uint64_t now_ns)
{
	pace->next_ns = ns_add(MAX(pace->next_ns, now_ns), pace->interval_ns);
}
