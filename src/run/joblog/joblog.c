#include "run/joblog/joblog.h"

#include <inttypes.h>

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
	parting_round(&log->parting);
}

void joblog_asked(struct joblog *log)
{
	parting_asked(&log->parting);
}

void joblog_formed(struct joblog *log)
{
	if (log->writer)
		log_writer_formed(log->writer);
}

bool joblog_ended(struct joblog *log, uint64_t now_ns)
{
	if (!log->sender || !parting_begin(&log->parting, now_ns))
		return false;
	log_sender_hurry(log->sender, true);
	return true;
}

bool joblog_step(struct joblog *log, bool leads, bool taken, uint64_t now_ns)
{
	if (log->writer && !leads)
		log_writer_pause(log->writer);
	if (!log->parting.waits)
		return false;
	bool sent = taken && output_is_drained(log->output) && log_sender_is_empty(log->sender);
	if (!parting_over(&log->parting, sent, now_ns))
		return false;
	log_sender_hurry(log->sender, false);
	return true;
}

uint64_t joblog_deadline_ns(const struct joblog *log)
{
	return parting_deadline_ns(&log->parting);
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
