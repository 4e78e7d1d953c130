/* A child program with a pipe on each of its standard descriptors.
 *
 * It runs in its own session, so that it gets no signals from a terminal, and gets SIGTERM when
 * this process dies. */
#ifndef BASE_PIPED_H
#define BASE_PIPED_H

#include "base/err.h"

struct piped_spec {
	char *const *argv; /* a name without a slash is searched in PATH */
	char *const *envp;
	const char *cwd;  /* NULL: ours */
	bool deaf;	  /* its standard input is /dev/null */
	const int *extra; /* descriptors that it gets as 3, 4 and so on */
	size_t extra_count;
};

#define PIPED_EXTRA_MAX 8

/* Our ends of the pipes: CLOEXEC and blocking; `in` is -1 if it is deaf. */
struct piped {
	pid_t pid;
	int pidfd;
	int in, out, err;
};

#define PIPED_INIT ((struct piped){ .pidfd = -1, .in = -1, .out = -1, .err = -1 })

/* Returns when it was executed. The caller waits for it (child_wait()) and closes the
 * descriptors. */
int piped_start(const struct piped_spec *spec, struct piped *ret_piped, struct err *err);

/* Closes the descriptors. */
void piped_done(struct piped *piped);

#endif
