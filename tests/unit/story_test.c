/* Forty ends of a job, each told by the console, report.json, the page from the log directory, the
 * event job.ended and the status: all say the same, and what is expected. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/dash/past.h"
#include "proto/event.h"
#include "proto/json_value.h"
#include "run/tell/make_story.h"

struct ending {
	enum failure_reason reason;
	enum exit_kind kind;
	int value;
	int spawn_errno;
	bool core_dumped, elsewhere, nobody; /* nobody: there is no first cause */
	bool oom_kill, python;
	size_t stopped; /* other ranks, stopped by muster */
	int stop_signal;
	uint32_t restarts;
	const char *words, *kernel, *text; /* text: of the outcome */
	bool left, done;
	enum outcome_kind outcome;
	const char *headline; /* expected */
	enum failure_class class;
	int code;
};

#define CODE(n) .kind = EXIT_CODE, .value = (n), .code = (n), .outcome = OUTCOME_FAILED
#define SIGNAL(n) .kind = EXIT_SIGNAL, .value = (n), .code = 128 + (n), .outcome = OUTCOME_FAILED
#define FAILED_WITH(how) .headline = "job failed: rank 2 of 4 " how " after 500 ms"

static const struct ending endings[] = {
	{ CODE(1), FAILED_WITH("ended with exit code 1") },
	{ CODE(1), FAILED_WITH("ended with exit code 1"), .stopped = 3 },
	{ CODE(1), FAILED_WITH("ended with exit code 1"), .stopped = 3, .restarts = 2 },
	{ CODE(2), FAILED_WITH("ended with exit code 2"),
	  .words = "train.py: error: unrecognized arguments: -x\n", .class = CLASS_CONFIGURATION },
	{ CODE(3), FAILED_WITH("ended with exit code 3"), .words = "ValueError: bad batch\n",
	  .class = CLASS_CODE },
	{ CODE(255), FAILED_WITH("ended with exit code 255"),
	  .words = "OSError: [Errno 28] No space left on device\n", .class = CLASS_STORAGE },
	{ CODE(1), FAILED_WITH("ended with exit code 1"),
	  .words = "torch.OutOfMemoryError: CUDA out of memory.\n", .class = CLASS_MEMORY },
	{ CODE(1), FAILED_WITH("ended with exit code 1"),
	  .words = "ModuleNotFoundError: No module named 'x'\n", .class = CLASS_CONFIGURATION,
	  .python = true },
	{ CODE(1), FAILED_WITH("ended with exit code 1"),
	  .words = "_pickle.UnpicklingError: invalid load key\n", .class = CLASS_DATA },
	{ CODE(1), FAILED_WITH("ended with exit code 1"),
	  .words = "OSError: [Errno 113] No route to host\n", .class = CLASS_NETWORK },
	{ CODE(1), FAILED_WITH("ended with exit code 1"),
	  .words = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n",
	  .class = CLASS_DEVICE },
	{ CODE(1), FAILED_WITH("ended with exit code 1"),
	  .kernel = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n",
	  .class = CLASS_DEVICE },
	{ CODE(126), FAILED_WITH("ended with exit code 126"), .class = CLASS_CONFIGURATION },
	{ CODE(127), FAILED_WITH("ended with exit code 127"), .class = CLASS_CONFIGURATION },
	{ CODE(137), FAILED_WITH("ended with exit code 137"), .class = CLASS_MEMORY },
	{ CODE(139), FAILED_WITH("ended with exit code 139"), .class = CLASS_CODE },
	{ CODE(143), FAILED_WITH("ended with exit code 143"), .class = CLASS_PREEMPTION },
	{ SIGNAL(SIGKILL), FAILED_WITH("ended with SIGKILL"), .class = CLASS_MEMORY },
	{ SIGNAL(SIGKILL), FAILED_WITH("ended with SIGKILL"), .oom_kill = true,
	  .class = CLASS_MEMORY, .stopped = 1 },
	{ SIGNAL(SIGTERM), FAILED_WITH("ended with SIGTERM"), .class = CLASS_PREEMPTION },
	{ SIGNAL(SIGINT), FAILED_WITH("ended with SIGINT"), .class = CLASS_PREEMPTION },
	{ SIGNAL(SIGHUP), FAILED_WITH("ended with SIGHUP"), .class = CLASS_PREEMPTION },
	{ SIGNAL(SIGSEGV), FAILED_WITH("ended with SIGSEGV (core dumped)"), .core_dumped = true,
	  .class = CLASS_CODE },
	{ SIGNAL(SIGABRT), FAILED_WITH("ended with SIGABRT"), .class = CLASS_CODE },
	{ SIGNAL(SIGBUS), FAILED_WITH("ended with SIGBUS"), .class = CLASS_STORAGE },
	{ SIGNAL(SIGFPE), FAILED_WITH("ended with SIGFPE"), .class = CLASS_CODE },
	{ SIGNAL(SIGILL), FAILED_WITH("ended with SIGILL"), .class = CLASS_CONFIGURATION },
	{ SIGNAL(SIGSYS), FAILED_WITH("ended with SIGSYS"), .class = CLASS_CONFIGURATION },
	{ SIGNAL(SIGXCPU), FAILED_WITH("ended with SIGXCPU"), .class = CLASS_CONFIGURATION },
	{ SIGNAL(SIGKILL), FAILED_WITH("was ended by its watchdog, with SIGKILL"),
	  .reason = FAILURE_TIMER },
	{ SIGNAL(SIGKILL), FAILED_WITH("showed no sign of life and was ended, with SIGKILL"),
	  .reason = FAILURE_HANG, .stopped = 3 },
	{ CODE(7), FAILED_WITH("called MPI_Abort, with exit code 7"), .reason = FAILURE_ABORT,
	  .class = CLASS_CODE },
	{ .kind = EXIT_CODE,
	  .outcome = OUTCOME_FAILED,
	  FAILED_WITH("ended without MPI_Finalize, with exit code 0"),
	  .reason = FAILURE_UNFINALIZED,
	  .class = CLASS_CODE,
	  .code = 1 },
	{ CODE(1), FAILED_WITH("broke the protocol between MPI and its launcher"),
	  .reason = FAILURE_PMI, .class = CLASS_CONFIGURATION },
	{ .kind = EXIT_UNKNOWN,
	  .code = 125,
	  .outcome = OUTCOME_FAILED,
	  FAILED_WITH("ended unseen"),
	  .reason = FAILURE_WARDEN,
	  .class = CLASS_HOST },
	{ .kind = EXIT_UNKNOWN,
	  .spawn_errno = EACCES,
	  .code = 126,
	  .outcome = OUTCOME_FAILED,
	  .reason = FAILURE_SPAWN,
	  .elsewhere = true,
	  .headline = "job failed: rank 2 of 4 on m2 could not be started: Permission denied",
	  .class = CLASS_CONFIGURATION },
	{ CODE(5), .elsewhere = true, .words = "KeyError: 'loss'",
	  .headline = "job failed: rank 2 of 4 on m2 ended with exit code 5 after 500 ms",
	  .class = CLASS_CODE, .stopped = 2 },
	{ SIGNAL(SIGKILL), .elsewhere = true,
	  .headline = "job failed: rank 2 of 4 on m2 ended with SIGKILL after 500 ms",
	  .class = CLASS_MEMORY, .oom_kill = true },
	{ .nobody = true,
	  .stop_signal = SIGTERM,
	  .outcome = OUTCOME_SIGNAL,
	  .code = 143,
	  .headline = "stopped by SIGTERM after 1.0 s" },
	{ .nobody = true,
	  .stop_signal = SIGINT,
	  .outcome = OUTCOME_SIGNAL,
	  .code = 130,
	  .stopped = 2,
	  .headline = "stopped by SIGINT after 1.0 s" },
	{ .nobody = true,
	  .outcome = OUTCOME_TIMED_OUT,
	  .code = 124,
	  .text = "only 1 of 2 nodes joined",
	  .headline = "only 1 of 2 nodes joined" },
	{ .nobody = true,
	  .outcome = OUTCOME_FAILED,
	  .code = 125,
	  .headline = "job failed, and no worker is to blame" },
	{ .nobody = true,
	  .outcome = OUTCOME_DONE,
	  .left = true,
	  .code = 94,
	  .headline = "the workers left together, as asked. Start the job again to go on" },
	{ .nobody = true,
	  .outcome = OUTCOME_DONE,
	  .done = true,
	  .code = 0,
	  .headline = "job done" },
};
static_assert(ARRAY_LEN(endings) >= 40, "the promise is forty");

