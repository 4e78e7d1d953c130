/* muster logs: what the workers of a running job wrote to their log files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/jobs.h"
#include "core/worker/exit_code.h"
#include "core/lines/line_split.h"

extern const struct command command_logs;

#define FOLLOW_PERIOD_US 100000
#define FOLLOW_LOOKS 10 /* looks at the files per look at the job */

static const char *const file_names[] = { "stdout.log", "stderr.log" };

struct log_file {
	char *path;
	int64_t rank;
	int fd; /* -1: it does not exist (yet) */
	uint64_t shown;
	struct line_split split;
};

struct log_view {
	int64_t only_rank; /* -1: all */
	char *dir;	   /* of the attempt shown */
	struct log_file *files;
	size_t count, cap;
	bool found;
};

static void print_line(const struct log_view *view, const struct log_file *file,
		       const struct line *line)
{
	if (view->only_rank < 0 && !line->continues)
		printf("[%lld] ", (long long)file->rank);
	fwrite(line->text, 1, line->len, stdout);
}

static void finish_file(const struct log_view *view, struct log_file *file)
{
	struct line line;
	if (line_split_finish(&file->split, &line)) {
		print_line(view, file, &line);
		putchar('\n');
	}
	fd_close(&file->fd);
	file->shown = 0;
}

/* True if the name belongs to another file now, or the file was truncated: --log-max-size. */
static bool is_replaced(const struct log_file *file)
{
	struct stat open_one, named;
	if (fstat(file->fd, &open_one) < 0 || stat(file->path, &named) < 0)
		return false;
	return open_one.st_ino != named.st_ino || (uint64_t)open_one.st_size < file->shown;
}

static void read_file(struct log_view *view, struct log_file *file)
{
	char chunk[65536];
	if (file->fd < 0)
		file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0)
		return;
	view->found = true;
	for (ssize_t n; (n = read(file->fd, chunk, sizeof(chunk))) > 0;) {
		struct line line;
		file->shown += (uint64_t)n;
		line_split_push(&file->split, chunk, (size_t)n);
		while (line_split_next(&file->split, &line))
			print_line(view, file, &line);
	}
}

static void show_new(struct log_view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct log_file *file = &view->files[i];
		read_file(view, file);
		if (file->fd >= 0 && is_replaced(file)) {
			finish_file(view, file);
			read_file(view, file);
		}
	}
	fflush(stdout);
}

static void log_view_clear(struct log_view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct log_file *file = &view->files[i];
		if (file->fd >= 0)
			finish_file(view, file);
		line_split_done(&file->split);
		free(file->path);
	}
	fflush(stdout);
	free(view->files);
	free(view->dir);
	*view = (struct log_view){ .only_rank = view->only_rank, .found = view->found };
}

static void add_worker(struct log_view *view, struct json_value worker)
{
	int64_t rank = job_number(worker, "rank");
	long long local_rank = job_number(worker, "local_rank");
	if (view->only_rank >= 0 && view->only_rank != rank)
		return;
	for (size_t i = 0; i < ARRAY_LEN(file_names); i++) {
		ARRAY_RESERVE(view->files, view->count, view->cap);
		view->files[view->count++] = (struct log_file){
			.path = mem_printf("%s/%lld/%s", view->dir, local_rank, file_names[i]),
			.rank = rank,
			.fd = -1,
			.split = LINE_SPLIT_INIT,
		};
	}
}

/* Switches to the files of the job's current attempt, after the rest of the previous one. */
static void turn_to(struct log_view *view, struct json_value job)
{
	AUTO_FREE char *dir = json_value_text(json_value_get(job, "attempt_dir"));
	struct json_value workers = json_value_get(job, "workers"), worker;
	struct json_in in;
	if (!dir || (view->dir && str_eq(dir, view->dir)) || json_value_count(workers) == 0)
		return;
	show_new(view);
	log_view_clear(view);
	view->dir = mem_strdup(dir);
	for (json_value_enter(workers, &in); json_value_next(&in, &worker);)
		add_worker(view, worker);
}

/* Until the job ends or the reader of our output is gone. */
static void follow(struct log_view *view, long long pid)
{
	char name[24];
	snprintf(name, sizeof(name), "%lld", pid);
	for (;;) {
		for (int i = 0; i < FOLLOW_LOOKS && !ferror(stdout); i++) {
			show_new(view);
			usleep(FOLLOW_PERIOD_US);
		}
		AUTO(job_list_done) struct job_list list;
		jobs_find(&list, name);
		if (list.count == 0 || ferror(stdout))
			break;
		turn_to(view, list.jobs[0].json);
	}
	show_new(view);
}

struct logs_options {
	bool follow;
	int64_t rank;
};

static const struct opt logs_opts[] = {
	{ OPT_FIELD(OPT_TYPE_FLAG, "follow", NULL, struct logs_options, follow, NULL,
		    "go on showing what is added, restarts included, until the job ends"),
	  .short_name = 'f' },
	OPT_INT("rank", NULL, struct logs_options, rank, "N", "only of the worker with this rank"),
	OPT_END,
};

static int logs_main(const struct command *self, int argc, char **argv)
{
	struct logs_options o = { .rank = -1 };
	AUTO(job_list_done) struct job_list list;
	int status;
	if (!jobs_parse_one(self, &o, argc, argv, &list, &status))
		return status;
	struct json_value job = list.jobs[0].json;
	AUTO(log_view_clear) struct log_view view = { .only_rank = o.rank };
	turn_to(&view, job);
	if (o.rank >= 0 && view.count == 0) {
		fprintf(stderr, "%s: no worker on this host has rank %lld\n", command_title(self),
			(long long)o.rank);
		return EXIT_CODE_FAILED;
	}
	show_new(&view);
	if (o.follow)
		follow(&view, job_number(job, "pid"));
	if (view.found)
		return EXIT_CODE_OK;
	fprintf(stderr, "%s: this job keeps no log files; --redirects and --tee of muster run do\n",
		command_title(self));
	return EXIT_CODE_FAILED;
}

const struct command command_logs = {
	.name = "logs",
	.synopsis = "[-f] [--rank N] JOB",
	.summary = "show what the workers of a running job wrote",
	.opts = logs_opts,
	.mode = OPT_PERMUTE,
	.main = logs_main,
};
