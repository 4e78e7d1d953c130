/* The result file of a batch: JSON Lines. The first line is a header with facts about the host;
 * then one line per attempt, appended when the attempt is over. muster-batch(5) describes every
 * key.
 *
 * A value that could not be measured is absent, and `missing` says why; it is never 0. */
#ifndef PROTO_RESULT_H
#define PROTO_RESULT_H

#include "base/strv.h"
#include "base/err.h"
#include "core/worker/exit_status.h"
#include "core/batch/reason.h"

#define RESULT_FORMAT 1
#define RESULT_LINE_MAX ((size_t)16 << 20)
#define RESULT_HASH_MAX 33   /* 32 hex digits */
#define RESULT_SHA256_MAX 65 /* 64 hex digits */

/* Numbers that are either there or missing. */
enum result_value {
	RESULT_WALL_NS,
	RESULT_USER_NS,
	RESULT_SYS_NS,
	RESULT_MAXRSS_KB,
	RESULT_MEMORY_PEAK_KB,
	RESULT_MINFLT,
	RESULT_MAJFLT,
	RESULT_NVCSW,
	RESULT_NIVCSW,
	RESULT_INSTRUCTIONS, /* inside "counts" */
	RESULT_VALUE_COUNT,
};

struct result_output {
	bool present;
	char *path; /* NULL: not kept in a file */
	uint64_t bytes;
	char sha256[RESULT_SHA256_MAX]; /* "": not known */
};

struct result {
	char *id;
	char hash[RESULT_HASH_MAX]; /* identity of the order */
	bool named;		    /* the id is what people shall see, not the command */

	/* What ran: one of `shell` (a line for the shell) and `argv`; the rest only where given. */
	char *shell;
	struct strv argv;
	struct strv args;      /* of a template; they are in the command already */
	struct strv env;       /* "NAME=value" sets, "NAME" alone unsets */
	struct strv labels;    /* "NAME=value" */
	struct strv arg_names; /* of each of `args`, "" for none; empty: none has one */
	char *cwd, *stdin_path, *group;
	char *source; /* with which the command sets up its environment, ". env.sh" */
	int width;    /* cores asked for; 0: not given */

	int attempt; /* 1, 2, …: retries */
	int run;     /* 0, 1, …: repetitions */
	bool warmup;
	char variant[16]; /* "": none; "A", "B" */
	int block;	  /* block of an A/B measurement; -1: none */

	enum reason reason;
	struct exit_status status;
	char start[40]; /* ISO 8601, UTC */
	bool has[RESULT_VALUE_COUNT];
	int64_t value[RESULT_VALUE_COUNT];
	bool has_number; /* the program reported a number itself: */
	double number;
	char *unit; /* "" and NULL: none */
	bool more_is_better;
	char *cores;		       /* "2-3"; NULL: not pinned */
	char *node;		       /* on which of several hosts it ran; NULL: there is one */
	char *count_source, *env_hash; /* of the counts; NULL: none */
	struct strv suspect;	       /* why the sample should not be trusted */
	struct strv missing;	       /* "field=why" */
	struct result_output out, err_out; /* stdout, stderr */
	char *tail; /* of an attempt that failed: its last lines on stderr, or stdout; NULL: none */
};

#define RESULT_INIT ((struct result){ .block = -1 })

void result_done(struct result *result);

/* Sets a value, or records why it is missing. */
void result_set(struct result *result, enum result_value value, int64_t number);
void result_miss(struct result *result, const char *field, const char *why);

/* Appends the attempt as one line, newline included. */
void result_write(const struct result *result, struct buf *out);

/* Reads one line (newline optional) into `ret_result`, which must be RESULT_INIT or done; the
 * caller owns it even after a failure. Unknown keys are skipped. Returns 1 for an attempt, 0 for
 * another kind of line (a header: it has the key "muster"), -EINVAL for what is not a result line.
 */
int result_read(const char *line, size_t len, struct result *ret_result, struct err *err);

#endif
