#include "proto/step_pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/args/regex.h"

#define NUMBER_MAX 24

struct step_pattern {
	regex_t regex;
	size_t groups[REGEX_GROUPS];
};

int step_pattern_new(const char *text, struct step_pattern **ret_pattern, struct err *err)
{
	if (strlen(text) > STEP_PATTERN_MAX)
		return err_set(err, EINVAL, "a pattern has at most %d bytes", STEP_PATTERN_MAX);
	struct step_pattern pattern;
	int r = regex_compile(&pattern.regex, text, 0, pattern.groups, err);
	if (r < 0)
		return r;
	if (!pattern.groups[0]) {
		regfree(&pattern.regex);
		return err_set(err, EINVAL, "'%.64s' has no group for the number, such as (\\d+)",
			       text);
	}
	*ret_pattern = NEW(struct step_pattern);
	**ret_pattern = pattern;
	return 0;
}

void step_pattern_free(struct step_pattern *pattern)
{
	if (!pattern)
		return;
	regfree(&pattern->regex);
	free(pattern);
}

static bool number_of(const char *line, const regmatch_t *group, uint64_t *ret_number)
{
	char text[NUMBER_MAX];
	size_t len = (size_t)(group->rm_eo - group->rm_so);
	if (group->rm_so < 0 || len >= sizeof(text))
		return false;
	memcpy(text, line + group->rm_so, len);
	text[len] = '\0';
	return str_to_u64(text, ret_number) == 0;
}

bool step_pattern_find(const struct step_pattern *pattern, const char *line, size_t len,
		       uint64_t *ret_step, uint64_t *ret_total)
{
	/* REG_STARTEND names the end, but sanitizers' regexec() looks for a NUL all the same. */
	char text[STEP_PATTERN_LINE + 1];
	regmatch_t found[STEP_PATTERN_MAX];
	uint64_t step, total;
	len = MIN(len, (size_t)STEP_PATTERN_LINE);
	memcpy(text, line, len);
	text[len] = '\0';
	found[0] = (regmatch_t){ .rm_so = 0, .rm_eo = (regoff_t)len };
	size_t count = MAX(pattern->groups[0], pattern->groups[1]) + 1;
	if (regexec(&pattern->regex, text, count, found, REG_STARTEND) != 0 ||
	    !number_of(text, &found[pattern->groups[0]], &step))
		return false;
	*ret_step = step;
	*ret_total = pattern->groups[1] && number_of(text, &found[pattern->groups[1]], &total)
			     ? total
			     : 0;
	return true;
}
