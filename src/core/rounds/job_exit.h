/* The exit code of a job: for `muster run`, and for `muster coordinator` alike. */
#ifndef CORE_ROUNDS_JOB_EXIT_H
#define CORE_ROUNDS_JOB_EXIT_H

#include "core/rounds/agent.h"
#include "core/worker/exit_code.h"

/* `stop_signal` asked muster to end; 0: none. `first` is the first cause of the job's failure;
 * NULL: unknown. */
int job_exit_code(enum outcome_kind kind, int stop_signal, const struct cause *first);

/* Why it ended, for the table of exit codes (core/worker/exit_code.h). */
enum exit_reason job_exit_reason(const struct outcome *outcome, int stop_signal);

#endif
