/* Option tables: one static table per command is its parser, its --help, its completion and what
 * the man page is checked against.
 *
 * A table describes fields of the command's own struct, so it can be read without running anything:
 *
 *     static const struct opt opts[] = {
 *         OPT_GROUP("Workers"),
 *         OPT_INT("max-restarts", "PET_MAX_RESTARTS", struct run_options, max_restarts, "N", "…"),
 *         OPT_END,
 *     };
 *
 * A name is written with dashes; underscores are accepted too, and so is an unambiguous prefix.
 * Values: `--opt V`, `--opt=V`, `-oV`, `-o V`, `-o=V`; the last one wins. An option whose value
 * may be left out takes it only with a '='. A variable that is set gives the default, through the
 * same checks; the command line always wins over it.
 */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include <stdio.h>

#include "base/strv.h"
#include "base/err.h"

struct opt;

/* Parses `text` into `field`; the error says what is wrong with the value, without the option's
 * name. */
typedef int opt_parse_fn(const char *text, void *field, struct err *err);

enum opt_type {
	OPT_TYPE_END,
	OPT_TYPE_GROUP,	   /* a heading in the help */
	OPT_TYPE_FLAG,	   /* bool */
	OPT_TYPE_STR,	   /* const char *, borrowed from argv or the environment */
	OPT_TYPE_INT,	   /* int64_t, as Python's int() */
	OPT_TYPE_FLOAT,	   /* double */
	OPT_TYPE_DURATION, /* uint64_t nanoseconds */
	OPT_TYPE_SIZE,	   /* uint64_t bytes */
	OPT_TYPE_CHOICE,   /* int, index into `choices` */
	OPT_TYPE_LIST,	   /* struct strv, every occurrence adds one */
	OPT_TYPE_CALL,	   /* whatever `parse` makes of it */
};

struct opt {
	enum opt_type type;
	char short_name; /* 0: none */
	const char *name;
	const char *env; /* variable with the default; NULL: none */
	const char *arg; /* the name of the value in the help */
	const char *help;
	size_t offset;
	const char *const *choices; /* NULL-terminated */
	opt_parse_fn *parse;
	const char *bare; /* the value of `--opt` alone: only `--opt=V` gives another; NULL: it
			     needs one */
	/* It takes no value while this holds of what was given before it: its value is "". */
	bool (*is_flag)(const void *into);
	const char *later;   /* not supported: an error with this reason */
	bool without_effect; /* accepted only: a bad value in its variable is a warning */
	int words;	     /* LIST: values that it takes and adds; 0: one */
	/* Several options may have the same short name: the one that the word behind it fits is
	 * meant, otherwise the one where this is NULL. */
	bool (*fits)(const char *word);
	char elsewhere; /* what other programs call it: it is asked for, not taken; 0: nothing */
};

#define OPT_GROUP(title) \
	{ \
		.type = OPT_TYPE_GROUP, .help = title \
	}
#define OPT_FIELD(t, n, e, s, f, a, h) \
	.type = (t), .name = (n), .env = (e), .arg = (a), .help = (h), .offset = offsetof(s, f)
#define OPT_FLAG(n, e, s, f, h) \
	{ \
		OPT_FIELD(OPT_TYPE_FLAG, n, e, s, f, NULL, h) \
	}
#define OPT_STR(n, e, s, f, a, h) \
	{ \
		OPT_FIELD(OPT_TYPE_STR, n, e, s, f, a, h) \
	}
#define OPT_INT(n, e, s, f, a, h) \
	{ \
		OPT_FIELD(OPT_TYPE_INT, n, e, s, f, a, h) \
	}
#define OPT_FLOAT(n, e, s, f, a, h) \
	{ \
		OPT_FIELD(OPT_TYPE_FLOAT, n, e, s, f, a, h) \
	}
#define OPT_DURATION(n, e, s, f, a, h) \
	{ \
		OPT_FIELD(OPT_TYPE_DURATION, n, e, s, f, a, h) \
	}
#define OPT_SIZE(n, e, s, f, a, h) \
	{ \
		OPT_FIELD(OPT_TYPE_SIZE, n, e, s, f, a, h) \
	}
#define OPT_LIST(n, s, f, a, h) \
	{ \
		OPT_FIELD(OPT_TYPE_LIST, n, NULL, s, f, a, h) \
	}
#define OPT_CHOICE(n, e, s, f, c, h) \
	{ \
		OPT_FIELD(OPT_TYPE_CHOICE, n, e, s, f, NULL, h), .choices = (c) \
	}
#define OPT_CALL(n, e, s, f, p, a, h) \
	{ \
		OPT_FIELD(OPT_TYPE_CALL, n, e, s, f, a, h), .parse = (p) \
	}
/* The same with a short name: OPT_SHORT('t', OPT_STR("tee", …)) would need nesting, so write
 * { OPT_FIELD(OPT_TYPE_STR, …), .short_name = 't' } instead. */
#define OPT_END \
	{ \
		.type = OPT_TYPE_END \
	}

#define OPT_MAX 160 /* options in one table */

/* Which options were given on the command line or by the environment. */
struct opt_seen {
	bool by_argv[OPT_MAX];
	bool by_env[OPT_MAX];
	/* The option whose value is the last word of the command line, a word of its own; NULL:
	 * none. Where a command is missing, this may be what took it. */
	const struct opt *took_last;
};

bool opt_given(const struct opt *opts, const struct opt_seen *seen, const char *name);

/* Its value is that of its variable. */
bool opt_by_variable(const struct opt *opts, const struct opt_seen *seen, const char *name);

enum opt_mode {
	OPT_STOP_AT_POSITIONAL, /* options end at the first positional */
	OPT_PERMUTE,		/* options may come anywhere before "--" */
};

#define OPT_WANTS_HELP INT32_MAX

/* Fills `into` from the environment and argv[1..]. Returns the index of the first positional (in
 * OPT_PERMUTE, positionals are moved to the end), OPT_WANTS_HELP for -h/--help, or -EINVAL. */
int opt_parse(const struct opt *opts, enum opt_mode mode, void *into, int argc, char **argv,
	      struct opt_seen *ret_seen, struct err *err);

/* Prints the options with their help, wrapped to `width` columns. */
void opt_print_help(const struct opt *opts, FILE *out, int width);

/* One "--name" (and "-x") a line with its kind of value, for completion and the man-page check:
 * "--name flag", "--name value", "--name choice a b c". */
void opt_print_names(const struct opt *opts, FILE *out);

/* The same names, each with a tab and its help, for completion. */
void opt_print_help_lines(const struct opt *opts, FILE *out);

/* Whether `word` is "--name" or "--name=value" of an option in the table. */
bool opt_known(const struct opt *opts, const char *word);

#endif
