/* The words of a command line: a command, and lists of arguments or of files behind ":::",
 * "::::", or, linked to the list before, ":::+" and "::::+". */
#ifndef PROTO_ARGS_WORDS_H
#define PROTO_ARGS_WORDS_H

#include "proto/args/sources.h"

struct arg_list {
	bool files;  /* the words are names of files with arguments, one source each */
	bool linked; /* to the list before */
	char *const *words;
	size_t count;
};

struct arg_words {
	char *const *command;
	size_t command_count;
	struct arg_list lists[ARG_SOURCES_MAX];
	size_t list_count;
};

/* Pointers into argv. */
int arg_words_parse(struct arg_words *words, int argc, char *const *argv, struct err *err);

/* The words of the command joined by blanks; the caller frees it. `quote`: so that the shell sees
 * each one as it is. */
char *arg_words_command(const struct arg_words *words, bool quote);

/* Appends a source with the words of a list that does not name files. */
int arg_sources_add_words(struct arg_sources *sources, const struct arg_list *list,
			  const struct arg_cutter *cutter, struct err *err);

#endif
