/* What came of an order, and of the whole batch, wherever it ran: its line in the result file and
 * in the job log, the words for a failure, the page, its output; at the end the summary and the
 * exit code. There is no second place that does any of this. */
#ifndef BATCH_RECORDER_H
#define BATCH_RECORDER_H

#include "batch/config.h"
#include "batch/ending.h"
#include "batch/journal.h"
#include "batch/page/batch_page.h"
#include "batch/progress.h"
#include "batch/show/failures.h"
#include "batch/show/outputs.h"

struct printer;

/* How a batch stands. */
struct batch_sum {
	uint64_t ok, failed, skipped, total, running;
	bool open; /* more may come */
	enum batch_stop stop;
	int stop_signal;  /* with STOP_DRAIN, STOP_INTERRUPT */
	uint64_t late;	  /* results that came too late to count */
	size_t hosts;	  /* that take or took part; 0: there is only this one */
	uint64_t left_ns; /* to do; NS_NEVER: not known */
};

struct recorder {
	const struct batch_config *config;
	struct journal *journal;
	struct printer *printer;
	struct outputs *outputs;
	struct batch_page *page; /* --http; NULL: none */
	size_t already_done;
	bool bar, plain;
	/* --- */
	struct failures failures;
	int failed_code; /* of the last order that failed */
	uint64_t start_ns;
};

/* The caller has filled the fields above the line; all are borrowed but the page. */
void recorder_init(struct recorder *recorder);
void recorder_done(struct recorder *recorder);

/* An attempt is over. */
void recorder_tell(struct recorder *recorder, const struct ending *ending);
/* Its output is measured: writes its lines, then shows what it wrote. */
int recorder_write(struct recorder *recorder, struct ending *ending, struct err *err);

/* A line of ours. */
void recorder_say(const struct recorder *recorder, struct buf *text);
/* How far it is, and what runs: on the status line, or a line of its own. */
void recorder_show(const struct recorder *recorder, const struct batch_sum *sum,
		   struct progress *progress);
/* SIGUSR1. */
void recorder_tell_progress(const struct recorder *recorder, const struct batch_sum *sum,
			    struct progress *progress);

/* The batch is over: what came of it. */
void recorder_sum_up(const struct recorder *recorder, const struct batch_sum *sum);
int recorder_exit_code(const struct recorder *recorder, const struct batch_sum *sum);

#endif
