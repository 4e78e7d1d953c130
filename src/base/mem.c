#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *or_abort(void *ptr)
{
	if (!ptr) {
		static const char text[] = "muster: out of memory\n";
		ssize_t ignored UNUSED = write(STDERR_FILENO, text, sizeof(text) - 1);
		abort();
	}
	return ptr;
}

void *mem_alloc(size_t size)
{
	return or_abort(calloc(1, size ? size : 1));
}

void *mem_alloc_array(size_t n, size_t size)
{
	return or_abort(calloc(n ? n : 1, size));
}

void *mem_grow(void *ptr, size_t n, size_t size)
{
	if (n == 0)
		n = 1;
	return or_abort(reallocarray(ptr, n, size));
}

char *mem_strdup(const char *text)
{
	return or_abort(strdup(text));
}

char *mem_strndup(const char *text, size_t len)
{
	return or_abort(strndup(text, len));
}

char *mem_printf(const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, fmt);
	int len = vasprintf(&text, fmt, args);
	va_end(args);
	return or_abort(len < 0 ? NULL : text);
}

void mem_free_ptr(void *ptr_to_ptr)
{
	free(*(void **)ptr_to_ptr);
}
