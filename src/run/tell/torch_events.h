/* --event-log-handler=console: tells the job's story on stderr in the words of torch's agent. Told
 * through the output, so a terminal that does not read holds nothing up, and whatever the log level
 * is. */
#ifndef RUN_TELL_TORCH_EVENTS_H
#define RUN_TELL_TORCH_EVENTS_H

#include "run/workers.h"

/* The round that workers_begin() has just prepared, `duration_ns` after the one before was gone. */
void torch_events_round(const struct workers *workers, const struct history *history,
			uint64_t duration_ns);
void torch_events_started(const struct workers *workers, const struct history *history,
			  size_t local_rank);

/* The watchdog of a round, where torch's timers are served: begins and ends; a timer is over. */
void torch_events_watchdog(const struct workers *workers, const struct history *history,
			   bool begins);
void torch_events_expired(const struct workers *workers, const struct history *history,
			  const struct watchdog_expiry *expiry);

/* The end of every worker of the last attempt, and of the job. */
void torch_events_end(const struct workers *workers, const struct history *history);

#endif
