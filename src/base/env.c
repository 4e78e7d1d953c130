#include "base/env.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

static char **find(const struct strv *env, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
			return &env->items[i];
	return NULL;
}

const char *env_get(const struct strv *env, const char *name)
{
	char **item = find(env, name);
	return item ? *item + strlen(name) + 1 : NULL;
}

const char *env_find(char *const *environment, const char *name)
{
	size_t len = strlen(name);
	for (; *environment; environment++)
		if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
			return *environment + len + 1;
	return NULL;
}

void env_set(struct strv *env, const char *name, const char *value)
{
	char *text = mem_printf("%s=%s", name, value);
	char **item = find(env, name);
	if (!item) {
		strv_take(env, text);
		return;
	}
	free(*item);
	*item = text;
}

void env_setf(struct strv *env, const char *name, const char *fmt, ...)
{
	AUTO(buf_done) struct buf value = BUF_INIT;
	va_list args;
	va_start(args, fmt);
	buf_vprintf(&value, fmt, args);
	va_end(args);
	env_set(env, name, buf_str(&value));
}

void env_unset(struct strv *env, const char *name)
{
	char **item = find(env, name);
	if (!item)
		return;
	free(*item);
	*item = env->items[--env->count];
	env->items[env->count] = NULL;
}
