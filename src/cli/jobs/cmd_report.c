/* muster report: the page of a job that is over, from its log directory, as one file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/command.h"
#include "proto/dash/past.h"
#include "web/web.h"

#define EVENTS_MAX ((size_t)64 << 20) /* bytes of one host's events, */
#define REPORT_MAX ((size_t)16 << 20) /* of its report, */
#define LOG_TAIL ((off_t)64 << 10)    /* and of the end of a log file */

extern const struct command command_report;

struct report_cli {
	const char *output;
};

static const struct opt report_opts[] = {
	{ OPT_FIELD(OPT_TYPE_STR, "output", NULL, struct report_cli, output, "FILE",
		    "write the page there; - is the standard output (default RUN_ID.html)"),
	  .short_name = 'o' },
	OPT_END,
};

/* ---- what is there ---- */

static bool has(const char *dir, const char *name)
{
	AUTO_FREE char *path = mem_printf("%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static bool is_run(const char *dir)
{
	return has(dir, "events.jsonl") || has(dir, "report.json") || has(dir, "attempt_0");
}

/* The directories of one host's run each: this one, or those in it. */
static int list_runs(const char *dir, struct strv *ret_runs, struct err *err)
{
	if (is_run(dir)) {
		strv_add(ret_runs, dir);
		return 0;
	}
	struct dirent **names = NULL;
	int count = scandir(dir, &names, NULL, alphasort);
	if (count < 0)
		return err_set(err, errno, "%s: %m", dir);
	for (int i = 0; i < count; i++) {
		AUTO_FREE char *path = mem_printf("%s/%s", dir, names[i]->d_name);
		if (*names[i]->d_name != '.' && is_run(path))
			strv_add(ret_runs, path);
		free(names[i]);
	}
	free(names);
	if (ret_runs->count == 0)
		return err_set(err, ENOENT, "%s: nothing here is the log directory of a job", dir);
	return 0;
}

/* ---- one host ---- */

static int read_events(struct past *past, const char *dir, struct err *err)
{
	AUTO_FREE char *path = mem_printf("%s/events.jsonl", dir);
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (!has(dir, "events.jsonl"))
		return 0;
	int r = file_read(path, EVENTS_MAX, &text, err);
	if (r < 0)
		return r;
	const char *at = (const char *)buf_data(&text), *end = at + buf_len(&text);
	for (const char *newline; at < end && (newline = memchr(at, '\n', (size_t)(end - at)));
	     at = newline + 1)
		past_take_event(past, bytes_of(at, (size_t)(newline - at)));
	return 0;
}

static int read_report(struct past *past, const char *dir, struct err *err)
{
	AUTO_FREE char *path = mem_printf("%s/report.json", dir);
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (!has(dir, "report.json"))
		return 0;
	int r = file_read(path, REPORT_MAX, &text, err);
	if (r == 0 && past_take_report(past, bytes_of(buf_data(&text), buf_len(&text))) < 0)
		log_warn("%s is not a report; going on without it", path);
	return r;
}

/* A directory may have the runs of several jobs. */
static int check_job(const struct past *past, const char *dir, char **run_id, struct err *err)
{
	const char *own = past_run_id(past);
	if (!own)
		return 0;
	if (!*run_id)
		*run_id = mem_strdup(own);
	if (str_eq(*run_id, own))
		return 0;
	return err_set(err, EINVAL,
		       "%s belongs to job %.64s, others here to %.64s: name one of the directories",
		       dir, own, *run_id);
}

/* ---- log files ---- */

static void read_tail(const char *path, struct buf *ret_text)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat info;
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
		return;
	off_t from = info.st_size > LOG_TAIL ? info.st_size - LOG_TAIL : 0;
	unsigned char *room = buf_reserve(ret_text, (size_t)LOG_TAIL);
	ssize_t n = pread(fd, room, (size_t)LOG_TAIL, from);
	if (n <= 0)
		return;
	buf_commit(ret_text, (size_t)n);
	/* a line that was cut is not one */
	const unsigned char *newline = from ? memchr(buf_data(ret_text), '\n', (size_t)n) : NULL;
	if (newline)
		buf_consume(ret_text, (size_t)(newline + 1 - buf_data(ret_text)));
}

static void read_stream(struct past *past, size_t host, size_t attempt, int64_t local_rank,
			const char *dir, enum log_stream stream)
{
	AUTO_FREE char *path =
		mem_printf("%s/%s.log", dir, stream == LOG_STDERR ? "stderr" : "stdout");
	AUTO(buf_done) struct buf text = BUF_INIT;
	read_tail(path, &text);
	past_take_log(past, host, attempt, local_rank, stream,
		      bytes_of(buf_data(&text), buf_len(&text)));
}

/* False: the host has no such attempt. */
static bool read_attempt(struct past *past, size_t host, size_t attempt, const char *run)
{
	AUTO_FREE char *dir = mem_printf("%s/attempt_%zu", run, attempt);
	bool there = access(dir, F_OK) == 0;
	for (int64_t rank = 0; there; rank++) {
		AUTO_FREE char *of_rank = mem_printf("%s/%lld", dir, (long long)rank);
		if (access(of_rank, F_OK) < 0)
			break;
		read_stream(past, host, attempt, rank, of_rank, LOG_STDOUT);
		read_stream(past, host, attempt, rank, of_rank, LOG_STDERR);
	}
	return there;
}

static void read_logs(struct past *past, const struct strv *runs)
{
	bool any = true;
	for (size_t attempt = 0; any && attempt < PAST_ROUNDS_MAX; attempt++) {
		any = false;
		for (size_t i = 0; i < runs->count; i++)
			any |= read_attempt(past, i, attempt, runs->items[i]);
		past_end_attempt(past, attempt);
	}
}

/* ---- all ---- */

static int read_all(struct past *past, const char *dir, char **ret_run_id, struct err *err)
{
	AUTO(strv_done) struct strv runs = STRV_INIT;
	int r = list_runs(dir, &runs, err);
	for (size_t i = 0; r == 0 && i < runs.count; i++) {
		if (past_add_host(past) < 0)
			return err_set(err, E2BIG, "%s: more than %d hosts", dir, PAST_HOSTS_MAX);
		if ((r = read_events(past, runs.items[i], err)) == 0 &&
		    (r = read_report(past, runs.items[i], err)) == 0)
			r = check_job(past, runs.items[i], ret_run_id, err);
	}
	if (r == 0)
		read_logs(past, &runs);
	return r;
}

static int write_page(const char *path, const struct buf *page, struct err *err)
{
	bool out = str_eq(path, "-");
	AUTO(fd_close)
	int fd = out ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
		     : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r = fd < 0 ? -errno : fd_write_all(fd, buf_data(page), buf_len(page));
	return r < 0 ? err_set(err, -r, "%s: %m", out ? "the standard output" : path) : 0;
}

/* A run id may be anything; the name of a file may not. */
static char *default_name(const char *run_id)
{
	char *name = mem_printf("%.200s.html", run_id ? run_id : "job");
	str_make_printable(name);
	for (char *c = name; *c; c++)
		if (*c == '/' || *c == '?' || (c == name && *c == '.'))
			*c = '_';
	return name;
}

static int report_main(const struct command *self, int argc, char **argv)
{
	struct report_cli cli = { .output = NULL };
	struct err err = ERR_INIT;
	int first, status;
	if (!command_parse(self, &cli, argc, argv, NULL, &first, &status))
		return status;
	if (argc - first != 1)
		return command_usage_error(self, "name one log directory");
	AUTO(buf_done) struct buf json = BUF_INIT, page = BUF_INIT;
	AUTO_FREE char *run_id = NULL;
	struct past *past = past_new(argv[first]);
	int r = read_all(past, argv[first], &run_id, &err);
	if (r == 0)
		past_put(past, &json);
	past_free(past);
	AUTO_FREE char *name = default_name(run_id);
	const char *output = cli.output ? cli.output : name;
	if (r == 0) {
		web_put_single(bytes_of(buf_data(&json), buf_len(&json)), &page);
		r = write_page(output, &page, &err);
	}
	if (r < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	if (!cli.output)
		command_print("%s\n", name);
	return 0;
}

const struct command command_report = {
	.name = "report",
	.synopsis = "[OPTIONS] DIRECTORY",
	.summary = "make the page of a job that is over, from its log directory, as one file",
	.opts = report_opts,
	.mode = OPT_PERMUTE,
	.main = report_main,
};
