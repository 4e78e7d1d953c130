/* Allocation that never returns NULL. If a supervisor that holds a few MB runs out of memory, the
 * host is beyond help: the process aborts and the warden cleans up. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/util.h"

void *mem_alloc(size_t size);		      /* zeroed */
void *mem_alloc_array(size_t n, size_t size); /* zeroed, overflow-checked */
/* Resized to n * size, overflow-checked; what is new in it is not zeroed. */
void *mem_grow(void *ptr, size_t n, size_t size);
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t len);
char *mem_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* For AUTO(): frees the memory of a `char *` or other pointer variable. */
void mem_free_ptr(void *ptr_to_ptr);

#define NEW(type) ((type *)mem_alloc(sizeof(type)))
#define NEW_ARRAY(type, n) ((type *)mem_alloc_array((n), sizeof(type)))
#define AUTO_FREE AUTO(mem_free_ptr)

/* Makes room for one more item at the end of a growing array; `cap` doubles. */
#define ARRAY_RESERVE(items, count, cap) \
	do { \
		if ((count) >= (cap)) { \
			(cap) = (cap) ? (cap)*2 : 8; \
			(items) = mem_grow((items), (cap), sizeof(*(items))); \
		} \
	} while (0)

#endif
