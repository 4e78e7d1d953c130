#include "core/checks/limits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* "" is `none`. */
static int parse_bound(const char *text, size_t len, double none, double *ret_bound)
{
	AUTO_FREE char *word = mem_strndup(text, len);
	*ret_bound = none;
	return len == 0 ? 0 : str_to_double(word, ret_bound);
}

static int parse_limit(const char *text, size_t len, struct check_limit *ret_limit)
{
	const char *sign = memchr(text, '=', len);
	const char *colon = sign ? memchr(sign, ':', len - (size_t)(sign - text)) : NULL;
	size_t name_len = sign ? (size_t)(sign - text) : 0;
	if (!colon || name_len == 0 || name_len >= sizeof(ret_limit->name))
		return -EINVAL;
	memcpy(ret_limit->name, text, name_len);
	ret_limit->name[name_len] = '\0';
	if (parse_bound(sign + 1, (size_t)(colon - sign - 1), -INFINITY, &ret_limit->low) < 0 ||
	    parse_bound(colon + 1, len - (size_t)(colon + 1 - text), INFINITY, &ret_limit->high) <
		    0)
		return -EINVAL;
	return ret_limit->low <= ret_limit->high ? 0 : -EINVAL;
}

int check_limits_parse(const char *text, struct check_limits *ret_limits, struct err *err)
{
	struct check_limits limits = { .count = 0 };
	size_t len;
	for (const char *word; (word = str_split(&text, ',', &len));) {
		if (limits.count == CHECK_LIMITS_MAX)
			return err_set(err, EINVAL, "more than %d limits", CHECK_LIMITS_MAX);
		if (parse_limit(word, len, &limits.items[limits.count++]) < 0)
			return err_set(err, EINVAL,
				       "'%.*s' is not FIGURE=[LOW]:[HIGH], such as tflops=300:",
				       (int)MIN(len, (size_t)64), word);
	}
	*ret_limits = limits;
	return 0;
}

static void apply(const struct check_limit *limit, const struct check_figure *figure,
		  struct check_result *result)
{
	bool low = figure->value < limit->low;
	if (!low && figure->value <= limit->high)
		return;
	check_find(result, CHECK_BAD, "mend it on this host, or change the limit",
		   "%s is %.4g%s%s, %s the limit of %.4g", figure->name, figure->value,
		   *figure->unit ? " " : "", figure->unit, low ? "below" : "above",
		   low ? limit->low : limit->high);
}

void check_limits_apply(const struct check_limits *limits, struct check_result *result)
{
	for (size_t i = 0; i < result->figure_count; i++)
		for (size_t l = 0; l < limits->count; l++)
			if (str_eq(limits->items[l].name, result->figures[i].name))
				apply(&limits->items[l], &result->figures[i], result);
}
