#include "sys/engine_ask.h"

#include <unistd.h>

#include "base/fd.h"
#include "base/procfs.h"
#include "base/str.h"

#define HOSTS_FILE_MAX ((size_t)1 << 20)
#define STEPD_TITLE_MAX 256

/* The title of the slurmstepd above us, which may have started a shell or a wrapper. */
static bool find_stepd(char title[STEPD_TITLE_MAX])
{
	struct proc_stat stat;
	pid_t pid = getppid();
	while (pid > 1 && procfs_stat(pid, &stat) == 0 && !str_eq(stat.comm, "slurmstepd"))
		pid = stat.ppid;
	return pid > 1 && procfs_title(pid, title, STEPD_TITLE_MAX) == 0;
}

int engine_ask(struct engine_asked asked, struct engine_settings *ret_settings, struct err *err)
{
	AUTO(buf_done) struct buf hosts_file = BUF_INIT;
	if (engine_is_here(environ) &&
	    file_read("/etc/hosts", HOSTS_FILE_MAX, &hosts_file, NULL) == 0)
		asked.hosts_file = buf_str(&hosts_file);
	char stepd[STEPD_TITLE_MAX];
	if (find_stepd(stepd))
		asked.stepd = stepd;
	return engine_detect(environ, &asked, ret_settings, err);
}
