#include "core/worker/hang.h"

#include <string.h>

#include "base/clock.h"

#define PERIOD_MIN_NS (10 * NS_PER_MS)
#define PERIOD_MAX_NS NS_PER_S

static const char *const kind_texts[] = {
	[HANG_NONE] = "fine",
	[HANG_RECORDS] = "ranks wait in a collective that cannot end",
	[HANG_GROUP] = "no rank prints, sends heartbeats or steps, or works",
	[HANG_START] = "no rank has printed, sent a heartbeat or step, or worked since its start",
	[HANG_PROMISE] = "it has stopped sending heartbeats or steps",
	[HANG_UNINTERRUPTIBLE] = "in uninterruptible sleep",
};
static_assert(ARRAY_LEN(kind_texts) == HANG_KIND_COUNT, "every kind needs a text");

const char *hang_kind_text(enum hang_kind kind)
{
	return kind_texts[kind];
}

static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* The time-out for silence, or what there is of it. */
static uint64_t silence_ns(const struct hang_policy *policy)
{
	return shorter(policy->silent_ns, policy->start_ns);
}

static uint64_t limited(uint64_t shortest_ns)
{
	return MIN(MAX(shortest_ns / HANG_LOOKS, PERIOD_MIN_NS), PERIOD_MAX_NS);
}

uint64_t hang_period_ns(const struct hang_policy *policy)
{
	uint64_t shortest_ns = shorter(silence_ns(policy), policy->uninterruptible_ns);
	return shortest_ns ? limited(shortest_ns) : 0;
}

void hang_begin(struct hang *hang, const struct hang_work *work, uint64_t now_ns)
{
	*hang = (struct hang){ .runs = true,
			       .alive_ns = now_ns,
			       .output_ns = now_ns,
			       .promised_ns = now_ns,
			       .arrived_ns = now_ns,
			       .work = { *work },
			       .work_count = 1 };
}

void hang_pause(struct hang *hang, uint64_t pause_ns)
{
	uint64_t *const times[] = { &hang->alive_ns, &hang->output_ns, &hang->promised_ns,
				    &hang->arrived_ns };
	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		*times[i] = ns_add(*times[i], pause_ns);
	for (size_t i = 0; i < ARRAY_LEN(hang->work); i++)
		hang->work[i].at_ns = ns_add(hang->work[i].at_ns, pause_ns);
	if (hang->stuck_since_ns)
		hang->stuck_since_ns = ns_add(hang->stuck_since_ns, pause_ns);
}

static void take(struct hang *hang, uint64_t *last, uint64_t value, uint64_t *at_ns,
		 uint64_t now_ns)
{
	if (value == *last)
		return;
	*last = value;
	*at_ns = hang->alive_ns = now_ns;
}

void hang_look(struct hang *hang, const struct hang_sample *sample, uint64_t now_ns)
{
	take(hang, &hang->last.output, sample->output, &hang->output_ns, now_ns);
	take(hang, &hang->last.promised, sample->promised, &hang->promised_ns, now_ns);
	take(hang, &hang->last.arrived, sample->arrived, &hang->arrived_ns, now_ns);
}

/* ---- work ---- */

static const struct hang_work *newest(const struct hang *hang)
{
	return &hang->work[(hang->work_count - 1) % ARRAY_LEN(hang->work)];
}

/* Of those that are kept: about a time-out ago. */
static const struct hang_work *oldest(const struct hang *hang)
{
	size_t kept = MIN(hang->work_count, ARRAY_LEN(hang->work));
	return &hang->work[(hang->work_count - kept) % ARRAY_LEN(hang->work)];
}

bool hang_wants_work(const struct hang *hang, const struct hang_policy *policy, uint64_t now_ns)
{
	uint64_t limit_ns = silence_ns(policy);
	return limit_ns && now_ns >= newest(hang)->at_ns + limit_ns / HANG_LOOKS;
}

/* A counter that has shrunk belonged to a child that nobody waited for. */
static double grown(uint64_t before, uint64_t now)
{
	return now > before ? (double)(now - before) : 0;
}

static bool is_work(const struct hang_work *before, const struct hang_work *now)
{
	double ns = grown(before->at_ns, now->at_ns), seconds = ns / NS_PER_S;
	double waits = grown(before->waits, now->waits);
	return grown(before->cpu_ns, now->cpu_ns) * HANG_WORK_CPU_PART >= ns ||
	       grown(before->bytes, now->bytes) >= seconds * HANG_WORK_BYTES_PER_S ||
	       (waits >= 2 && waits * 10 >= seconds * HANG_WORK_WAITS_PER_10S);
}

void hang_add_work(struct hang *hang, const struct hang_policy *policy,
		   const struct hang_work *work)
{
	if (!silence_ns(policy) || work->at_ns <= newest(hang)->at_ns)
		return;
	hang->works = is_work(oldest(hang), work);
	hang->work[hang->work_count++ % ARRAY_LEN(hang->work)] = *work;
	if (work->traced)
		hang->alive_ns = hang->output_ns = hang->promised_ns = hang->arrived_ns =
			work->at_ns;
}

/* ---- uninterruptible sleep ---- */

static bool is_over(uint64_t since_ns, uint64_t limit_ns, uint64_t now_ns)
{
	return limit_ns && now_ns >= ns_add(since_ns, limit_ns);
}

bool hang_is_stuck(struct hang *hang, const struct hang_policy *policy, bool uninterruptible,
		   uint64_t now_ns)
{
	if (!uninterruptible) {
		hang->stuck_since_ns = 0;
		hang->stuck_told = false;
		return false;
	}
	if (!hang->stuck_since_ns)
		hang->stuck_since_ns = now_ns;
	bool stuck = !hang->stuck_told &&
		     is_over(hang->stuck_since_ns, policy->uninterruptible_ns, now_ns);
	hang->stuck_told |= stuck;
	return stuck;
}

