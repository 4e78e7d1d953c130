#include "run/tell/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/rounds/job_exit.h"
#include "run/config.h"

void history_begin(struct history *history, uint64_t now_ns)
{
	*history = HISTORY_INIT;
	history->started_ns = now_ns;
	history->wall_offset_ns = clock_wall_ns() - clock_now_ns();
	if (gethostname(history->host, sizeof(history->host) - 1) < 0)
		history->host[0] = '\0';
}

void history_end(struct history *history, uint64_t now_ns)
{
	history->ended_ns = now_ns;
}

static void attempt_done(struct history_attempt *attempt)
{
	for (size_t f = 0; f < attempt->count; f++) {
		free(attempt->failures[f].error_file);
		buf_done(&attempt->failures[f].tail);
	}
	free(attempt->failures);
	free(attempt->stacks);
	free(attempt->left);
	free(attempt->collectives);
	free(attempt->ruled);
	free(attempt->kernel);
}

void history_done(struct history *history)
{
	for (size_t a = 0; a < history->count; a++)
		attempt_done(&history->attempts[a]);
	free(history->attempts);
	node_table_done(&history->nodes);
	*history = HISTORY_INIT;
}

struct history_attempt *history_last(const struct history *history)
{
	return history->count ? &history->attempts[history->count - 1] : NULL;
}

static void forget_tails(struct history_attempt *attempt)
{
	for (size_t i = 0; i < attempt->count; i++)
		buf_done(&attempt->failures[i].tail);
}

static void add_up(struct history_forgotten *counts, const struct history_attempt *attempt)
{
	const struct history_failure *cause = history_cause(attempt);
	counts->count++;
	if (cause)
		counts->causes[cause->reason]++;
	else
		counts->others[attempt->end]++;
}

void history_count(const struct history *history, bool all, struct history_forgotten *ret_counts)
{
	*ret_counts = history->forgotten;
	for (size_t i = 0; i + !all < history->count; i++)
		add_up(ret_counts, &history->attempts[i]);
}

/* The oldest but for the first ones: a job may restart for ever. */
static void forget_one(struct history *history)
{
	struct history_attempt *oldest = &history->attempts[HISTORY_FIRST_MAX];
	add_up(&history->forgotten, oldest);
	attempt_done(oldest);
	history->count--;
	memmove(oldest, oldest + 1, (history->count - HISTORY_FIRST_MAX) * sizeof(*oldest));
}

void history_begin_attempt(struct history *history, uint32_t restart_count, uint32_t world_size,
			   uint64_t now_ns)
{
	if (history->count >= HISTORY_TAILS_MAX)
		forget_tails(&history->attempts[history->count - HISTORY_TAILS_MAX]);
	if (history->count == HISTORY_ATTEMPTS_MAX)
		forget_one(history);
	ARRAY_RESERVE(history->attempts, history->count, history->cap);
	history->attempts[history->count++] = (struct history_attempt){
		.restart_count = restart_count,
		.world_size = world_size,
		.started_ns = now_ns,
	};
}

void history_end_attempt(struct history *history, enum attempt_end end, uint64_t now_ns)
{
	struct history_attempt *attempt = history_last(history);
	attempt->end = end;
	attempt->ended_ns = now_ns;
}

struct history_failure *history_add(struct history *history)
{
	struct history_attempt *attempt = history_last(history);
	ARRAY_RESERVE(attempt->failures, attempt->count, attempt->cap);
	struct history_failure *failure = &attempt->failures[attempt->count++];
	*failure = (struct history_failure){ .tail = BUF_INIT };
	memcpy(failure->host, history->host, sizeof(failure->host));
	return failure;
}

static struct history_failure *find_local(const struct history *history, const struct cause *cause)
{
	struct history_attempt *attempt = history_last(history);
	for (size_t i = 0; i < attempt->count; i++) {
		struct history_failure *failure = &attempt->failures[i];
		if (failure->pid == cause->pid && (int64_t)failure->rank == cause->rank &&
		    str_eq(failure->host, cause->name))
			return failure;
	}
	return NULL;
}

void history_blame(struct history *history, const struct cause *cause, uint64_t now_ns)
{
	if (!history_last(history))
		history_begin_attempt(history, 0, 0, now_ns);
	struct history_attempt *attempt = history_last(history);
	if (!attempt->ruled)
		attempt->ruled = NEW(struct cause);
	*attempt->ruled = *cause;
	for (size_t i = 0; i < attempt->count; i++)
		attempt->failures[i].first = false;
	struct history_failure *failure = find_local(history, cause);
	if (!failure) {
		failure = history_add(history);
		snprintf(failure->host, sizeof(failure->host), "%s", cause->name);
		failure->elsewhere = true;
	}
	if (failure->elsewhere) {
		failure->rank = (uint32_t)MAX(cause->rank, 0);
		failure->local_rank = (uint32_t)MAX(cause->local_rank, 0);
		failure->group_rank = (uint32_t)MAX(cause->group_rank, 0);
		failure->pid = cause->pid;
		failure->reason = cause->reason;
		failure->spawn_errno = cause->spawn_errno;
		failure->status = cause->status;
		failure->started_ns = attempt->started_ns;
		failure->ended_ns = now_ns - MIN(now_ns, cause->age_ns);
	}
	failure->first = true;
}

struct history_failure *history_find(const struct history *history, uint64_t id)
{
	for (size_t a = history->count; a-- > 0;)
		for (size_t i = 0; i < history->attempts[a].count; i++)
			if (history->attempts[a].failures[i].id == id)
				return &history->attempts[a].failures[i];
	return NULL;
}

const struct history_failure *history_cause(const struct history_attempt *attempt)
{
	for (size_t i = 0; i < attempt->count; i++)
		if (attempt->failures[i].first)
			return &attempt->failures[i];
	return NULL;
}

int history_exit_code(const struct history *history, enum outcome_kind kind)
{
	const struct history_attempt *last = history_last(history);
	const struct history_failure *first = last ? history_cause(last) : NULL;
	struct cause cause = { 0 };
	if (last && last->ruled)
		cause = *last->ruled;
	else if (first)
		cause = (struct cause){ .reason = first->reason,
					.status = first->status,
					.spawn_errno = first->spawn_errno };
	return job_exit_code(kind, history->stop_signal, first ? &cause : NULL);
}

int history_final_code(const struct history *history, const struct outcome *outcome,
		       const struct run_config *config)
{
	enum exit_reason reason = job_exit_reason(outcome, history->stop_signal);
	int code = exit_reason_code(reason, history_exit_code(history, outcome->kind));
	if (code && config->exit_code == RUN_STYLE_TORCHRUN)
		code = EXIT_CODE_FAILED;
	return exit_map_apply(&config->exit_map, reason, code);
}
