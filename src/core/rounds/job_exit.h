/* The exit code of a job: for `muster run`, and for `muster coordinator` alike. */
#ifndef CORE_ROUNDS_JOB_EXIT_H
#define CORE_ROUNDS_JOB_EXIT_H

#include "core/rounds/agent.h"

/* `stop_signal` asked muster to end; 0: none. `first` is the first cause of the job's failure;
 * NULL: unknown. */
int job_exit_code(enum outcome_kind kind, int stop_signal, const struct cause *first);

/* 126, 127 or 125 for a program that could not be started. */
int job_exit_code_of_spawn(int spawn_errno);

#endif
