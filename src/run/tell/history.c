#include "run/tell/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/worker/exit_code.h"

static const char *const end_names[] = {
	[ATTEMPT_RUNNING] = "running", [ATTEMPT_DONE] = "done",
	[ATTEMPT_FAILED] = "failed",   [ATTEMPT_STOPPED] = "stopped",
	[ATTEMPT_REGROUP] = "regroup", [ATTEMPT_RESTARTED] = "restarted",
};
static_assert(ARRAY_LEN(end_names) == ATTEMPT_END_COUNT, "every end needs a name");

const char *attempt_end_name(enum attempt_end end)
{
	return end_names[end];
}

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

void history_done(struct history *history)
{
	for (size_t a = 0; a < history->count; a++) {
		struct history_attempt *attempt = &history->attempts[a];
		for (size_t f = 0; f < attempt->count; f++) {
			free(attempt->failures[f].error_file);
			buf_done(&attempt->failures[f].tail);
		}
		free(attempt->failures);
		free(attempt->stacks);
	}
	free(history->attempts);
	*history = HISTORY_INIT;
}

struct history_attempt *history_last(const struct history *history)
{
	return history->count ? &history->attempts[history->count - 1] : NULL;
}

void history_begin_attempt(struct history *history, uint32_t restart_count, uint32_t world_size,
			   uint64_t now_ns)
{
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
	for (size_t i = 0; i < attempt->count; i++)
		attempt->failures[i].first = false;
	struct history_failure *failure = find_local(history, cause);
	if (!failure) {
		failure = history_add(history);
		snprintf(failure->host, sizeof(failure->host), "%s", cause->name);
		failure->elsewhere = true;
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

const struct history_failure *history_cause(const struct history_attempt *attempt)
{
	const struct history_failure *cause = NULL;
	for (size_t i = 0; i < attempt->count; i++) {
		const struct history_failure *failure = &attempt->failures[i];
		if (failure->first)
			return failure;
		if (!failure->stopped && (!cause || failure->ended_ns < cause->ended_ns))
			cause = failure;
	}
	return cause;
}

int history_exit_code(const struct history *history, const struct entry *entry)
{
	if (history->stop_signal)
		return EXIT_CODE_SIGNAL_BASE + history->stop_signal;
	const struct history_attempt *last = history_last(history);
	if (!last)
		return EXIT_CODE_SYSTEM;
	if (last->end == ATTEMPT_DONE)
		return EXIT_CODE_OK;
	const struct history_failure *cause = history_cause(last);
	if (!cause)
		return EXIT_CODE_SYSTEM;
	if (cause->reason == FAILURE_SPAWN)
		return entry_explain_spawn(entry, cause->spawn_errno, NULL);
	int code = exit_status_shell_code(&cause->status);
	return code ? code : EXIT_CODE_FAILED; /* given up by a watchdog, then ended with 0 */
}
