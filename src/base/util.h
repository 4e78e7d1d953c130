/* Small macros that every file uses. */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The struct that embeds `member` at `ptr`. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Runs `done(&variable)` when the variable leaves its scope: AUTO(buf_done) struct buf b =
 * BUF_INIT; */
#define AUTO(done) __attribute__((cleanup(done)))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define MUST_USE __attribute__((warn_unused_result))
#define UNUSED __attribute__((unused))

#endif