static struct history history;
static struct run_config config;
static struct outcome outcome;

static void add_failure(const struct ending *ending)
{
	struct history_failure *failure = history_add(&history);
	failure->rank = failure->local_rank = 2;
	failure->pid = ending->reason == FAILURE_SPAWN ? 0 : 20022;
	failure->first = true;
	failure->reason = ending->reason;
	failure->spawn_errno = ending->spawn_errno;
	failure->status = (struct exit_status){ ending->kind, ending->value, ending->core_dumped };
	failure->elsewhere = ending->elsewhere;
	if (ending->elsewhere)
		strcpy(failure->host, "m2");
	failure->captured = ending->words && !ending->elsewhere;
	if (failure->captured)
		buf_append_str(&failure->tail, ending->words);
	failure->started_ns = ending->reason == FAILURE_SPAWN ? 0 : 1;
	failure->ended_ns = 1 + 500 * NS_PER_MS;
}

/* What its host has told of a cause elsewhere. */
static void add_ruling(const struct ending *ending)
{
	struct cause *ruled = history_last(&history)->ruled = calloc(1, sizeof(struct cause));
	ruled->reason = ending->reason;
	ruled->status = (struct exit_status){ ending->kind, ending->value, ending->core_dumped };
	ruled->spawn_errno = ending->spawn_errno;
	ruled->rank = ruled->local_rank = 2;
	ruled->world_size = 4;
	ruled->lived_ns = ending->reason == FAILURE_SPAWN ? 0 : 500 * NS_PER_MS;
	strcpy(ruled->name, "m2");
	if (ending->words)
		strcpy(ruled->words, ending->words);
}

