#include "base/strv.h"

#include <stdlib.h>

#include "base/mem.h"

void strv_done(struct strv *strv)
{
	for (size_t i = 0; i < strv->count; i++)
		free(strv->items[i]);
	free(strv->items);
	*strv = STRV_INIT;
}

void strv_take(struct strv *strv, char *text)
{
	if (strv->count + 2 > strv->cap) {
		strv->cap = strv->cap ? strv->cap * 2 : 16;
		strv->items = mem_grow(strv->items, strv->cap, sizeof(char *));
	}
	strv->items[strv->count++] = text;
	strv->items[strv->count] = NULL;
}

void strv_add(struct strv *strv, const char *text)
{
	strv_take(strv, mem_strdup(text));
}

void strv_add_all(struct strv *strv, char *const *items)
{
	for (; *items; items++)
		strv_add(strv, *items);
}

char *const *strv_argv(const struct strv *strv)
{
	static char *const empty[] = { NULL };
	return strv->items ? strv->items : empty;
}
