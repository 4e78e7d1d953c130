/* An environment: a list of "NAME=value" strings. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include "base/strv.h"

const char *env_get(const struct strv *env, const char *name); /* borrowed; NULL if unset */
/* The same in an array that ends in NULL, such as environ. */
const char *env_find(char *const *environment, const char *name);
void env_set(struct strv *env, const char *name, const char *value);
void env_setf(struct strv *env, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
void env_unset(struct strv *env, const char *name); /* the last variable takes its place */

#endif
