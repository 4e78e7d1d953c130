#include "run/joblog/joblog.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "proto/joblog/job_log.h"
#include "run/ask/own_question.h"
#include "sys/disk.h"

/* The job's one log, written where the coordinator is: while it leads, all hosts are asked for what
 * their workers print (ASK_JOB_LOG), and proto/joblog/job_log.h makes lines of it.
 *
 * Best effort: the file is written by a thread of its own, and what finds no room there is lost and
 * counted, as are lines that did not come. Nothing waits for it. */

struct log_writer;

#define AGAIN_NS NS_PER_S /* after a question that has ended */

struct log_writer {
	const char *path;
	uint64_t max_size;
	struct own_question *question;
	struct event *again;
	bool asking;
	struct job_log log;
	struct disk *disk; /* NULL: this host has not coordinated yet */
	struct disk_file *file;
};

static void on_trouble(void *arg UNUSED, const char *text)
{
	log_warn("--job-log: %s", text);
}

static void on_piece(void *arg, const struct msg_reply *reply)
{
	struct log_writer *writer = arg;
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (reply->failed) {
		log_warn("--job-log: nothing of %s: %.*s", reply->name, (int)reply->piece.len,
			 (const char *)reply->piece.data);
		return;
	}
	if (job_log_take(&writer->log, reply->slot, reply->name, reply->piece, reply->last, &text) <
	    0)
		buf_printf(&text, "muster: %s sends what is not a log; the rest of it is missing\n",
			   reply->name);
	if (buf_len(&text))
		disk_try_write(writer->disk, writer->file, buf_data(&text), buf_len(&text));
}

/* It lives no longer than an hour, and ends when no host is left. */
static void on_over(void *arg, struct host_answers *answers UNUSED)
{
	struct log_writer *writer = arg;
	const struct timeval pause = clock_timeval(AGAIN_NS);
	event_add(writer->again, &pause);
}

static void ask(struct log_writer *writer)
{
	const struct inquiry ask = { .kind = ASK_JOB_LOG, .timeout_ns = ASK_TIMEOUT_MAX_NS };
	event_del(writer->again);
	job_log_restart(&writer->log);
	own_question_follow(writer->question, &ask, on_piece, on_over, writer);
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct log_writer *writer = arg;
	if (writer->asking)
		ask(writer);
}

/* A round has formed under the coordinator of this process: asks its hosts. */
static void log_writer_formed(struct log_writer *writer)
{
	if (!writer->disk) {
		writer->disk = disk_new(writer->max_size, DISK_HANG_NS, on_trouble, NULL);
		writer->file = disk_append(writer->disk, writer->path);
	}
	writer->asking = true;
	ask(writer);
}

/* The coordinator is not in this process any more. */
static void log_writer_pause(struct log_writer *writer)
{
	if (!writer->asking)
		return;
	writer->asking = false;
	event_del(writer->again);
	own_question_cancel(writer->question);
}

/* Ends the file, and appends a line for each kind of loss. NULL is fine. */
static void log_writer_finish(struct log_writer *writer, struct buf *missing)
{
	AUTO(buf_done) struct buf sum = BUF_INIT;
	if (!writer || !writer->disk)
		return;
	log_writer_pause(writer);
	job_log_sum(&writer->log, &sum);
	disk_try_write(writer->disk, writer->file, buf_data(&sum), buf_len(&sum));
	disk_close(writer->disk, writer->file);
	disk_flush(writer->disk);
	disk_missing(writer->disk, missing);
	if (writer->log.missing)
		buf_printf(missing,
			   "%s: %" PRIu64 " lines are missing (hosts printed more than it takes)\n",
			   writer->path, writer->log.missing);
	disk_free(writer->disk);
	writer->disk = NULL;
}

/* Opens no file yet. `path` is borrowed. */
static struct log_writer *log_writer_new(struct event_base *base, const char *path,
					 uint64_t max_size, struct routes *routes,
					 const struct own_question_hooks *hooks)
{
	struct log_writer *writer = NEW(struct log_writer);
	*writer = (struct log_writer){ .path = path, .max_size = max_size, .log = JOB_LOG_INIT };
	writer->question = own_question_new(base, routes, hooks);
	writer->again = evtimer_new(base, on_again, writer);
	return writer;
}

/* NULL is fine */
static void log_writer_free(struct log_writer *writer)
{
	if (!writer)
		return;
	AUTO(buf_done) struct buf missing = BUF_INIT;
	log_writer_finish(writer, &missing);
	own_question_free(writer->question);
	event_free(writer->again);
	job_log_done(&writer->log);
	free(writer);
}

void joblog_open(struct joblog *log, struct event_base *base, const char *path, uint64_t max_size,
		 struct output *output, struct routes *routes,
		 const struct own_question_hooks *hooks)
{
	*log = (struct joblog){
		.path = path,
		.output = output,
		.sender = log_sender_new(base, output),
		.writer = log_writer_new(base, path, max_size, routes, hooks),
	};
}

void joblog_close(struct joblog *log)
{
	log_writer_free(log->writer);
	log_sender_free(log->sender);
}

void joblog_round(struct joblog *log)
{
	log_wait_round(&log->last_lines);
}

void joblog_asked(struct joblog *log)
{
	log_wait_asked(&log->last_lines);
}

void joblog_formed(struct joblog *log)
{
	if (log->writer)
		log_writer_formed(log->writer);
}

bool joblog_ended(struct joblog *log, uint64_t now_ns)
{
	if (!log->sender || !log_wait_begin(&log->last_lines, now_ns))
		return false;
	log_sender_hurry(log->sender, true);
	return true;
}

bool joblog_step(struct joblog *log, bool leads, bool taken, uint64_t now_ns)
{
	if (log->writer && !leads)
		log_writer_pause(log->writer);
	if (!log->last_lines.waits)
		return false;
	bool sent = taken && output_is_drained(log->output) && log_sender_is_empty(log->sender);
	if (!log_wait_over(&log->last_lines, sent, now_ns))
		return false;
	log_sender_hurry(log->sender, false);
	return true;
}

uint64_t joblog_deadline_ns(const struct joblog *log)
{
	return log_wait_deadline_ns(&log->last_lines);
}

void joblog_finish(struct joblog *log, struct buf *missing)
{
	if (!log->sender)
		return;
	log_writer_finish(log->writer, missing);
	uint64_t left = log_sender_left(log->sender);
	if (left)
		buf_printf(missing, "%s: %" PRIu64 " lines did not leave this host\n", log->path,
			   left);
}
