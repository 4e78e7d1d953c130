/* Making the output of others fit to be shown: in a report, on a terminal, in a file. */
#ifndef RUN_TELL_TEXT_H
#define RUN_TELL_TEXT_H

#include "base/buf.h"

/* Appends `data` as a terminal would show it, without the power over the terminal: escape sequences
 * and control characters go, of a line that was drawn over with '\r' the last state stays, and
 * bytes that are no UTF-8 become U+FFFD. Tabs and newlines stay. */
void text_clean(struct buf *out, const void *data, size_t len);

/* The last `lines` lines of `text` (a final newline ends a line, it begins none). */
const char *text_tail(const char *text, unsigned lines);

/* Appends `text` with `prefix` before each line and a newline after the last. */
void text_indent(struct buf *out, const char *prefix, const char *text);

/* Characters, not bytes. */
size_t text_width(const char *text, size_t len);

#endif
