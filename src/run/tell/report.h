/* The reports of a failed job: for users, for programs that know torchrun, and in a file.
 *
 * All three are made from the history, after everything has ended; the workers' error files are
 * read only then, so a slow disk delays nothing. */
#ifndef RUN_TELL_REPORT_H
#define RUN_TELL_REPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "core/rounds/agent.h"
#include "run/config.h"
#include "run/tell/history.h"

struct json_out;

struct report {
	const struct run_config *config;
	const struct history *history;
	const char *log_dir;	       /* of this run; NULL: there is none */
	const struct outcome *outcome; /* NULL: the history is enough */
};

/* For users: the first cause with its traceback or last lines, the others by kind, the attempts,
 * what to try. A failed start, or a job stopped by a signal, is one line. */
void report_people(const struct report *report, bool colour, struct buf *out);

/* For users, of a job that ended well: which nodes were not fit; nothing if all were. */
void report_unfit(const struct report *report, struct buf *out);

/* One line for a group that is about to start again: which worker failed, and which restart of how
 * many this is; `max_restarts` 0: as many as bring progress. `attempt` is the one that ended. */
void report_restart(const struct history_attempt *attempt, uint32_t restart, uint32_t max_restarts,
		    struct buf *out);

/* The text of torchrun's ChildFailedError, byte for byte. */
void report_torchrun(const struct report *report, struct buf *out);

/* Everything, as JSON. `exit_code` is muster's own. */
void report_json(const struct report *report, int exit_code, struct buf *out);

/* Whether a worker of this host told steps (report_goodput.c, as are the next two). */
bool report_has_steps(const struct report *report);

/* The object "goodput": nothing without steps. */
void report_goodput_json(const struct report *report, struct json_out *out);

/* A line: where the time of the job went. */
void report_goodput_people(const struct report *report, struct buf *out);

/* Writes report.json into the log directory, if there is one. */
int report_save(const struct report *report, int exit_code, struct err *err);

/* Copies the first cause's error to the file of the process that started us, if
 * TORCHELASTIC_ERROR_FILE names one. */
int report_pass_up(const struct report *report, struct err *err);

#endif
