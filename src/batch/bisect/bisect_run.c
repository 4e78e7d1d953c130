#include "batch/bisect/bisect_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "batch/archive/run_program.h"

#define FIELD '\x1f'

void bisect_run_done(struct bisect_run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		free(run->commits[i].full);
		free(run->commits[i].subject);
	}
	free(run->commits);
	free(run->dir);
	bisect_done(&run->bisect);
	fd_close(&run->state_fd);
	*run = BISECT_RUN_INIT;
}

/* ------------------------------------------------------------------------ git */

static void add_commit(struct bisect_run *run, const char *line)
{
	const char *field = strchr(line, FIELD);
	if (!field)
		return;
	ARRAY_RESERVE(run->commits, run->count, run->cap);
	struct bisect_run_commit *commit = &run->commits[run->count++];
	commit->full = mem_strndup(line, (size_t)(field - line));
	commit->subject = mem_strdup(field + 1);
	snprintf(commit->hash, sizeof(commit->hash), "%s", commit->full);
}

static int add_log(struct bisect_run *run, const char *range, bool one, struct err *err)
{
	AUTO(buf_done) struct buf output = BUF_INIT;
	char *argv[] = { "git",
			 "log",
			 "--format=%H%x1f%s",
			 "--reverse",
			 "--first-parent",
			 one ? "--max-count=1" : "--max-count=-1",
			 (char *)range,
			 "--",
			 NULL };
	int r = program_output(argv, NULL, false, &output, err);
	if (r < 0)
		return err_wrap(err, "%s", range);
	const char *rest = buf_str(&output);
	size_t len;
	for (const char *line; (line = str_split(&rest, '\n', &len));) {
		AUTO_FREE char *copy = mem_strndup(line, len);
		add_commit(run, copy);
	}
	return 0;
}

/* The good commit, and the first parents of the bad one back to it. */
static int list_commits(struct bisect_run *run, struct err *err)
{
	const struct bisect_run_options *options = run->options;
	char *ancestor[] = {
		"git", "merge-base", "--is-ancestor", (char *)options->good, (char *)options->bad,
		NULL
	};
	AUTO(buf_done) struct buf nothing = BUF_INIT;
	int r = add_log(run, options->good, true, err);
	if (r < 0)
		return r;
	if (program_output(ancestor, NULL, true, &nothing, NULL) < 0)
		return err_set(err, EINVAL, "%s is not an ancestor of %s", options->good,
			       options->bad);
	AUTO_FREE char *range = mem_printf("%s..%s", options->good, options->bad);
	r = add_log(run, range, false, err);
	if (r >= 0 && run->count < 2)
		return err_set(err, EINVAL, "there is no commit between %s and %s", options->good,
			       options->bad);
	return r;
}

static int make_dir(struct bisect_run *run, struct err *err)
{
	if (run->options->dir) {
		run->dir = mem_strdup(run->options->dir);
	} else {
		AUTO(buf_done) struct buf output = BUF_INIT;
		char *argv[] = { "git", "rev-parse", "--git-common-dir", NULL };
		int r = program_output(argv, NULL, false, &output, err);
		if (r < 0)
			return r;
		run->dir = mem_printf("%.*s/muster-bisect", (int)strcspn(buf_str(&output), "\n"),
				      buf_str(&output));
	}
	if (mkdir(run->dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %m", run->dir);
	/* The benchmark runs in a worktree: its paths must not depend on where we are. */
	char *whole = realpath(run->dir, NULL);
	if (!whole)
		return err_set(err, errno, "%s: %m", run->dir);
	free(run->dir);
	run->dir = whole;
	return 0;
}

/* ---------------------------------------------------------------------- search */

static size_t builds_at_a_time(const struct bisect_run_options *options)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t jobs = options->jobs ? options->jobs : cpus;
	return (size_t)MAX((int64_t)1, MIN(jobs, (int64_t)BISECT_RUN_BUILDS_MAX));
}

static int build_next(struct bisect_run *run, size_t commit, struct err *err)
{
	size_t ahead[BISECT_RUN_BUILDS_MAX];
	size_t n = bisect_ahead(&run->bisect, ahead, builds_at_a_time(run->options));
	bool there = false;
	for (size_t i = 0; i < n; i++)
		there |= ahead[i] == commit;
	if (!there)
		ahead[n ? n - 1 : n++] = commit;
	return bisect_run_build(run, ahead, n, err);
}

static void tell(const struct bisect_run *run, size_t commit)
{
	enum bisect_state state = run->bisect.commits[commit].state;
	if (run->options->quiet || state == BISECT_BUILT || state == BISECT_UNKNOWN)
		return;
	AUTO(buf_done) struct buf line = BUF_INIT;
	bisect_run_line(run, commit, &line);
	fprintf(stderr, "muster bisect: %s\n", buf_str(&line));
}

static int search(struct bisect_run *run, struct err *err)
{
	struct bisect_step step;
	int r = 0;
	while (r >= 0) {
		bisect_next(&run->bisect, &step);
		if (step.type == BISECT_DONE)
			break;
		r = step.type == BISECT_BUILD ? build_next(run, step.commit, err)
					      : bisect_run_measure(run, step.commit, err);
		if (r >= 0)
			tell(run, step.commit);
	}
	run->result = step.result;
	return r;
}

int bisect_run_search(struct bisect_run *run, const struct bisect_run_options *options,
		      struct err *err)
{
	*run = BISECT_RUN_INIT;
	run->options = options;
	int r = list_commits(run, err);
	if (r >= 0)
		r = make_dir(run, err);
	if (r < 0)
		return r;
	struct bisect_rule rule = { .confidence = options->confidence,
				    .min_change = options->min_change,
				    .exact = metric_table[options->metric].counted,
				    .max_pairs = (size_t)options->max_pairs };
	bisect_init(&run->bisect, run->count, &rule);
	r = bisect_run_state_open(run, err);
	return r < 0 ? r : search(run, err);
}
