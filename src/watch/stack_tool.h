/* One program that reads the stack of one process: it is started, its output is collected, and it
 * is ended. */
#ifndef WATCH_STACK_TOOL_H
#define WATCH_STACK_TOOL_H

#include <poll.h>

#include "base/piped.h"
#include "proto/stacks/stack_in.h"

enum stack_tool {
	STACK_TOOL_PYSPY_NATIVE,
	STACK_TOOL_PYSPY,
	STACK_TOOL_PYSPY_STOPPED, /* of a process that is stopped: without native frames */
	STACK_TOOL_EUSTACK,
	STACK_TOOL_GDB,
	STACK_TOOL_COUNT,
};

const char *stack_tool_program(enum stack_tool tool);
const char *stack_tool_source(enum stack_tool tool); /* what to install, for users */
bool stack_tool_is_there(enum stack_tool tool);	     /* in PATH */

struct stack_run {
	enum stack_tool tool;
	struct piped child; /* pid 0: it does not run */
	struct buf out, err;
};

#define STACK_RUN_POLLS 2

int stack_run_start(struct stack_run *run, enum stack_tool tool, pid_t pid, struct err *err);

/* What to wait for, and what to do after that: true when the output is complete. */
void stack_run_poll(const struct stack_run *run, struct pollfd fds[STACK_RUN_POLLS]);
bool stack_run_read(struct stack_run *run, const struct pollfd fds[STACK_RUN_POLLS]);

/* Ends the program. */
void stack_run_end(struct stack_run *run);

/* Then: the threads that it found. -EBADMSG: none; *ret_why has its own words. */
int stack_run_result(struct stack_run *run, const struct stack_target *target,
		     struct stack_process *process, struct buf *ret_why);
void stack_run_done(struct stack_run *run);

#endif