static void make(const struct ending *ending)
{
	history_begin(&history, 0);
	history.wall_offset_ns = 1794771762 * NS_PER_S;
	strcpy(history.host, "m1");
	config = (struct run_config){ .run_id = strdup("job"),
				      .role = "default",
				      .nproc = 4,
				      .max_restarts = 3,
				      .max_nodes = ending->elsewhere ? 2 : 1 };
	config.entry = (struct entry){ .path = strdup("/bin/x"),
				       .title = strdup("x"),
				       .python = ending->python };
	for (uint32_t i = 0; i <= ending->restarts; i++) {
		history_begin_attempt(&history, i, 4, i);
		if (ending->nobody)
			continue;
		add_failure(ending);
		if (i < ending->restarts)
			history_end_attempt(&history, ATTEMPT_FAILED, 800 * NS_PER_MS);
	}
	struct history_attempt *last = history_last(&history);
	for (uint32_t rank = 4; rank < 4 + ending->stopped; rank++) {
		struct history_failure *other = history_add(&history);
		*other = (struct history_failure){ .rank = rank,
						   .pid = 30000,
						   .stopped = true,
						   .tail = BUF_INIT,
						   .started_ns = 1,
						   .ended_ns = 600 * NS_PER_MS,
						   .status = { EXIT_SIGNAL, SIGTERM, false } };
	}
	last->oom_kill = ending->oom_kill;
	last->kernel = ending->kernel ? strdup(ending->kernel) : NULL;
	if (ending->elsewhere)
		add_ruling(ending);
	history_end_attempt(&history,
			    ending->done || ending->left ? ATTEMPT_DONE
			    : ending->stop_signal	 ? ATTEMPT_STOPPED
							 : ATTEMPT_FAILED,
			    800 * NS_PER_MS);
	history.stop_signal = ending->stop_signal;
	history_end(&history, NS_PER_S);
	outcome = (struct outcome){ .kind = ending->outcome,
				    .left = ending->left,
				    .signal = ending->stop_signal };
	if (ending->text)
		strcpy(outcome.text, ending->text);
}

static void end(void)
{
	history_done(&history);
	run_config_done(&config);
}

/* ---- what each view says ---- */

static char *text_at(struct json_value object, const char *a, const char *b)
{
	struct json_value value = json_value_get(object, a);
	return json_value_text(b ? json_value_get(value, b) : value);
}

static int64_t int_at(struct json_value object, const char *a, const char *b)
{
	int64_t number = -1;
	json_value_int(json_value_get(json_value_get(object, a), b), &number);
	return number;
}

