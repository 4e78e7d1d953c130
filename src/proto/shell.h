/* Command lines as the shell sees them. */
#ifndef PROTO_SHELL_H
#define PROTO_SHELL_H

#include "base/buf.h"
#include "base/strv.h"

/* Appends `text` so that the shell reads it as one word; as GNU parallel writes it. */
void shell_quote(struct buf *out, const char *text);

/* Appends the words, quoted where needed, with blanks between them. */
void shell_join(struct buf *out, char *const *argv);

/* True if a line consists of plain words that the shell would not change; appends them to ret_argv.
 * Executing them does what the shell would do, without the cost of a shell. */
bool shell_split_plain(const char *line, struct strv *ret_argv);

/* The length of what a line does before its command to set up the environment: ". FILE" or
 * "source FILE" before "&&", once or several times, without the last "&&". 0: nothing. */
size_t shell_source_len(const char *line);

/* The program that a command runs: the first word of `line` after its source command, or argv[0].
 * Each of the three may be NULL. The caller frees it. */
char *shell_program(const char *line, const char *source, char *const *argv);

#endif
