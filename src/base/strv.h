/* A list of strings that ends in NULL and owns its strings. */
#ifndef BASE_STRV_H
#define BASE_STRV_H

#include "base/util.h"

struct strv {
	char **items; /* NULL-terminated once something was added; see strv_argv() */
	size_t count;
	size_t cap;
};

#define STRV_INIT ((struct strv){ .items = NULL })

void strv_done(struct strv *strv);
void strv_add(struct strv *strv, const char *text);
void strv_take(struct strv *strv, char *text);		  /* owns `text` from now on */
void strv_add_all(struct strv *strv, char *const *items); /* appends copies, up to the NULL */

/* The NULL-terminated array; borrowed. */
char *const *strv_argv(const struct strv *strv);

#endif
