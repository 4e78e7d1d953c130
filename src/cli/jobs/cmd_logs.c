/* muster logs: what the workers of a running job print: on this host from their log files, else as
 * the agents tell it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/jobs/asker.h"
#include "core/lines/line_split.h"
#include "core/lines/merge.h"
#include "core/rounds/msg.h"
#include "core/worker/exit_code.h"
#include "proto/log_block.h"
#include "run/tell/text.h"

extern const struct command command_logs;

/* A file or a pipe gets what the worker wrote; a terminal, what it may be shown. */
static void put_text(const void *text, size_t len)
{
	static int terminal = -1;
	if (terminal < 0)
		terminal = isatty(STDOUT_FILENO);
	AUTO(buf_done) struct buf clean = BUF_INIT;
	if (!terminal) {
		fwrite(text, 1, len, stdout);
		return;
	}
	text_clean(&clean, text, len);
	fwrite(buf_data(&clean), 1, buf_len(&clean), stdout);
	if (len && ((const char *)text)[len - 1] == '\r')
		putchar('\r'); /* the next line is drawn over this one */
}

/* ---- showing what hosts send ---- */

/* Shows the logs that hosts send as answers: line by line, each after the ranks that print it. */
struct log_show_options {
	const char *grep; /* only lines with this text; NULL: all */
	bool raw;	  /* the bytes as they are, without ranks: of one worker */
	bool each;	  /* equal lines of several workers are not shown as one */
	bool live;	  /* show lines soon after they come */
};

/* One stream of one worker. */
struct writer {
	uint32_t rank;
	struct line_split split;
};

struct log_show {
	struct log_show_options options;
	struct map hosts;   /* slot -> struct log_blocks, while the host answers */
	struct map writers; /* rank and stream -> struct writer */
	struct merge merge;
	bool failed; /* a host could not answer */
};

/* Lines that wait for equal ones; those of finished answers have waited long enough. */
static void show_merged(struct log_show *show, uint64_t now_ns)
{
	for (struct merge_line *line; (line = merge_next(&show->merge, UINT32_MAX, now_ns));) {
		AUTO(buf_done) struct buf ranks = BUF_INIT;
		merge_line_writers(line, 0, &ranks);
		printf("[%s] ", buf_str(&ranks));
		put_text(line->text, line->len);
		if (line->end != LINE_NEWLINE)
			putchar('\n');
		merge_line_free(line);
	}
}

/* `ends`: the stream ends with this line, which has no end of its own. */
static void show_line(struct log_show *show, uint32_t rank, const struct line *line, bool ends)
{
	const struct log_show_options *o = &show->options;
	if (o->grep && !memmem(line->text, line->len, o->grep, strlen(o->grep)))
		return;
	if (!o->each && !o->raw) {
		merge_add(&show->merge, rank, line, o->live ? clock_now_ns() : 0);
		return;
	}
	if (!o->raw && !line->continues)
		printf("[%" PRIu32 "] ", rank);
	put_text(line->text, line->len);
	if (ends && !o->raw)
		putchar('\n');
}

static struct writer *writer_of(struct log_show *show, const struct log_blocks *blocks)
{
	const uint32_t key[] = { blocks->rank, blocks->stream };
	struct writer *writer = map_get(&show->writers, key, sizeof(key));
	if (writer)
		return writer;
	writer = NEW(struct writer);
	*writer = (struct writer){ .rank = blocks->rank, .split = LINE_SPLIT_INIT };
	map_put(&show->writers, key, sizeof(key), writer);
	return writer;
}

static void take_bytes(struct log_show *show, const struct log_blocks *blocks, struct bytes bytes)
{
	if (show->options.raw && !show->options.grep && !isatty(STDOUT_FILENO)) {
		fwrite(bytes.data, 1, bytes.len, stdout);
		return;
	}
	struct writer *writer = writer_of(show, blocks);
	struct line line;
	line_split_push(&writer->split, bytes.data, bytes.len);
	while (line_split_next(&writer->split, &line))
		show_line(show, writer->rank, &line, false);
}

/* For an asker_handler (cli/jobs/asker.h), whose `arg` is the log_show. */
static void log_show_reply(void *arg, const struct msg_reply *reply)
{
	struct log_show *show = arg;
	if (!reply)
		return; /* asked again: what was shown stays */
	if (reply->failed) {
		command_complain(&command_logs, "%s: %.*s", reply->name, (int)reply->piece.len,
				 (const char *)reply->piece.data);
		show->failed = true;
		return;
	}
	struct log_blocks *blocks = map_get(&show->hosts, &reply->slot, sizeof(reply->slot));
	if (!blocks) {
		blocks = NEW(struct log_blocks);
		map_put(&show->hosts, &reply->slot, sizeof(reply->slot), blocks);
	}
	struct bytes input = reply->piece, bytes;
	while (log_blocks_next(blocks, &input, &bytes, NULL) > 0)
		take_bytes(show, blocks, bytes);
	if (reply->last)
		free(map_remove(&show->hosts, &reply->slot, sizeof(reply->slot)));
	show_merged(show, show->options.live ? clock_now_ns() : 0);
	fflush(stdout);
}

static void log_show_tick(void *arg)
{
	struct log_show *show = arg;
	show_merged(show, clock_now_ns());
	fflush(stdout);
}

