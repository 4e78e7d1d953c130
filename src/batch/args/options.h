/* Where the arguments of a command come from, as GNU parallel and hyperfine spell it. */
#ifndef BATCH_ARGS_OPTIONS_H
#define BATCH_ARGS_OPTIONS_H

#include "base/strv.h"
#include "proto/args/fill.h"

/* Files that move with orders on many hosts, as GNU parallel spells it. */
struct file_options {
	struct strv transfer, returns; /* templates of paths */
	bool args;		       /* --transfer: the arguments are such files */
	bool cleanup;
	uint64_t limit; /* bytes that a host may send of one order, output and files */
};

#define RETURN_LIMIT_DEFAULT ((uint64_t)10 << 30)

static inline bool file_options_given(const struct file_options *files)
{
	return files->args || files->transfer.count || files->returns.count;
}

struct arg_options {
	struct strv files; /* -a */
	bool null_ends;	   /* -0 */
	const char *delimiter, *colsep, *eof, *replace;
	const char *header; /* ":" or NULL; with --pipe also what block_rules.header may be */
	bool csv, skip_empty, link, quote;
	int64_t max_args;	    /* -n, -N, -L; -1: not given, 0: the arguments are not used */
	bool line, spread, context; /* --xargs, -m, -X */
	int64_t max_chars;	    /* 0: as many as work */
	struct strv scans;	    /* parameters: name, min, max, name, min, max, … */
	struct strv lists;	    /* parameters: name, values, name, values, … */
	const char *step;	    /* of the scans */
	struct strv names;	    /* of the commands, in their order */
	int64_t max_lines;	    /* -L; -1: not given */
	/* --pipe: standard input is cut into blocks, see proto/args/blocks.h */
	bool pipe, regexp, remove_separators;
	uint64_t block_size; /* 0: not given */
	const char *recstart, *recend;
	bool tag;
	const char *tag_text; /* --tagstring */
};

#endif
