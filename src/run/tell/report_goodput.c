/* Where the time of the job went, as far as its workers on this host told steps. */
#include "base/clock.h"
#include "core/worker/goodput.h"
#include "proto/json_out.h"
#include "run/tell/report.h"

/* The time that attempts took without bringing the job further, by what ended them. */
struct lost {
	uint64_t causes[FAILURE_REASON_COUNT];
	uint64_t others[ATTEMPT_END_COUNT];
};

static void add_lost(struct lost *lost, const struct history_attempt *attempt, uint64_t ns)
{
	const struct history_failure *cause = history_cause(attempt);
	if (cause)
		lost->causes[cause->reason] += ns;
	else
		lost->others[attempt->end] += ns;
}

static void add_up(const struct history *history, struct goodput *ret_goodput,
		   struct lost *ret_lost)
{
	*ret_lost = (struct lost){ .causes = { 0 } };
	goodput_begin(ret_goodput, history->started_ns);
	for (size_t i = 0; i < history->count; i++) {
		const struct history_attempt *attempt = &history->attempts[i];
		uint64_t ns = goodput_add(ret_goodput, attempt->started_ns, attempt->ended_ns,
					  &attempt->steps);
		add_lost(ret_lost, attempt, ns);
	}
	goodput_end(ret_goodput, history->ended_ns);
}

bool report_has_steps(const struct report *report)
{
	for (size_t i = 0; i < report->history->count; i++)
		if (report->history->attempts[i].steps.workers)
			return true;
	return false;
}

static void put_seconds(struct json_out *out, const char *key, uint64_t ns)
{
	json_out_real(out, key, (double)ns / (double)NS_PER_S);
}

static void put_lost(struct json_out *out, const struct lost *lost)
{
	json_out_open(out, "lost_s", '{');
	for (size_t i = 0; i < FAILURE_REASON_COUNT; i++)
		if (lost->causes[i])
			put_seconds(out, failure_reason_name((enum failure_reason)i),
				    lost->causes[i]);
	for (size_t i = 0; i < ATTEMPT_END_COUNT; i++)
		if (lost->others[i])
			put_seconds(out, attempt_end_name((enum attempt_end)i), lost->others[i]);
	json_out_close(out, '}');
}

void report_goodput_json(const struct report *report, struct json_out *out)
{
	struct goodput goodput;
	struct lost lost;
	if (!report_has_steps(report))
		return;
	add_up(report->history, &goodput, &lost);
	json_out_open(out, "goodput", '{');
	put_seconds(out, "total_s", goodput.total_ns);
	put_seconds(out, "steps_s", goodput.steps_ns);
	put_seconds(out, "again_s", goodput.again_ns);
	put_seconds(out, "start_s", goodput.start_ns);
	put_seconds(out, "end_s", goodput.end_ns);
	put_seconds(out, "wait_s", goodput.wait_ns);
	json_out_int(out, "steps", (int64_t)goodput.steps);
	json_out_int(out, "steps_again", (int64_t)goodput.again);
	put_lost(out, &lost);
	json_out_close(out, '}');
}

static void say(struct buf *out, const char *what, uint64_t ns)
{
	char text[CLOCK_HUMAN_MAX];
	clock_human(ns, text);
	buf_printf(out, ", %s %s", what, text);
}

void report_goodput_people(const struct report *report, struct buf *out)
{
	struct goodput goodput;
	struct lost lost;
	add_up(report->history, &goodput, &lost);
	double total = (double)MAX(goodput.total_ns, (uint64_t)1);
	buf_printf(out, "%.0f%% of the time in new steps", 100 * (double)goodput.steps_ns / total);
	say(out, "starting", goodput.start_ns);
	if (goodput.again)
		say(out, "steps done again", goodput.again_ns);
	say(out, "after the last step", goodput.end_ns);
	say(out, "waiting", goodput.wait_ns);
	buf_append_char(out, '\n');
}