static struct log_show *log_show_new(const struct log_show_options *options)
{
	struct log_show *show = NEW(struct log_show);
	*show = (struct log_show){ .options = *options, .hosts = MAP_INIT, .writers = MAP_INIT };
	merge_init(&show->merge);
	return show;
}

static void finish_writer(struct log_show *show, struct writer *writer)
{
	struct line line;
	if (line_split_finish(&writer->split, &line))
		show_line(show, writer->rank, &line, true);
	line_split_done(&writer->split);
	free(writer);
}

/* Shows what is left, and frees it all. False: a host could not answer, which was said. */
static bool log_show_finish(struct log_show *show)
{
	map_foreach(entry, &show->writers) finish_writer(show, entry->value);
	show_merged(show, NS_NEVER);
	fflush(stdout);
	map_foreach(entry, &show->hosts) free(entry->value);
	map_done(&show->hosts);
	map_done(&show->writers);
	merge_done(&show->merge);
	bool answered = !show->failed;
	free(show);
	return answered;
}

/* ---- asking for it ---- */

extern const struct command command_logs;

#define LOGS_DEFAULT_NS (60 * NS_PER_S)
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
	put_text(line->text, line->len);
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

/* False: the job has no log files here. */
static bool show_files(struct json_value job, int64_t only_rank, bool go_on)
{
	AUTO(log_view_clear) struct log_view view = { .only_rank = only_rank };
	turn_to(&view, job);
	show_new(&view);
	if (view.found && go_on)
		follow(&view, job_number(job, "pid"));
	return view.found;
}

struct logs_options {
	bool follow, each;
	const char *grep;
	struct asker_options narrow;
	uint64_t timeout_ns;
};

static const struct opt logs_opts[] = {
	{ OPT_FIELD(OPT_TYPE_FLAG, "follow", NULL, struct logs_options, follow, NULL,
		    "go on showing what is added, restarts included, until the job ends"),
	  .short_name = 'f' },
	ASKER_OPTS(struct logs_options, narrow),
	OPT_STR("grep", NULL, struct logs_options, grep, "TEXT", "only lines that contain this"),
	OPT_FLAG("each", NULL, struct logs_options, each,
		 "show each worker's lines, also those that several workers print alike"),
	OPT_DURATION("timeout", NULL, struct logs_options, timeout_ns, "TIME",
		     "how long to wait for the answers of other hosts (default 60s)"),
	OPT_END,
};

static bool has_rank(struct json_value job, uint64_t rank)
{
	struct json_value worker;
	struct json_in in;
	for (json_value_enter(json_value_get(job, "workers"), &in); json_value_next(&in, &worker);)
		if ((uint64_t)job_number(worker, "rank") == rank)
			return true;
	return false;
}

static int show_asked(const struct command *self, const struct job_state *job,
		      const struct logs_options *o, struct msg_ask *ask)
{
	const struct log_show_options show = {
		.grep = o->grep,
		.raw = ask->ask.rank_count == 1,
		.each = o->each,
		.live = o->follow,
	};
	struct log_show *shown = log_show_new(&show);
	const struct asker_handler handler = { .on_reply = log_show_reply,
					       .on_tick = o->follow ? log_show_tick : NULL,
					       .arg = shown };
	int status = asker_ask(self, job, ask, &handler);
	bool answered = log_show_finish(shown);
	return status == EXIT_CODE_OK && !answered ? EXIT_CODE_FAILED : status;
}

static int logs_main(const struct command *self, int argc, char **argv)
{
	struct logs_options o = { .timeout_ns = LOGS_DEFAULT_NS };
	AUTO(job_list_done) struct job_list list;
	int status;
	if (!jobs_parse_one(self, &o, &o.narrow.place, argc, argv, &list, &status))
		return status;
	struct msg_ask ask = { .ask = { .kind = o.follow ? ASK_FOLLOW : ASK_LOGS,
					.timeout_ns =
						o.follow ? ASK_TIMEOUT_MAX_NS : o.timeout_ns } };
	if (!asker_narrow(self, &o.narrow, &ask, &status))
		return status;
	const struct job_state *job = &list.jobs[0];
	bool here = (o.narrow.here && job->dir) || !(job_is_wide(job) || o.narrow.host);
	bool one = ask.ask.rank_count == 1;
	if (here && one && !has_rank(job->json, ask.ask.ranks[0])) {
		command_complain(self, "no worker on this host has rank %s", o.narrow.ranks);
		return EXIT_CODE_FAILED;
	}
	/* Without the agent: it is gone when the last lines are read. */
	if (here && ask.ask.rank_count <= 1 && !o.grep &&
	    show_files(job->json, one ? (int64_t)ask.ask.ranks[0] : -1, o.follow))
		return EXIT_CODE_OK;
	AUTO_FREE char *host = json_value_text(json_value_get(job->json, "host"));
	if (o.narrow.here && host)
		snprintf(ask.host, sizeof(ask.host), "%s", host);
	return show_asked(self, job, &o, &ask);
}

const struct command command_logs = {
	.name = "logs",
	.synopsis = "[-f] [--host NAME] [--rank N,...] [--grep TEXT] JOB",
	.summary = "show what the workers of a running job print, on all its hosts",
	.opts = logs_opts,
	.mode = OPT_PERMUTE,
	.main = logs_main,
};
