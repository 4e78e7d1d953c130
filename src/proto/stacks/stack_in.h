/* Reads what the programs that show stacks print: py-spy, eu-stack and gdb.
 *
 * Each reader adds the threads of one process, whose program file is `exe` ("": not known): frames
 * of that file are the user's own. It takes what it understands of the text and skips the rest;
 * -EBADMSG when no frame is in it. */
#ifndef PROTO_STACKS_STACK_IN_H
#define PROTO_STACKS_STACK_IN_H

#include "core/stacks/stack.h"

struct stack_target {
	pid_t pid;
	const char *exe;
};

typedef int stack_reader_fn(const char *text, size_t len, const struct stack_target *target,
			    struct stack_process *process);

stack_reader_fn stack_read_pyspy;   /* py-spy dump --json, with or without --native */
stack_reader_fn stack_read_eustack; /* eu-stack -m -s */
stack_reader_fn stack_read_gdb;	    /* "thread apply all bt" */

#endif
