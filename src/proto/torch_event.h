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

struct torch_event {
	enum torch_state state;
	const struct torch_worker *worker; /* NULL: the event is the agent's own */
	uint64_t wall_ns;
	const char *run_id, *role, *host, *rdzv_backend;
	const char *entry_point; /* without its directory */
	uint32_t group_rank, group_world_size; /* size 0: before the first round */
	uint64_t run_time_s;
	uint32_t restarts;
	int64_t duration_ms;   /* -1: none */
	const char *raw_error; /* JSON text, which becomes a JSON string; NULL: none */
};

/* Appends the line with its newline. */
void torch_event_line(struct buf *out, const struct torch_event *event);

#endif
