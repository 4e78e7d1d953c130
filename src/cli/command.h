/* The parts of every command. One file per command in this folder defines one `struct command`; the
 * table in main.c lists them. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/opt.h"

struct command {
	const char *name;
	const char *synopsis; /* the rest of the usage line after "muster NAME" */
	const char *summary;  /* one line for `muster help` */
	const char *footer;   /* examples, shown after the options; may be NULL */
	const struct opt *opts;
	enum opt_mode mode;
	/* The words that the first argument may be, by number, then NULL; NULL: it is free. */
	const char *(*word)(size_t i);
	int (*main)(const struct command *command, int argc,
		    char **argv); /* returns the exit code */
};

/* Parses argv into `into`. Returns true to go on with *ret_first, the index of the first
 * positional. Otherwise help or a usage error has been printed and *ret_status is the exit code. */
bool command_parse(const struct command *command, void *into, int argc, char **argv,
		   struct opt_seen *ret_seen, int *ret_first, int *ret_status);

/* Prints "muster NAME: text" and how to get help; returns EXIT_CODE_USAGE. */
int command_usage_error(const struct command *command, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* For words that may be from elsewhere: run ids, names of hosts and files, what workers print.
 * What a terminal would act on is shown as '?' (utf8_make_printable). */
void command_print(const char *fmt, ...) PRINTF_LIKE(1, 2); /* on stdout */
void command_complain(const struct command *command, const char *fmt, ...)
	PRINTF_LIKE(2, 3); /* on stderr, as a line after the command's name */

void command_print_help(const struct command *command, FILE *out);

/* Characters in a line of the output: $COLUMNS, else as wide as the terminal; 0: no limit. */
int command_width(void);

/* The name of `command` in help and errors: "muster run", or "torchrun". */
const char *command_title(const struct command *command);
void command_set_title(const char *title);

#endif
