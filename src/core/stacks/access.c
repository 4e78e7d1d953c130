#include "core/stacks/access.h"

#define CAPABILITY "the capability CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)"

const char *stack_access_remedy(const struct stack_access *access)
{
	if (!access->denied)
		return "";
	if (access->other_user)
		return "it runs as another user: ask as that user, or as root";
	switch (access->yama_scope) {
	case 1:
		return "kernel.yama.ptrace_scope is 1, so only the muster run that started a "
		       "worker may look at it, and nothing at its children: ask without --here, "
		       "set it to 0 with sysctl, or give " CAPABILITY;
	case 2:
		return "kernel.yama.ptrace_scope is 2: give " CAPABILITY
		       ", or set it to 0 or 1 with sysctl";
	case 3:
		return "kernel.yama.ptrace_scope is 3, so no process may look at another until "
		       "the next boot: remove it from /etc/sysctl.d";
	default:
		return "it does not let itself be traced (it changed its user or its "
		       "capabilities), or a container forbids it: give " CAPABILITY;
	}
}
