#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/str.h"
#include "core/batch/fixed_env.h"

static char *caller_a[] = { "USER=a", "LANG=de", "TOKEN=x", "PATH=/a", NULL };
static char *caller_b[] = { "PATH=/b:/c", "LONG=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "TOKEN=x", NULL };

static void make(const char *text, char *const *caller, struct strv *env,
		 char hash[FIXED_ENV_HASH_MAX])
{
	struct fixed_env_rule rule = FIXED_ENV_RULE_INIT;
	ck_assert_int_eq(fixed_env_parse(text, &rule, NULL), 0);
	fixed_env_make(&rule, caller, env);
	fixed_env_hash(env, hash);
	strv_done(&rule.keep);
}

TEST(a_clean_environment_is_the_same_for_every_caller)
{
	struct strv a = STRV_INIT, b = STRV_INIT;
	char hash_a[FIXED_ENV_HASH_MAX], hash_b[FIXED_ENV_HASH_MAX];
	make("clean", caller_a, &a, hash_a);
	make("clean", caller_b, &b, hash_b);
	ck_assert_str_eq(hash_a, hash_b);
	ck_assert_uint_eq(a.count, b.count);
	for (size_t i = 0; i < a.count; i++)
		ck_assert_str_eq(a.items[i], b.items[i]);
	ck_assert_ptr_null(env_get(&a, "USER"));
	strv_done(&a);
	strv_done(&b);
}

TEST(kept_variables_are_kept_and_nothing_else)
{
	struct strv a = STRV_INIT, b = STRV_INIT;
	char hash_a[FIXED_ENV_HASH_MAX], hash_b[FIXED_ENV_HASH_MAX];
	make("keep=TOKEN,PATH,ABSENT", caller_a, &a, hash_a);
	make("keep=TOKEN", caller_b, &b, hash_b);
	ck_assert_str_eq(env_get(&a, "TOKEN"), "x");
	ck_assert_str_eq(env_get(&a, "PATH"), "/a");
	ck_assert_ptr_null(env_get(&a, "ABSENT"));
	ck_assert_str_ne(hash_a, hash_b);
	strv_done(&a);
	strv_done(&b);
}

TEST(an_inherited_environment_is_the_callers)
{
	struct strv a = STRV_INIT;
	char hash[FIXED_ENV_HASH_MAX];
	make("inherit", caller_a, &a, hash);
	ck_assert_uint_eq(a.count, 4);
	strv_done(&a);
}

TEST(invalid_rules_are_refused)
{
	struct fixed_env_rule rule = FIXED_ENV_RULE_INIT;
	ck_assert_int_eq(fixed_env_parse("none", &rule, NULL), -EINVAL);
	ck_assert_int_eq(fixed_env_parse("keep=A,,B", &rule, NULL), -EINVAL);
	ck_assert_int_eq(fixed_env_parse("keep=A=1", &rule, NULL), -EINVAL);
	strv_done(&rule.keep);
}
