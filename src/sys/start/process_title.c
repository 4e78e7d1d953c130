#include "sys/start/process_title.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/procfs.h"

/* Where the command line lies in memory; the same place in agent, heir and warden. */
static struct {
	char *start, *end;
} arguments;

void process_title_know_arguments(int argc, char **argv)
{
	char *end = argc > 0 ? argv[0] : NULL;
	for (int i = 0; i < argc; i++) {
		if (argv[i] != end)
			return; /* not as the kernel has put them there */
		end += strlen(end) + 1;
	}
	arguments.start = argc > 0 ? argv[0] : NULL;
	arguments.end = end;
}

static void find_arguments(void)
{
	struct proc_stat stat;
	if (procfs_stat(getpid(), &stat) < 0)
		return;
	arguments.start = (char *)stat.arg_start;
	arguments.end = (char *)stat.arg_end;
}

/* What ps and pkill see. */
static void set_command_line(const char *name)
{
	if (!arguments.start)
		find_arguments();
	if (arguments.end <= arguments.start)
		return;
	size_t size = (size_t)(arguments.end - arguments.start);
	memset(arguments.start, 0, size);
	strncpy(arguments.start, name, size - 1);
}

void process_title_take(const char *name)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, name);
	set_command_line(name);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGCONT); /* our parent dies while we are stopped */
}
