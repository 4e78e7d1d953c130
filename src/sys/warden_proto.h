/* The messages between agent and warden. Plain structs: both are the same program in memory. */
#ifndef SYS_WARDEN_PROTO_H
#define SYS_WARDEN_PROTO_H

#include "sys/warden.h"
#include "sys/warden_wire.h"

enum warden_request {
	REQUEST_SPAWN,
	REQUEST_ADOPT,	/* struct request_adopt, with the gate */
	REQUEST_SIGNAL, /* struct request_signal */
	REQUEST_SYNC,	/* has no body */
};

enum signal_scope {
	SCOPE_MAIN,  /* the main process `id` */
	SCOPE_GROUP, /* and all in its process group */
	SCOPE_ORPHANS,
	SCOPE_ALL,
};

struct request_signal {
	uint64_t id;
	enum signal_scope scope;
	int sig;
};

struct request_adopt {
	uint64_t id;
	pid_t pid;
};

/* Followed by the CPU set, the memory nodes, then NUL-terminated strings: path, working directory
 * if any, arguments, environment. The frame carries one descriptor per stdio[i] >= 0, in order. */
struct request_spawn {
	uint64_t id;
	uint64_t nofile_soft;
	uint64_t arg_count, env_count;
	uint32_t cpus_size, mem_nodes_size;
	int mem_mode, nice;
	int stdio[3];
	unsigned flags;
	bool has_cwd, ignores_usr, group_only;
	bool has_group, has_extra; /* one more descriptor each, behind the others */
};

/* With WARDEN_SAME neither environment nor descriptors of stdio are in it. */
void request_spawn_put(struct buf *out, uint64_t id, const struct spawn_spec *spec, unsigned flags);

/* A parsed spawn request: `spec` points into the frame and into `pointers`. */
struct request_spawn_view {
	struct request_spawn head;
	struct spawn_spec spec;
};

/* 0, or -EPROTO. `pointers` is memory to reuse from call to call. */
int request_spawn_get(const struct wire_frame *frame, struct buf *pointers,
		      struct request_spawn_view *ret_view);

/* In the other direction every frame is one of these. */
struct warden_reply {
	struct warden_event event;
	bool answers_spawn; /* the first reply to a request to start */
	bool born;	    /* the very first one, not an event: the warden's pid, with its pidfd */
};

/* What the agent forks: the heir, which forks the warden. `link` is the warden's end of the pair,
 * `leaf` the name of its cgroup; the process is fresh from fork(). */
_Noreturn void heir_main(const struct warden_opts *opts, const char *leaf, int link, pid_t agent);

/* The warden's main function. `agent_fd` is a pidfd of the agent, or -1. */
_Noreturn void warden_main(const struct warden_opts *opts, const char *leaf, int link, int agent_fd,
			   pid_t agent);

/* Closes all other descriptors; standard ones become /dev/null. The number it has afterwards. */
int warden_close_all_but(int fd);

/* A warden that was killed has left its cgroup behind. */
void warden_clear_cgroup(const char *leaf);

#endif
