/* Text: the only place that turns text into numbers. A parser accepts the whole text or rejects
 * it. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <string.h>

#include "base/util.h"

/* Most comparisons differ in the first characters; readers of result files make many of them. */
static inline bool str_eq(const char *a, const char *b)
{
	return a[0] == b[0] && strcmp(a, b) == 0;
}

static inline bool str_starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *text, const char *suffix);

/* 0, -EINVAL (not a number of that form) or -ERANGE. Decimal digits with an optional sign. */
int str_to_i64(const char *text, int64_t *ret_value);
int str_to_u64(const char *text, uint64_t *ret_value);

/* Hexadecimal digits without a prefix, up to the first other character; at least one. */
int str_hex_to_u64(const char *text, uint64_t *ret_value);

/* As Python's int(): surrounding blanks, a sign, single underscores between digits. */
int str_to_i64_python(const char *text, int64_t *ret_value);

/* As Python's float() without the underscores: also nan and inf. */
int str_to_double(const char *text, double *ret_value);

/* "30", "1.5s", "200ms", "10us", "2m"/"2min", "1h", "1d"; a bare number is seconds. Never
 * negative. */
int str_to_duration_ns(const char *text, uint64_t *ret_ns);

/* "4096", "64K", "10M", "2G", also "KiB"/"KB" (both 1024). */
int str_to_size(const char *text, uint64_t *ret_bytes);

/* utf8_make_printable() of a text. */
void str_make_printable(char *text);

/* Edits (insert, delete, replace, swap neighbours) that turn one text into the other. */
unsigned str_distance(const char *a, const char *b);

/* For "did you mean": `name` if it is nearer to what was typed than `best` (NULL: none yet) and
 * near enough to be meant, otherwise `best`. Call it with every name there is. */
const char *str_nearest(const char *typed, const char *name, const char *best);

/* SIGTERM from "SIGTERM", "TERM", "term" or "15"; -EINVAL. And back: "SIGTERM", or NULL. */
int str_to_signal(const char *text);
const char *str_signal_name(int sig);

/* Cuts at `sep`: returns the piece at *rest (not NUL-terminated) with its length and advances
 * *rest; NULL at the end. An empty text has one empty piece. */
const char *str_split(const char **rest, char sep, size_t *ret_len);

/* Skips blanks and tabs around a piece: returns its new start; *len becomes its length. */
const char *str_trim(const char *text, size_t *len);

#endif
