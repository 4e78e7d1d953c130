/* A list of strings that ends in NULL, and on top of it an environment ("NAME=value" strings).
 * Both own their strings. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include "base/util.h"

struct strv {
	char **items; /* NULL-terminated once something was added; see strv_argv() */
	size_t count;
	size_t cap;
};

#define STRV_INIT ((struct strv){ .items = NULL })

void strv_done(struct strv *strv);
void strv_add(struct strv *strv, const char *text);
void strv_take(struct strv *strv, char *text); /* owns `text` from now on */
void strv_copy(struct strv *strv, char *const *items);

/* The NULL-terminated array; borrowed. */
char *const *strv_argv(const struct strv *strv);

const char *env_get(const struct strv *env, const char *name); /* borrowed; NULL if unset */
void env_set(struct strv *env, const char *name, const char *value);
void env_setf(struct strv *env, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
void env_unset(struct strv *env, const char *name);

#endif
