/* The signals of `muster run`, as a descriptor for the loop.
 *
 * After signals_open() every signal that means something to the job waits in the descriptor and
 * interrupts nothing. INT, TERM and QUIT count even when they were inherited ignored (a job started
 * with `&`); HUP inherited ignored (nohup) stays ignored. Workers inherit none of this: the warden
 * gives them default dispositions and an empty mask. */
#ifndef SYS_SIGNALS_H
#define SYS_SIGNALS_H

#include <signal.h>

#include "base/err.h"

enum signal_meaning {
	SIGNAL_STOP,	/* end the job with this signal */
	SIGNAL_RELAY,	/* USR1, USR2: for workers that catch it */
	SIGNAL_SUSPEND, /* Ctrl-Z */
};

struct signals {
	int fd; /* readable when one is pending */
	sigset_t stop;
};

/* `stop` are the signals that end the job (--signals-to-handle). */
int signals_open(const sigset_t *stop, struct signals *ret_signals, struct err *err);
void signals_close(struct signals *signals);

/* No signal can do harm any more: each has its default effect from now on. */
void signals_release(void);

struct signal_taken {
	int signal;
	enum signal_meaning meaning;
	pid_t sender; /* 0: outside of our process id namespace, or the kernel */
};

/* Takes one pending signal: 1, 0 when there is none. */
int signals_next(struct signals *signals, struct signal_taken *ret_taken);

/* Whether a program of that name sent it; it cannot be seen from inside of a container, where a
 * signal from outside counts as sent by it. NULL is the name of no program. */
bool signals_sent_by(const struct signal_taken *taken, const char *program);

/* Stops this process until SIGCONT; returns for how long (ns). */
uint64_t signals_suspend_self(void);

#endif
