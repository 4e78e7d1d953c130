/* Exit codes of all commands. A failed job ends with the first cause's own code, or 128 +
 * signal. */
#ifndef CORE_WORKER_EXIT_CODE_H
#define CORE_WORKER_EXIT_CODE_H

enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_FAILED = 1,	     /* something failed that has no code of its own */
	EXIT_CODE_USAGE = 2,	     /* the command line is wrong */
	EXIT_CODE_REGRESSION = 3,    /* `compare` found one */
	EXIT_CODE_TIMEOUT = 124,     /* join or rendezvous time-out */
	EXIT_CODE_SYSTEM = 125,	     /* the launcher or the system failed, not the job */
	EXIT_CODE_NOT_EXEC = 126,    /* found, but cannot be executed */
	EXIT_CODE_NOT_FOUND = 127,   /* no such program or script */
	EXIT_CODE_SIGNAL_BASE = 128, /* + number of the signal that ended the job */
};

#endif
