/* Worktrees and builds: side by side, and over before anything is measured. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/archive/program.h"
#include "batch/bisect/hunt.h"

#define MARK_MAX 65536

static char *path_of(const struct hunt *hunt, size_t commit, const char *ending)
{
	return mem_printf("%s/%s%s", hunt->dir, hunt->commits[commit].hash, ending);
}

/* What a mark says: "0" or "1" (it failed), and the command it was built with. */
static void mark_text(const struct hunt *hunt, bool well, struct buf *out)
{
	buf_printf(out, "%d %s\n", well ? 0 : 1, hunt->options->build ? hunt->options->build : "");
}

static int mark(const struct hunt *hunt, size_t commit, bool well, struct err *err)
{
	AUTO_FREE char *path = path_of(hunt, commit, ".built");
	AUTO(buf_done) struct buf text = BUF_INIT;
	mark_text(hunt, well, &text);
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : fd_write_all(fd, buf_data(&text), buf_len(&text));
	return r < 0 ? err_set(err, -r, "%s: %m", path) : 0;
}

/* A build of before with the same command: 1 well, 0 failed, -1 there is none. */
static int marked(const struct hunt *hunt, size_t commit)
{
	AUTO_FREE char *path = path_of(hunt, commit, ".built");
	AUTO_FREE char *tree = path_of(hunt, commit, "");
	AUTO(buf_done) struct buf found = BUF_INIT;
	if (access(tree, F_OK) < 0 || file_read(path, MARK_MAX, &found, NULL) < 0)
		return -1;
	for (int well = 0; well <= 1; well++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		mark_text(hunt, well, &text);
		if (str_eq(buf_str(&text), buf_str(&found)))
			return well;
	}
	return -1;
}

static int make_worktree(const struct hunt *hunt, size_t commit, struct err *err)
{
	AUTO_FREE char *tree = path_of(hunt, commit, "");
	AUTO(buf_done) struct buf nothing = BUF_INIT;
	if (access(tree, F_OK) == 0)
		return 0;
	char *prune[] = { "git", "worktree", "prune", NULL };
	char *add[] = {
		"git", "worktree", "add", "--quiet", "--detach", tree, hunt->commits[commit].full,
		NULL
	};
	int r = program_output(prune, NULL, true, &nothing, err);
	return r < 0 ? r : program_output(add, NULL, false, &nothing, err);
}

static int start_build(const struct hunt *hunt, size_t commit, pid_t *ret_pid, struct err *err)
{
	AUTO_FREE char *tree = path_of(hunt, commit, ""), *log = path_of(hunt, commit, ".log");
	char *argv[] = { "/bin/sh", "-c", (char *)hunt->options->build, NULL };
	return program_start(argv, tree, log, ret_pid, err);
}

static bool ended_well(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Builds that run, so that a failure elsewhere leaves none behind. */
struct builds {
	pid_t pids[64];
	size_t commits[64];
	size_t n;
};

static void builds_done(struct builds *builds)
{
	for (size_t i = 0; i < builds->n; i++) {
		kill(-builds->pids[i], SIGKILL);
		ended_well(builds->pids[i]);
	}
}

static int finish(struct hunt *hunt, struct builds *builds, struct err *err)
{
	int r = 0;
	while (builds->n > 0 && r >= 0) {
		size_t last = builds->n - 1, commit = builds->commits[last];
		bool well = ended_well(builds->pids[last]);
		builds->n--;
		bisect_built(&hunt->bisect, commit, well);
		if (!well && !hunt->options->quiet)
			log_warn("%s does not build: %s/%s.log says why; it is left out",
				 hunt->commits[commit].hash, hunt->dir, hunt->commits[commit].hash);
		r = mark(hunt, commit, well, err);
	}
	return r;
}

int hunt_build(struct hunt *hunt, const size_t *commits, size_t n, struct err *err)
{
	AUTO(builds_done) struct builds builds = { .n = 0 };
	for (size_t i = 0; i < n && builds.n < ARRAY_LEN(builds.pids); i++) {
		size_t commit = commits[i];
		int before = marked(hunt, commit);
		int r = before < 0 ? make_worktree(hunt, commit, err) : 0;
		if (r < 0)
			return r;
		if (before >= 0 || !hunt->options->build) {
			bisect_built(&hunt->bisect, commit, before != 0);
			r = before < 0 ? mark(hunt, commit, true, err) : 0;
		} else {
			builds.commits[builds.n] = commit;
			r = start_build(hunt, commit, &builds.pids[builds.n], err);
			builds.n += r >= 0;
		}
		if (r < 0)
			return r;
	}
	return finish(hunt, &builds, err);
}
