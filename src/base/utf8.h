/* UTF-8 as RFC 3629 has it: overlong forms, surrogates and numbers above 0x10ffff are refused. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/buf.h"

#define UTF8_REPLACEMENT 0xfffd /* stands for what is not a character */

/* The length of the character at `text`, of which `left` bytes (at least one) can be read; 0: the
 * bytes there are not UTF-8. */
size_t utf8_len(const void *text, size_t left);

bool utf8_valid(const void *text, size_t len);

/* The number of the character at `text`, whose length utf8_len() gave. */
uint32_t utf8_decode(const void *text, size_t len);

/* Appends the character with that number. */
void utf8_append(struct buf *out, uint32_t code);

/* Whether a terminal or an editor would act on it, or show nothing: control characters (C0, DEL,
 * C1), separators of lines, marks that turn the direction of text, and what is no character. */
bool utf8_is_unseen(uint32_t code);

/* Puts '?' in the place of each of these but those in `kept`, and of each byte that is not UTF-8:
 * text from elsewhere may be shown on a terminal. The new length, which is not greater. */
size_t utf8_make_printable(char *text, size_t len, const char *kept);

/* The same with what stands in `buf` after its first `from` bytes. */
void utf8_make_rest_printable(struct buf *buf, size_t from, const char *kept);

#endif