/* ---- a host ---- */

static enum hang_level level_of(uint64_t since_ns, uint64_t limit_ns, uint64_t now_ns)
{
	if (!is_over(since_ns, limit_ns, now_ns))
		return HANG_FINE;
	return now_ns - since_ns < limit_ns * HANG_LONG_TIMES ? HANG_SILENT : HANG_LONG;
}

static bool has_spoken(const struct hang *worker)
{
	return worker->last.output || worker->last.promised || worker->last.arrived;
}

/* It prints or works, although it no longer sends what it promised. */
static bool is_lively(const struct hang *worker, uint64_t limit_ns, uint64_t now_ns)
{
	return worker->works || !is_over(worker->output_ns, limit_ns, now_ns);
}

/* Of a worker that sends heartbeats or steps. One that prints or works itself has more time. */
static enum hang_level look_at_promise(const struct hang *worker, const struct hang_policy *policy,
				       uint64_t now_ns, struct hang_signs *signs)
{
	uint64_t limit_ns = policy->silent_ns;
	enum hang_level level = level_of(worker->promised_ns, limit_ns, now_ns);
	bool lively = is_lively(worker, limit_ns, now_ns);
	/* Before the others are late: the first to be late must not be taken for a single one. */
	signs->excuse |= lively && is_over(worker->promised_ns, limit_ns / 2, now_ns);
	return lively && level == HANG_SILENT ? HANG_FINE : level;
}

/* No worker has shown a sign of life after `since_ns`. */
static enum hang_level silence_of(const struct hang_signs *signs, const struct hang_policy *policy,
				  uint64_t since_ns, uint64_t now_ns)
{
	if (!signs->starting)
		return level_of(since_ns, policy->silent_ns, now_ns);
	if (is_over(since_ns, policy->start_ns, now_ns))
		return HANG_LONG;
	return is_over(since_ns, silence_ns(policy), now_ns) ? HANG_SILENT : HANG_FINE;
}

void hang_signs_of(const struct hang *workers, size_t count, const struct hang_policy *policy,
		   uint64_t now_ns, struct hang_signs *ret_signs)
{
	struct hang_signs signs = { .starting = policy->start_ns > 0 };
	uint64_t latest_ns = 0, first_ns = NS_NEVER, arrived_ns = 0;
	bool any = false, arrives = false;
	for (size_t i = 0; i < count; i++) {
		const struct hang *worker = &workers[i];
		if (!worker->runs)
			continue;
		any = true;
		signs.starting &= !has_spoken(worker);
		signs.works |= worker->works;
		latest_ns = MAX(latest_ns, worker->alive_ns);
		enum hang_level broken = HANG_FINE;
		if (worker->last.promised && policy->silent_ns)
			broken = look_at_promise(worker, policy, now_ns, &signs);
		if (broken > signs.broken ||
		    (signs.broken == broken && worker->alive_ns < first_ns)) {
			signs.rank = (uint32_t)i;
			first_ns = worker->alive_ns;
		}
		signs.broken = MAX(signs.broken, broken);
		arrives |= worker->last.arrived > 0;
		arrived_ns = MAX(arrived_ns, worker->arrived_ns);
	}
	signs.silence = any ? silence_of(&signs, policy, latest_ns, now_ns) : HANG_FINE;
	signs.stalled = arrives ? level_of(arrived_ns, policy->silent_ns, now_ns) : HANG_FINE;
	bool tells = signs.silence || signs.broken || signs.stalled || signs.excuse;
	*ret_signs = tells ? signs : (struct hang_signs){ .silence = HANG_FINE };
}

bool hang_signs_eq(const struct hang_signs *a, const struct hang_signs *b)
{
	return a->silence == b->silence && a->broken == b->broken && a->stalled == b->stalled &&
	       a->starting == b->starting && a->works == b->works && a->excuse == b->excuse &&
	       (a->rank == b->rank || !a->broken);
}

/* ---- all hosts ---- */

static void count(struct hang_tally *tally, const struct hang_signs *signs, uint32_t one)
{
	tally->silent += signs->silence >= HANG_SILENT ? one : 0;
	tally->silent_long += signs->silence >= HANG_LONG ? one : 0;
	tally->starting += signs->silence && signs->starting ? one : 0;
	tally->works += signs->works ? one : 0;
	tally->broken += signs->broken >= HANG_SILENT ? one : 0;
	tally->broken_long += signs->broken >= HANG_LONG ? one : 0;
	tally->excuse += signs->excuse ? one : 0;
	tally->stalled += signs->stalled >= HANG_SILENT ? one : 0;
	tally->stalled_long += signs->stalled >= HANG_LONG ? one : 0;
}

void hang_tally_add(struct hang_tally *tally, const struct hang_signs *signs)
{
	count(tally, signs, 1);
}

void hang_tally_remove(struct hang_tally *tally, const struct hang_signs *signs)
{
	count(tally, signs, UINT32_MAX); /* minus one */
}

enum hang_kind hang_judge(const struct hang_tally *tally, uint32_t hosts, bool *ret_long)
{
	*ret_long = hosts && tally->stalled_long == hosts;
	if (tally->broken_long || (tally->broken && !tally->excuse))
		return HANG_PROMISE;
	if (hosts && tally->silent == hosts && !tally->works) {
		if (tally->starting < hosts)
			return HANG_GROUP;
		if (tally->silent_long == hosts)
			return HANG_START;
	}
	return hosts && tally->stalled == hosts ? HANG_RECORDS : HANG_NONE;
}
