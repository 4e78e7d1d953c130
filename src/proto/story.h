/* What happened in a job, told once: the console's report, report.json, the event job.ended, the
 * status and the page of the job are all made from it. run/tell/make_story.h fills it from the
 * history. */
#ifndef PROTO_STORY_H
#define PROTO_STORY_H

#include "base/buf.h"
#include "core/worker/judgement.h"
#include "core/worker/step_progress.h"

struct json_out;

#define STORY_WORDS_MAX ((size_t)4096) /* of the words in JSON: the end of them */

/* Where the words of the first cause come from. */
enum story_words {
	STORY_WORDS_NONE,
	STORY_WORDS_TRACEBACK, /* from its error file */
	STORY_WORDS_STDERR,
	STORY_WORDS_ELSEWHERE, /* what its host sent of them */
};

/* Workers that ended alike, besides the first cause. */
struct story_others {
	char *how;    /* "ended with SIGTERM when the group was stopped" */
	bool stopped; /* by muster: a consequence, not a failure */
	uint32_t *ranks;
	size_t count;
};

/* All texts are clean and owned. */
struct story {
	char *headline; /* one line: "job failed: rank 2 of 4 ended with exit code 1 after 3.2 s" */
	bool failed;	/* there is a first cause, and what follows is filled in */
	uint32_t rank, local_rank, world_size;
	char *host;
	pid_t pid;
	enum failure_reason reason;
	struct exit_status status;
	uint64_t when_ns;  /* it ended, by the wall clock; 0: not known */
	uint64_t lived_ns; /* 0: it was not started, or nobody knows */
	enum story_words source;
	char *words; /* its last ones; "": none */
	char *where; /* the words come from, or why there are none */
	struct story_others *others;
	size_t other_count;
	struct step_progress_span steps; /* of the host that tells the story */
	struct judgement judgement;
	char *hint; /* what to try; NULL: nothing */
};

#define STORY_INIT ((struct story){ .headline = NULL })
void story_done(struct story *story);

/* The object "story". */
void story_put(const struct story *story, struct json_out *out);

/* The object "verdict": nothing without a failure. */
void story_put_verdict(const struct story *story, struct json_out *out);

#endif
