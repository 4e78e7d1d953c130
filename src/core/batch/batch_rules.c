#include "core/batch/batch_rules.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

int ladder_parse(const char *text, struct ladder *ret_ladder, struct err *err)
{
	struct ladder ladder = { .count = 0 };
	const char *rest = text;
	size_t len;
	bool want_signal = true;
	for (const char *piece; (piece = str_split(&rest, ',', &len)); want_signal = !want_signal) {
		AUTO_FREE char *word = mem_strndup(piece, len);
		uint64_t ms;
		if (!want_signal) {
			if (str_to_u64(word, &ms) < 0 || ms > 86400000)
				return err_set(err, EINVAL, "'%s' is not a number of milliseconds",
					       word);
			ladder.steps[ladder.count - 1].wait_ns = ms * NS_PER_MS;
			continue;
		}
		int sig = str_to_signal(word);
		if (sig < 0)
			return err_set(err, EINVAL, "'%s' is not a signal", word);
		if (ladder.count == LADDER_MAX)
			return err_set(err, EINVAL, "more than %d signals", LADDER_MAX);
		ladder.steps[ladder.count++].sig = sig;
	}
	if (want_signal || ladder.steps[ladder.count - 1].sig != SIGKILL)
		return err_set(err, EINVAL, "'%s' does not end in KILL (such as TERM,5000,KILL)",
			       text);
	*ret_ladder = ladder;
	return 0;
}

struct retry_rule retry_rule_any(void)
{
	struct retry_rule rule = { .code_count = 0 };
	for (int i = 0; i < REASON_COUNT; i++)
		rule.reasons[i] = i != REASON_OK && i != REASON_KILLED && i != REASON_CANARY;
	return rule;
}

static int add_retry(struct retry_rule *rule, const char *word, struct err *err)
{
	uint64_t code;
	if (str_eq(word, "any")) {
		memcpy(rule->reasons, retry_rule_any().reasons, sizeof(rule->reasons));
		return 0;
	}
	if (str_starts(word, "exit=")) {
		if (str_to_u64(word + strlen("exit="), &code) < 0 || code == 0 || code > 255)
			return err_set(err, EINVAL, "'%s' is not an exit code from 1 to 255", word);
		if (rule->code_count == RETRY_CODES_MAX)
			return err_set(err, EINVAL, "more than %d exit codes", RETRY_CODES_MAX);
		rule->codes[rule->code_count++] = (int)code;
		return 0;
	}
	int reason = reason_parse(word);
	if (reason < 0 || !retry_rule_any().reasons[reason])
		return err_set(err, EINVAL,
			       "'%s' is not a reason (exit, exit=N, signal, timeout, cpu-timeout, "
			       "oom, spawn, lost, any)",
			       word);
	rule->reasons[reason] = true;
	return 0;
}

int retry_rule_parse(const char *text, struct retry_rule *ret_rule, struct err *err)
{
	struct retry_rule rule = { .code_count = 0 };
	size_t len;
	for (const char *rest = text, *piece; (piece = str_split(&rest, ',', &len));) {
		AUTO_FREE char *word = mem_strndup(piece, len);
		int r = add_retry(&rule, word, err);
		if (r < 0)
			return r;
	}
	*ret_rule = rule;
	return 0;
}

bool retry_rule_matches(const struct retry_rule *rule, enum reason reason,
			const struct exit_status *status)
{
	if (rule->reasons[reason])
		return true;
	for (size_t i = 0; reason == REASON_EXIT && i < rule->code_count; i++)
		if (rule->codes[i] == status->value)
			return true;
	return false;
}

static const char *old_number(const char *text)
{
	static const char *const numbers[][2] = { { "0", "never" },
						  { "1", "soon,fail=1" },
						  { "2", "now,fail=1" },
						  { "-1", "soon,success=1" },
						  { "-2", "now,success=1" } };
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (str_eq(numbers[i][0], text))
			return numbers[i][1];
	return text;
}

/* The place of a word in a list; -1: none. */
static int find_word(const char *const *words, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (words[i] && str_eq(words[i], word))
			return (int)i;
	return -1;
}

/* "10" or "10%". */
static bool parse_amount(char *number, struct halt_rule *rule)
{
	size_t len = strlen(number);
	bool percent = len > 1 && number[len - 1] == '%';
	if (percent)
		number[len - 1] = '\0';
	if (str_to_u64(number, &rule->count) < 0 || rule->count == 0 ||
	    (percent && rule->count > 100))
		return false;
	rule->percent = percent ? (unsigned)rule->count : 0;
	return true;
}

static bool parse_rule(const char *text, struct halt_rule *rule)
{
	static const char *const whens[] = { [HALT_SOON] = "soon", [HALT_NOW] = "now" };
	static const char *const whats[] = {
		[HALT_FAIL] = "fail", [HALT_SUCCESS] = "success", [HALT_DONE] = "done"
	};
	char when[8], what[8], number[24];
	if (sscanf(text, "%7[a-z],%7[a-z]=%23[0-9%]", when, what, number) != 3)
		return false;
	int w = find_word(whens, ARRAY_LEN(whens), when);
	int e = find_word(whats, ARRAY_LEN(whats), what);
	if (w < 0 || e < 0)
		return false;
	rule->when = w;
	rule->what = e;
	return parse_amount(number, rule);
}

int halt_rule_parse(const char *text, struct halt_rule *ret_rule, struct err *err)
{
	struct halt_rule rule = { .when = HALT_NEVER };
	bool old_percent = str_ends(text, "%") && !strchr(text, ',');
	AUTO_FREE char *now =
		old_percent ? mem_printf("soon,fail=%s", text) : mem_strdup(old_number(text));
	if (!str_eq(now, "never") && !parse_rule(now, &rule))
		return err_set(err, EINVAL,
			       "'%s' is not a rule such as never, soon,fail=1 or now,fail=10%%",
			       text);
	*ret_rule = rule;
	return 0;
}

bool halt_rule_met(const struct halt_rule *rule, uint64_t failed, uint64_t succeeded,
		   uint64_t total)
{
	uint64_t count = rule->what == HALT_FAIL      ? failed
			 : rule->what == HALT_SUCCESS ? succeeded
						      : failed + succeeded;
	if (rule->when == HALT_NEVER || count == 0)
		return false;
	return rule->percent ? count * 100 >= total * rule->percent : count >= rule->count;
}
