/* Runs a command for each of many hosts, many at once, and keeps what each prints. Each has the
 * same time, from its own start on; what lasts longer is killed. For a process without other
 * threads. */
#ifndef FLEET_GATHER_H
#define FLEET_GATHER_H

#include "base/buf.h"
#include "base/strv.h"

#define GATHER_AT_ONCE 64
#define GATHER_OUTPUT_MAX ((size_t)1 << 20)
#define GATHER_ERRORS_MAX ((size_t)64 << 10) /* what is more is read and forgotten */

struct gather_item {
	struct strv argv;
	struct buf output, errors; /* of the command */
	bool late, too_much;	   /* why it was killed, if it was */
	int status;		   /* of waitpid(); without meaning if it was killed */
	/* Private. */
	pid_t pid;
	int pidfd, output_fd, errors_fd;
	uint64_t deadline_ns;
};

#define GATHER_ITEM_INIT \
	((struct gather_item){ .pid = -1, .pidfd = -1, .output_fd = -1, .errors_fd = -1 })
void gather_item_done(struct gather_item *item);

/* A command that cannot be started ends with 127, and `errors` says why. */
void gather_run(struct gather_item *items, size_t count, uint64_t timeout_ns);

#endif
