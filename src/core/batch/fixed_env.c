#include "core/batch/fixed_env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

/* Enough to find programs and to print the same everywhere; the hash seeds are for Python and
 * similar languages, whose work depends on the order of their dictionaries. */
static const char *const fixed[] = {
	"HOME=/",
	"LC_ALL=C.UTF-8",
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"PYTHONHASHSEED=0",
};

int fixed_env_parse(const char *text, struct fixed_env_rule *ret_rule, struct err *err)
{
	if (str_eq(text, "inherit") || str_eq(text, "clean")) {
		ret_rule->clean = str_eq(text, "clean");
		return 0;
	}
	if (!str_starts(text, "keep="))
		return err_set(err, EINVAL, "'%s' is not one of inherit, clean, keep=NAME,…", text);
	text += strlen("keep=");
	size_t len;
	for (const char *name; (name = str_split(&text, ',', &len));) {
		if (len == 0 || memchr(name, '=', len))
			return err_set(err, EINVAL, "'%.*s' is not the name of a variable",
				       (int)len, name);
		strv_take(&ret_rule->keep, mem_strndup(name, len));
	}
	ret_rule->clean = true;
	return 0;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void fixed_env_make(const struct fixed_env_rule *rule, char *const *caller, struct strv *ret_env)
{
	if (!rule->clean) {
		strv_add_all(ret_env, caller);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		strv_add(ret_env, fixed[i]);
	struct strv all = STRV_INIT;
	strv_add_all(&all, caller);
	for (size_t i = 0; i < rule->keep.count; i++) {
		const char *value = env_get(&all, rule->keep.items[i]);
		if (value)
			env_set(ret_env, rule->keep.items[i], value);
	}
	strv_done(&all);
	qsort(ret_env->items, ret_env->count, sizeof(*ret_env->items), compare_strings);
}

void fixed_env_hash(const struct strv *env, char hash[FIXED_ENV_HASH_MAX])
{
	static const uint64_t key[2] = { 0, 0 };
	uint64_t sum = env->count; /* a sum, so that the order does not matter */
	for (size_t i = 0; i < env->count; i++)
		sum += map_hash(key, env->items[i], strlen(env->items[i]));
	snprintf(hash, FIXED_ENV_HASH_MAX, "%016" PRIx64, sum);
}
