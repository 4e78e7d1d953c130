/* What the readers of eu-stack and gdb share. */
#ifndef PROTO_STACKS_NATIVE_H
#define PROTO_STACKS_NATIVE_H

#include "proto/stacks/stack_in.h"

/* The next line of the text, without its newline. */
bool native_line(struct bytes *text, struct bytes *ret_line);

/* Whether it begins with `prefix`, which is then taken off. */
bool native_takes(struct bytes *line, const char *prefix);

/* Takes off blanks, then a decimal number; 0: there is none, or it is too large. */
uint32_t native_number(struct bytes *line);

/* Takes off "#3  0x00007f69e4830503", the number and address of a frame; true if the number is
 * there. */
bool native_frame(struct bytes *line);

/* The first, or the last, place of `word`; NULL: none. */
const unsigned char *native_find(struct bytes text, const char *word);
const unsigned char *native_find_last(struct bytes text, const char *word);

/* Without the directories. */
struct bytes native_basename(struct bytes path);

/* Whether a function of the program itself is the user's: all but the one that starts it. */
bool native_own(struct bytes name);

/* "clock_nanosleep@GLIBC_2.2.5" without the version. */
struct bytes native_symbol(struct bytes name);

#endif
