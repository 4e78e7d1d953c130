/* What the words of `muster batch` mean: lists of orders, a command with arguments, or commands.
 * One rule for the whole command line, so that nothing is taken for an argument by accident. */
#ifndef CORE_BATCH_BATCH_WORDS_H
#define CORE_BATCH_BATCH_WORDS_H

#include "base/util.h"

enum batch_words {
	BATCH_WORDS_LISTS,	/* files with orders, "-" is standard input */
	BATCH_WORDS_STDIN_LIST, /* no words: standard input is the list */
	BATCH_WORDS_SOURCES,	/* a command and lists of arguments behind it, or -a */
	BATCH_WORDS_STDIN_ARGS, /* a command; its arguments are on standard input */
	BATCH_WORDS_COMMANDS,	/* every word is a command, as in hyperfine */
	/* errors: */
	BATCH_WORDS_NONE,    /* nothing to run */
	BATCH_WORDS_BOTH,    /* the first word is a list and a program */
	BATCH_WORDS_UNKNOWN, /* the first word is neither */
	BATCH_WORDS_COUNT,
};

struct batch_words_facts {
	bool has_words;
	bool has_sources;   /* ":::" and so on, or -a */
	bool measures;	    /* runs are repeated, or parameters are given */
	bool stdin_is_data; /* a pipe or a file, not a terminal or /dev/null */
	/* of the first word: */
	bool is_list;	 /* "-", or an existing file that is not a program */
	bool is_program; /* it is on PATH, an executable file, or a line for the shell */
};

enum batch_words batch_words_decide(const struct batch_words_facts *facts);

#endif
