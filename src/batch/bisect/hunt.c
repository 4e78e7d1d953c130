#include "batch/bisect/hunt.h"

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

void hunt_done(struct hunt *hunt)
{
	for (size_t i = 0; i < hunt->count; i++) {
		free(hunt->commits[i].full);
		free(hunt->commits[i].subject);
	}
	free(hunt->commits);
	free(hunt->dir);
	bisect_done(&hunt->bisect);
	fd_close(&hunt->state_fd);
	*hunt = HUNT_INIT;
}

/* ------------------------------------------------------------------------ git */

static void add_commit(struct hunt *hunt, const char *line)
{
	const char *field = strchr(line, FIELD);
	if (!field)
		return;
	ARRAY_RESERVE(hunt->commits, hunt->count, hunt->cap);
	struct hunt_commit *commit = &hunt->commits[hunt->count++];
	commit->full = mem_strndup(line, (size_t)(field - line));
	commit->subject = mem_strdup(field + 1);
	snprintf(commit->hash, sizeof(commit->hash), "%s", commit->full);
}

static int add_log(struct hunt *hunt, const char *range, bool one, struct err *err)
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
		add_commit(hunt, copy);
	}
	return 0;
}

/* The good commit, and the first parents of the bad one back to it. */
static int list_commits(struct hunt *hunt, struct err *err)
{
	const struct hunt_options *options = hunt->options;
	char *ancestor[] = {
		"git", "merge-base", "--is-ancestor", (char *)options->good, (char *)options->bad,
		NULL
	};
	AUTO(buf_done) struct buf nothing = BUF_INIT;
	int r = add_log(hunt, options->good, true, err);
	if (r < 0)
		return r;
	if (program_output(ancestor, NULL, true, &nothing, NULL) < 0)
		return err_set(err, EINVAL, "%s is not an ancestor of %s", options->good,
			       options->bad);
	AUTO_FREE char *range = mem_printf("%s..%s", options->good, options->bad);
	r = add_log(hunt, range, false, err);
	if (r >= 0 && hunt->count < 2)
		return err_set(err, EINVAL, "there is no commit between %s and %s", options->good,
			       options->bad);
	return r;
}

static int make_dir(struct hunt *hunt, struct err *err)
{
	if (hunt->options->dir) {
		hunt->dir = mem_strdup(hunt->options->dir);
	} else {
		AUTO(buf_done) struct buf output = BUF_INIT;
		char *argv[] = { "git", "rev-parse", "--git-common-dir", NULL };
		int r = program_output(argv, NULL, false, &output, err);
		if (r < 0)
			return r;
		hunt->dir = mem_printf("%.*s/muster-bisect", (int)strcspn(buf_str(&output), "\n"),
				       buf_str(&output));
	}
	if (mkdir(hunt->dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %m", hunt->dir);
	/* The benchmark runs in a worktree: its paths must not depend on where we are. */
	char *whole = realpath(hunt->dir, NULL);
	if (!whole)
		return err_set(err, errno, "%s: %m", hunt->dir);
	free(hunt->dir);
	hunt->dir = whole;
	return 0;
}

/* ---------------------------------------------------------------------- search */

static size_t builds_at_a_time(const struct hunt_options *options)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t jobs = options->jobs ? options->jobs : cpus;
	return (size_t)MAX((int64_t)1, MIN(jobs, (int64_t)HUNT_BUILDS_MAX));
}

static int build_next(struct hunt *hunt, size_t commit, struct err *err)
{
	size_t ahead[HUNT_BUILDS_MAX];
	size_t n = bisect_ahead(&hunt->bisect, ahead, builds_at_a_time(hunt->options));
	bool there = false;
	for (size_t i = 0; i < n; i++)
		there |= ahead[i] == commit;
	if (!there)
		ahead[n ? n - 1 : n++] = commit;
	return hunt_build(hunt, ahead, n, err);
}

static void tell(const struct hunt *hunt, size_t commit)
{
	enum bisect_state state = hunt->bisect.commits[commit].state;
	if (hunt->options->quiet || state == BISECT_BUILT || state == BISECT_UNKNOWN)
		return;
	AUTO(buf_done) struct buf line = BUF_INIT;
	hunt_line(hunt, commit, &line);
	fprintf(stderr, "muster bisect: %s\n", buf_str(&line));
}

static int search(struct hunt *hunt, struct err *err)
{
	struct bisect_step step;
	int r = 0;
	while (r >= 0) {
		bisect_next(&hunt->bisect, &step);
		if (step.type == BISECT_DONE)
			break;
		r = step.type == BISECT_BUILD ? build_next(hunt, step.commit, err)
					      : hunt_measure(hunt, step.commit, err);
		if (r >= 0)
			tell(hunt, step.commit);
	}
	hunt->result = step.result;
	return r;
}

int hunt_run(struct hunt *hunt, const struct hunt_options *options, struct err *err)
{
	*hunt = HUNT_INIT;
	hunt->options = options;
	int r = list_commits(hunt, err);
	if (r >= 0)
		r = make_dir(hunt, err);
	if (r < 0)
		return r;
	struct bisect_rule rule = { .confidence = options->confidence,
				    .min_change = options->min_change,
				    .exact = metric_table[options->metric].counted,
				    .max_pairs = (size_t)options->max_pairs };
	bisect_init(&hunt->bisect, hunt->count, &rule);
	r = hunt_state_open(hunt, err);
	return r < 0 ? r : search(hunt, err);
}
