/* Makes the output of other programs safe to show: in a report, on a terminal, in a file. */
#ifndef RUN_TELL_TEXT_H
#define RUN_TELL_TEXT_H

#include "base/buf.h"

/* Appends `data` as a terminal would show it, but harmless: drops escape sequences and control
 * characters (utf8_is_unseen), keeps only the last state of a line that was redrawn with '\r', and
 * turns bytes that are not UTF-8 into U+FFFD. Tabs and newlines stay. */
void text_clean(struct buf *out, const void *data, size_t len);

/* The last `lines` lines of `text` (a final newline ends a line and begins none). */
const char *text_tail(const char *text, unsigned lines);

/* Appends `text` with `prefix` before each line and a newline after the last. */
void text_indent(struct buf *out, const char *prefix, const char *text);

/* Of the last lines of a program, cleaned: the one that says why it ended. That is the exception in
 * the last traceback of Python, else the last line that is not empty; cut to `size`. */
void text_last_words(const char *text, char *ret_words, size_t size);

/* Characters, not bytes. */
size_t text_width(const char *text, size_t len);

#endif
