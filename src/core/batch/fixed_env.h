/* The environment of a measured order. Its size moves the stack and costs instructions at start-up
 * (measured: 14 % of a small program), so where counts must repeat it consists of fixed parts
 * only. */
#ifndef CORE_BATCH_FIXED_ENV_H
#define CORE_BATCH_FIXED_ENV_H

#include "base/strv.h"
#include "base/err.h"

struct fixed_env_rule {
	bool clean;	  /* of the caller's variables only `keep`, plus a few fixed ones */
	struct strv keep; /* names */
};

#define FIXED_ENV_RULE_INIT ((struct fixed_env_rule){ .clean = false })

/* "inherit", "clean" or "keep=NAME,NAME": clean plus those. */
int fixed_env_parse(const char *text, struct fixed_env_rule *ret_rule, struct err *err);

/* Sorted by name when clean, so that the caller's order does not matter. */
void fixed_env_make(const struct fixed_env_rule *rule, char *const *caller, struct strv *ret_env);

/* 16 hexadecimal digits over all variables, whatever their order. */
#define FIXED_ENV_HASH_MAX 17
void fixed_env_hash(const struct strv *env, char hash[FIXED_ENV_HASH_MAX]);

#endif
