#include "run/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static void add(struct err *err, const char *text)
{
	size_t len = strlen(err->msg);
	snprintf(err->msg + len, sizeof(err->msg) - len, "; %s", text);
}

static void add_limit(struct err *err, __rlimit_resource_t resource, const char *what,
		      const char *remedy)
{
	struct rlimit limit;
	char text[160];
	if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		snprintf(text, sizeof(text), "no more %s are allowed: %s", what, remedy);
	else
		snprintf(text, sizeof(text), "at most %llu %s are allowed: %s",
			 (unsigned long long)limit.rlim_cur, what, remedy);
	add(err, text);
}

void limits_explain(int error, struct err *err)
{
	if (!err)
		return;
	switch (error) {
	case EAGAIN:
		add_limit(err, RLIMIT_NPROC, "processes",
			  "raise 'ulimit -u' or the cgroup's pids.max");
		break;
	case EMFILE:
		add_limit(err, RLIMIT_NOFILE, "open files", "raise 'ulimit -n'");
		break;
	case ENFILE:
		add(err, "the host has no open files left: raise fs.file-max");
		break;
	case ENOMEM:
		add(err, "the host or the cgroup has no memory left");
		break;
	default:
		break;
	}
}
