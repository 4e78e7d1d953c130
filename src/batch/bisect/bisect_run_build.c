/* Worktrees and builds: side by side, and over before anything is measured. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/archive/run_program.h"
#include "batch/bisect/bisect_run.h"
#include "batch/export.h"
#include "batch/results.h"
#include "core/worker/exit_code.h"
#include "proto/json_out.h"
#include "proto/result.h"

#define MARK_MAX 65536

char *bisect_run_path(const struct bisect_run *run, size_t commit, const char *ending)
{
	return mem_printf("%s/%s%s", run->dir, run->commits[commit].hash, ending);
}

/* What a mark says: "0" or "1" (it failed), and the command it was built with. */
static void mark_text(const struct bisect_run *run, bool well, struct buf *out)
{
	buf_printf(out, "%d %s\n", well ? 0 : 1, run->options->build ? run->options->build : "");
}

static int mark(const struct bisect_run *run, size_t commit, bool well, struct err *err)
{
	AUTO_FREE char *path = bisect_run_path(run, commit, ".built");
	AUTO(buf_done) struct buf text = BUF_INIT;
	mark_text(run, well, &text);
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : fd_write_all(fd, buf_data(&text), buf_len(&text));
	return r < 0 ? err_set(err, -r, "%s: %m", path) : 0;
}

/* A build of before with the same command: 1 well, 0 failed, -1 there is none. */
static int marked(const struct bisect_run *run, size_t commit)
{
	AUTO_FREE char *path = bisect_run_path(run, commit, ".built");
	AUTO_FREE char *tree = bisect_run_path(run, commit, "");
	AUTO(buf_done) struct buf found = BUF_INIT;
	if (access(tree, F_OK) < 0 || file_read(path, MARK_MAX, &found, NULL) < 0)
		return -1;
	for (int well = 0; well <= 1; well++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		mark_text(run, well, &text);
		if (str_eq(buf_str(&text), buf_str(&found)))
			return well;
	}
	return -1;
}

static int make_worktree(const struct bisect_run *run, size_t commit, struct err *err)
{
	AUTO_FREE char *tree = bisect_run_path(run, commit, "");
	AUTO(buf_done) struct buf nothing = BUF_INIT;
	if (access(tree, F_OK) == 0)
		return 0;
	/* With --force also where git remembers a worktree that was removed by hand. */
	char *add[] = { "git",	   "worktree", "add", "--quiet",
			"--force", "--detach", tree,  run->commits[commit].full,
			NULL };
	return program_output(add, NULL, false, &nothing, err);
}

/* ----------------------------------------------- builds, as a batch of their own */

struct builds {
	struct bisect_run *run;
	size_t commits[BISECT_RUN_BUILDS_MAX];
	bool well[BISECT_RUN_BUILDS_MAX];
	size_t n;
};

int bisect_run_write_orders(const struct bisect_run *run, const size_t *commits, size_t n,
			    const char *command, const char *path, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *tree = bisect_run_path(run, commits[i], "");
		struct json_out json = JSON_OUT(&text);
		json_out_open(&json, NULL, '{');
		json_out_text(&json, "id", run->commits[commits[i]].hash);
		json_out_text(&json, "cmd", command);
		json_out_text(&json, "cwd", tree);
		json_out_close(&json, '}');
		buf_append_char(&text, '\n');
	}
	return export_file(path, &text, err);
}

static int on_result(void *arg, struct result *result, struct err *err UNUSED)
{
	struct builds *builds = arg;
	for (size_t i = 0; i < builds->n; i++)
		if (str_eq(builds->run->commits[builds->commits[i]].hash, result->id))
			builds->well[i] = result->reason == REASON_OK;
	return 0;
}

static int run_builds(struct builds *builds, struct err *err)
{
	struct bisect_run *run = builds->run;
	AUTO_FREE char *orders = mem_printf("%s/builds.jsonl", run->dir);
	AUTO_FREE char *output = mem_printf("%s/built.jsonl", run->dir);
	struct batch_config config = bisect_run_batch_config(output, run->dir);
	struct measure_options plain = { .count = COUNTER_NONE };
	char *words[] = { orders, NULL };
	config.jobs = (int64_t)builds->n;
	config.place = BATCH_PLACE_NONE;
	config.runs = 1;
	config.measure = plain;
	unlink(output);
	int r = bisect_run_write_orders(run, builds->commits, builds->n, run->options->build,
					orders, err);
	if (r < 0)
		return r;
	int code = batch_run(&config, 1, words);
	if (code != EXIT_CODE_OK && code != EXIT_CODE_FAILED)
		return bisect_run_stopped(run, code, err);
	return results_read(output, on_result, builds, NULL, NULL, err);
}

static int tell_built(struct builds *builds, struct err *err)
{
	struct bisect_run *run = builds->run;
	int r = 0;
	for (size_t i = 0; i < builds->n && r >= 0; i++) {
		const char *hash = run->commits[builds->commits[i]].hash;
		bisect_built(&run->bisect, builds->commits[i], builds->well[i]);
		if (!builds->well[i] && !run->options->quiet)
			log_warn("%s does not build: %s/%s.err says why; it is left out", hash,
				 run->dir, hash);
		r = mark(run, builds->commits[i], builds->well[i], err);
	}
	return r;
}

int bisect_run_build(struct bisect_run *run, const size_t *commits, size_t n, struct err *err)
{
	struct builds builds = { .run = run };
	for (size_t i = 0; i < n && builds.n < BISECT_RUN_BUILDS_MAX; i++) {
		int before = marked(run, commits[i]);
		int r = before < 0 ? make_worktree(run, commits[i], err) : 0;
		if (r < 0)
			return r;
		if (before >= 0)
			bisect_built(&run->bisect, commits[i], before != 0);
		else
			builds.commits[builds.n++] = commits[i];
	}
	if (builds.n == 0)
		return 0;
	/* Without a command a commit is built when it is there. */
	for (size_t i = 0; i < builds.n; i++)
		builds.well[i] = !run->options->build;
	int r = run->options->build ? run_builds(&builds, err) : 0;
	return r < 0 ? r : tell_built(&builds, err);
}