/* `object` has story and verdict. */
static void expect(const struct ending *ending, size_t number, const char *view,
		   struct json_value object)
{
	AUTO_FREE char *headline = text_at(object, "story", "headline");
	AUTO_FREE char *class = text_at(object, "verdict", "class");
	AUTO_FREE char *host = text_at(json_value_get(object, "story"), "first_cause", "host");
	struct json_value story = json_value_get(object, "story");
	ck_assert_msg(headline && strcmp(headline, ending->headline) == 0,
		      "end %zu, %s: '%s', not '%s'", number, view, headline ? headline : "nothing",
		      ending->headline);
	ck_assert_int_eq(class != NULL, !ending->nobody);
	if (ending->nobody)
		return;
	ck_assert_msg(strcmp(class, failure_class_name(ending->class)) == 0,
		      "end %zu, %s: class %s", number, view, class);
	ck_assert_str_eq(host, ending->elsewhere ? "m2" : "m1");
	ck_assert_int_eq(int_at(story, "first_cause", "rank"), 2);
	ck_assert_int_eq(int_at(object, "verdict", "rank"), 2);
	struct json_value others = json_value_first(json_value_get(story, "others"));
	ck_assert_int_eq(others.kind == JSON_OBJECT, ending->stopped > 0);
	if (ending->stopped == 0)
		return;
	int64_t count = 0;
	json_value_int(json_value_get(others, "count"), &count);
	ck_assert_int_eq(count, (int64_t)ending->stopped);
	ck_assert(json_value_is_true(json_value_get(others, "stopped")));
}

static struct json_value parsed(const struct buf *text)
{
	struct json_value root;
	ck_assert_int_eq(json_value_parse((const char *)buf_data(text), buf_len(text), &root), 0);
	return root;
}

TEST(forty_ends_are_told_alike_everywhere)
{
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		const struct ending *ending = &endings[i];
		AUTO(buf_done) struct buf console = BUF_INIT, json = BUF_INIT;
		AUTO(buf_done) struct buf page = BUF_INIT, event = BUF_INIT;
		make(ending);
		const struct report report = { &config, &history, NULL, &outcome };
		int code = history_final_code(&history, &outcome, &config);
		ck_assert_msg(code == ending->code, "end %zu: code %d, not %d", i, code,
			      ending->code);

		report_people(&report, false, &console);
		size_t line = strcspn(buf_str(&console), "\n");
		ck_assert_msg(strncmp(buf_str(&console), "muster: ", 8) == 0 &&
				      line == 8 + strlen(ending->headline) &&
				      strncmp(buf_str(&console) + 8, ending->headline, line - 8) ==
					      0,
			      "end %zu, console: '%.*s'", i, (int)line, buf_str(&console));

		report_json(&report, code, &json);
		expect(ending, i, "report.json", parsed(&json));
		int64_t told = -1;
		json_value_int(json_value_get(parsed(&json), "exit_code"), &told);
		ck_assert_int_eq(told, code);

		struct past *past = past_new("logs");
		past_add_host(past);
		past_take_report(past, bytes_of(buf_data(&json), buf_len(&json)));
		past_put(past, &page);
		past_free(past);
		struct json_value job =
			json_value_get(json_value_get(parsed(&page), "board"), "job");
		expect(ending, i, "page", job);
		json_value_int(json_value_get(job, "exit_code"), &told);
		ck_assert_int_eq(told, code);

		AUTO(story_done) struct story story;
		story_of(&report, &story);
		event_line(&event, EVENT_JOB_ENDED, &(struct event_head){ .run_id = "job" },
			   &(struct event_body){
				   .rank = EVENT_NO_RANK, .story = &story, .exit_code = &code });
		expect(ending, i, "event", parsed(&event));

		AUTO(story_done) struct story of_attempt;
		story_of_attempt(&report, history_last(&history), &of_attempt);
		ck_assert_int_eq(of_attempt.failed, !ending->nobody);
		if (!ending->nobody) {
			ck_assert_int_eq(of_attempt.judgement.class, ending->class);
			ck_assert_uint_eq(of_attempt.rank, 2);
			ck_assert_ptr_nonnull(strstr(buf_str(&console), of_attempt.host));
		}
		end();
	}
}

TEST(what_the_kernel_knows_stays_with_the_host_that_asked_it)
{
	AUTO(story_done) struct story story;
	make(&(struct ending){ SIGNAL(SIGKILL), .oom_kill = true });
	story_of(&(struct report){ &config, &history, NULL, &outcome }, &story);
	ck_assert_int_eq(story.judgement.certainty, CERTAINTY_KNOWN);
	story_done(&story);
	end();
	make(&(struct ending){ SIGNAL(SIGKILL), .oom_kill = true, .elsewhere = true });
	story_of(&(struct report){ &config, &history, NULL, &outcome }, &story);
	ck_assert_int_eq(story.judgement.certainty, CERTAINTY_GUESS);
	end();
}
