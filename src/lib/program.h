/* The muster program as a child of the calling process: in a process group of its own, with a pipe
 * that it writes to and a pipe by whose end it notices that we are gone. Nothing is set in the
 * calling process. */
#ifndef LIB_PROGRAM_H
#define LIB_PROGRAM_H

#include <sys/types.h>

#include "base/err.h"
#include "base/strv.h"

struct program {
	pid_t pid;
	int pidfd;	  /* -1: there is none */
	int news;	  /* we read here, without waiting */
	int lifeline;	  /* open as long as we live */
	int its_news;	  /* the program's ends, until it has started; their numbers are */
	int its_lifeline; /* the same in the program */
	bool ended;
};

#define PROGRAM_INIT \
	((struct program){ \
		.pidfd = -1, .news = -1, .lifeline = -1, .its_news = -1, .its_lifeline = -1 })

struct program_spec {
	const char *program; /* NULL: $MUSTER_PROGRAM, else "muster" on PATH */
	const struct strv *argv;
	const char *const *env; /* changes: "NAME=value" sets, "NAME" unsets; may be NULL */
	const char *cwd;	/* NULL: ours */
	int stdio[3];		/* that become its 0, 1 and 2; -1: ours */
};

/* Makes the pipes; the command line of program_start() may name their numbers. */
int program_open(struct program *program, struct err *err);
int program_start(struct program *program, const struct program_spec *spec, struct err *err);

/* Waits for its end: its exit code, 128 + the signal that ended it, or -1 if the caller has waited
 * for it already. */
int program_wait(struct program *program);

/* -ESRCH after its end. */
int program_signal(struct program *program, int signal);

/* Kills the program if it still runs, waits for its end and closes everything. */
void program_done(struct program *program);

#endif
