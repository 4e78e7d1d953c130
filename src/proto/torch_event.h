/* The events of torch's elastic agent, as its `console` handler prints them: for programs that read
 * torchrun's. The members and their order are torch's; the timestamp, always 0 there, is real. */
#ifndef PROTO_TORCH_EVENT_H
#define PROTO_TORCH_EVENT_H

#include "base/buf.h"

enum torch_state {
	TORCH_RENDEZVOUS,
	TORCH_ASSIGN_WORKER_RANKS,
	TORCH_START,
	TORCH_SUCCEEDED,
	TORCH_FAILED,
	TORCH_TERMINATED,
	TORCH_STATE_COUNT,
};

struct torch_worker {
	uint32_t global_rank, local_rank, role_rank, role_world_size;
	pid_t pid;
	bool failed;
	int exit_code; /* if it failed; a negative signal number if a signal ended it */
};

/* The events of torch's watchdog: they come from the agent, which is RUNNING. */
enum torch_watchdog {
	TORCH_NOT_WATCHDOG,
	TORCH_WATCHDOG_STARTED,
	TORCH_WATCHDOG_STOPPED,
	TORCH_TIMER_EXPIRED,
	TORCH_KILL_WORKER,
	TORCH_WATCHDOG_COUNT,
};

struct torch_timer {
	pid_t pid;
	const char *scope;
	uint64_t expiration_wall_ns;
	int signal;
};

struct torch_event {
	enum torch_state state;
	enum torch_watchdog watchdog;	   /* instead of `state` */
	const struct torch_timer *timer;   /* of the last two of them */
	const struct torch_worker *worker; /* NULL: the event is the agent's own */
	uint64_t wall_ns;
	const char *run_id, *role, *host, *rdzv_backend;
	const char *entry_point;	       /* without its directory */
	uint32_t group_rank, group_world_size; /* size 0: before the first round */
	uint64_t run_time_s;
	uint32_t restarts;
	int64_t duration_ms;   /* -1: none */
	const char *raw_error; /* JSON text, which becomes a JSON string; NULL: none */
};

/* Appends the line with its newline. */
void torch_event_line(struct buf *line, const struct torch_event *event);

#endif
