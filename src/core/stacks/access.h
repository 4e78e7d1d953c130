/* Why the kernel does not let a program look at a process, in words with a remedy. */
#ifndef CORE_STACKS_ACCESS_H
#define CORE_STACKS_ACCESS_H

#include "base/buf.h"

struct stack_access {
	bool denied;	 /* a trial was refused */
	bool other_user; /* the process runs as another user than we do */
	int yama_scope;	 /* kernel.yama.ptrace_scope; -1: there is no such setting */
};

/* "": it was not refused. */
const char *stack_access_remedy(const struct stack_access *access);

#endif
