/* What kind of failure it was, for programs and people: class, how sure and from what, what to do.
 *
 * The strongest evidence counts: what the kernel counted or logged, what the launcher itself saw,
 * then a known text among the last words (symptoms.h), then the signal or exit code. Without any of
 * them the class is unknown; nothing is guessed from nothing. Pure. */
#ifndef CORE_WORKER_JUDGEMENT_H
#define CORE_WORKER_JUDGEMENT_H

#include "core/worker/failure_class.h"
#include "core/worker/group.h"

/* Texts may be NULL. */
struct evidence {
	enum failure_reason reason;
	struct exit_status status;
	pid_t pid;
	bool oom_kill;	    /* the kernel counted one in its cgroup at that time */
	const char *kernel; /* what the kernel logged meanwhile */
	const char *words;  /* its last ones */
};

struct judgement {
	enum failure_class class;
	enum failure_certainty certainty;
	enum failure_advice advice;
	const char *from; /* the evidence: "cgroup", "kernel log", "launcher", "error text", … */
	const char *symptom; /* the text or signal that was recognized; NULL: none */
	const char *hint;    /* what to try; may have one %s, the Python interpreter; NULL: none */
};

void judge_failure(const struct evidence *evidence, struct judgement *ret_judgement);

/* The same of a text whose program is not known: a log file. */
void judge_text(const char *text, struct judgement *ret_judgement);

#endif
