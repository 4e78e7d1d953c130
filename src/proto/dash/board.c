#include "proto/dash/board.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/json_value.h"

#define MIB ((int64_t)1 << 20)
#define SAMPLE_EVERY_MS 1000

struct board *board_new(void)
{
	struct board *board = NEW(struct board);
	board->base = board->told_base = -1;
	board->reshaped = true;
	board->sample_every_ms = SAMPLE_EVERY_MS;
	return board;
}

static void text_done(struct board_text *text)
{
	buf_done(&text->now);
	buf_done(&text->told);
}

void board_free(struct board *board)
{
	if (!board)
		return;
	for (size_t i = 0; i < board->hosts_cap; i++)
		text_done(&board->hosts[i]);
	for (size_t i = 0; i < BOARD_PART_COUNT; i++)
		text_done(&board->parts[i]);
	text_done(&board->progress);
	free(board->hosts);
	free(board->ranks);
	free(board);
}

/* ---- ranks ---- */

static void resize(struct board *board, size_t count)
{
	if (count > board->cap) {
		board->ranks = mem_grow(board->ranks, count, sizeof(*board->ranks));
		board->cap = count;
	}
	for (size_t i = board->count; i < count; i++)
		board->ranks[i] = (struct board_rank){ .step = -1, .now[BOARD_STEP] = -1 };
	if (count != board->count)
		board->reshaped = true;
	board->count = count;
}

void board_begin(struct board *board, size_t world_size, uint64_t now_ns, uint64_t wall_ms)
{
	resize(board, MIN(world_size, BOARD_RANKS_MAX));
	for (size_t i = 0; i < board->count; i++)
		board->ranks[i].heard = false;
	board->next_host = 0;
	board->now_ns = now_ns;
	board->wall_ms = wall_ms;
	board->rate = board->left_s = board->still_s = -1;
	board->total = 0;
}

/* A worker as its host tells it. */
struct told_worker {
	int64_t rank, pid, step, bytes;
	double cpu_s, silent_s, still_s, usual_s;
	bool failed, stopped;
	enum board_state state;
};

static int64_t int_of(struct json_value value, int64_t otherwise)
{
	int64_t number;
	return json_value_int(value, &number) ? number : otherwise;
}

static double real_of(struct json_value value)
{
	double number = json_value_real(value);
	return number >= 0 && number < 1e15 ? number : 0;
}

static enum board_state state_of(struct json_value value)
{
	static const char *const names[] = {
		[BOARD_UNKNOWN] = "unknown", [BOARD_STARTING] = "starting",
		[BOARD_RUNNING] = "running", [BOARD_ENDED] = "ended",
		[BOARD_FAILED] = "failed",   [BOARD_STOPPED] = "stopped",
	};
	static_assert(ARRAY_LEN(names) == BOARD_STATE_COUNT, "every state needs a name");
	AUTO_FREE char *text = json_value_text(value);
	for (size_t i = 0; text && i < ARRAY_LEN(names); i++)
		if (str_eq(text, names[i]))
			return (enum board_state)i;
	return BOARD_UNKNOWN;
}

static void read_worker(struct json_value object, struct told_worker *ret)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_value member;
	struct json_in in;
	*ret = (struct told_worker){ .rank = -1, .step = -1 };
	for (json_value_enter(object, &in); json_value_next_member(&in, &key, &member);) {
		const char *name = buf_str(&key);
		if (str_eq(name, "rank"))
			ret->rank = int_of(member, -1);
		else if (str_eq(name, "pid"))
			ret->pid = int_of(member, 0);
		else if (str_eq(name, "step"))
			ret->step = int_of(member, -1);
		else if (str_eq(name, "resident_bytes"))
			ret->bytes = int_of(member, 0);
		else if (str_eq(name, "cpu_s"))
			ret->cpu_s = real_of(member);
		else if (str_eq(name, "silent_s"))
			ret->silent_s = real_of(member);
		else if (str_eq(name, "still_s"))
			ret->still_s = real_of(member);
		else if (str_eq(name, "usual_step_s"))
			ret->usual_s = real_of(member);
		else if (str_eq(name, "failed"))
			ret->failed = json_value_is_true(member);
		else if (str_eq(name, "stopped"))
			ret->stopped = json_value_is_true(member);
		else if (str_eq(name, "state"))
			ret->state = state_of(member);
	}
}

static int64_t round_silence(double s)
{
	int64_t shown = 4;
	if (s < 4)
		return 0;
	while (shown <= INT32_MAX && (double)(shown * 2) <= s)
		shown *= 2;
	return shown;
}

/* Trembling values keep what they show until the difference can be seen. */
static int64_t calm(int64_t shown, int64_t value, int64_t least)
{
	int64_t enough = MAX(least, shown / 33);
	bool near = value - shown < enough && shown - value < enough;
	return near && (shown == 0) == (value == 0) ? shown : value;
}

static int64_t cpu_of(const struct board_rank *rank, const struct told_worker *worker,
		      uint64_t now_ns)
{
	double s = (double)(now_ns - MIN(rank->seen_ns, now_ns)) / 1e9;
	bool same = rank->seen_ns && rank->now[BOARD_PID] == worker->pid;
	if (!same || s < 0.05 || worker->cpu_s < rank->cpu_s)
		return same ? rank->now[BOARD_CPU] : 0;
	return calm(rank->now[BOARD_CPU],
		    (int64_t)MIN((worker->cpu_s - rank->cpu_s) / s * 100 + 0.5, 1e6), 3);
}

static bool take_worker(struct board *board, struct json_value object)
{
	struct told_worker worker;
	read_worker(object, &worker);
	if (worker.rank < 0 || worker.rank >= (int64_t)BOARD_RANKS_MAX)
		return false;
	if ((size_t)worker.rank >= board->count)
		resize(board, (size_t)worker.rank + 1);
	struct board_rank *rank = &board->ranks[worker.rank];
	bool runs = worker.state == BOARD_RUNNING;
	int64_t memory = MAX(worker.bytes, (int64_t)0) / MIB;
	rank->now[BOARD_CPU] = runs ? cpu_of(rank, &worker, board->now_ns) : 0;
	rank->now[BOARD_MEMORY] = calm(rank->now[BOARD_MEMORY], memory, 2);
	rank->now[BOARD_HOST] = (int64_t)board->next_host;
	rank->now[BOARD_PID] = worker.pid;
	rank->now[BOARD_SILENT] = runs ? round_silence(MAX(worker.silent_s, worker.still_s)) : 0;
	rank->now[BOARD_STATE] = worker.failed	  ? BOARD_FAILED
				 : worker.stopped ? BOARD_STOPPED
						  : worker.state;
	rank->step = worker.step;
	rank->cpu_s = worker.cpu_s;
	rank->seen_ns = board->now_ns;
	rank->heard = true;
	if (runs && worker.step >= 0 && (board->still_s < 0 || worker.still_s < board->still_s)) {
		board->still_s = worker.still_s;
		board->usual_s = worker.usual_s;
	}
	return true;
}

/* ---- hosts ---- */

/* The members of the host's state that the page shows. */
static void put_state(struct board *board, struct json_out *out, struct json_value state)
{
	static const char *const kept[] = {
		"state", "pid",	   "version",	  "log_dir", "cpus",
		"load",	 "memory", "free_memory", "node",    "restarts"
	};
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_value member, worker;
	struct json_in in, workers;
	int64_t count = 0;
	for (json_value_enter(state, &in); json_value_next_member(&in, &key, &member);) {
		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			if (str_eq(buf_str(&key), kept[i]))
				json_out_value(out, kept[i], member);
		if (str_eq(buf_str(&key), "workers"))
			for (json_value_enter(member, &workers);
			     json_value_next(&workers, &worker);)
				count += take_worker(board, worker);
		if (str_eq(buf_str(&key), "progress")) {
			double rate = real_of(json_value_get(member, "steps_per_s"));
			struct json_value left = json_value_get(member, "left_s");
			if (rate > 0 && (board->rate < 0 || rate < board->rate))
				board->rate = rate;
			if (left.kind != JSON_NONE)
				board->left_s = MAX(board->left_s, real_of(left));
			board->total =
				MAX(board->total, int_of(json_value_get(member, "total_steps"), 0));
		}
	}
	json_out_int(out, "workers", count);
}

static struct board_text *next_host(struct board *board)
{
	if (board->next_host == board->hosts_cap) {
		size_t cap = MAX(2 * board->hosts_cap, (size_t)8);
		board->hosts = mem_grow(board->hosts, cap, sizeof(*board->hosts));
		for (size_t i = board->hosts_cap; i < cap; i++)
			board->hosts[i] = (struct board_text){ BUF_INIT, BUF_INIT };
		board->hosts_cap = cap;
	}
	return &board->hosts[board->next_host];
}

int board_take(struct board *board, const char *name, int64_t group_rank, bool failed,
	       struct bytes text)
{
	if (board->next_host >= BOARD_HOSTS_MAX)
		return -E2BIG;
	struct buf *line = &next_host(board)->now;
	struct json_value state;
	bool bad = !failed && (json_value_parse((const char *)text.data, text.len, &state) < 0 ||
			       state.kind != JSON_OBJECT);
	buf_clear(line);
	struct json_out out = JSON_OUT(line, .ascii = true);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "name", name);
	json_out_int(&out, "rank", group_rank);
	if (failed || bad) {
		AUTO_FREE char *why = mem_strndup((const char *)text.data, MIN(text.len, 200u));
		json_out_text(&out, "why", bad ? "its answer is not a state" : why);
	} else {
		put_state(board, &out, state);
	}
	json_out_close(&out, '}');
	board->next_host++;
	return bad ? -EINVAL : 0;
}

/* ---- together ---- */

static void put_progress(struct board *board, int64_t most, int64_t behind)
{
	struct buf *text = &board->progress.now;
	buf_clear(text);
	struct json_out out = JSON_OUT(text);
	json_out_open(&out, NULL, '{');
	if (board->base >= 0) {
		json_out_int(&out, "step", board->base);
		json_out_int(&out, "most", most);
		if (board->total > 0)
			json_out_int(&out, "total", board->total);
		if (board->rate >= 0)
			json_out_int(&out, "rate_m", (int64_t)MIN(board->rate * 1000, 1e12));
		if (board->left_s >= 0)
			json_out_int(&out, "left_s", (int64_t)board->left_s);
		if (most > board->base)
			json_out_int(&out, "behind", behind);
		if (board->still_s > 0) {
			json_out_int(&out, "still_s", (int64_t)board->still_s);
			json_out_int(&out, "usual_ms", (int64_t)MIN(board->usual_s * 1000, 1e12));
		}
	}
	json_out_close(&out, '}');
}

/* Twice the distance, half the samples: a chart of any length costs the same. */
static void thin_out(struct board *board)
{
	size_t kept = 0;
	for (size_t i = 0; i < board->sample_count; i += 2)
		board->samples[kept++] = board->samples[i];
	board->sample_count = kept;
	board->sample_every_ms *= 2;
}

static void add_sample(struct board *board, bool last_one)
{
	struct board_sample sample = { .when_ms = (int64_t)board->wall_ms,
				       .step = board->base,
				       .rate = MAX(board->rate, 0.0) };
	const struct board_sample *last =
		board->sample_count ? &board->samples[board->sample_count - 1] : NULL;
	if (!last_one && last &&
	    sample.when_ms - last->when_ms < (int64_t)board->sample_every_ms * 9 / 10)
		return;
	for (size_t i = 0; i < board->count; i++) {
		sample.running += board->ranks[i].now[BOARD_STATE] == BOARD_RUNNING;
		sample.cpu += board->ranks[i].now[BOARD_CPU];
		sample.memory += board->ranks[i].now[BOARD_MEMORY];
	}
	if (board->sample_count == BOARD_SAMPLES_MAX)
		thin_out(board);
	board->samples[board->sample_count++] = sample;
	board->sampled = true;
}

void board_end(struct board *board)
{
	int64_t least = -1, most = -1, behind = 0;
	for (size_t i = 0; i < board->count; i++) {
		struct board_rank *rank = &board->ranks[i];
		if (!rank->heard) {
			rank->now[BOARD_STATE] = BOARD_UNKNOWN;
			rank->now[BOARD_CPU] = rank->now[BOARD_SILENT] = 0;
		}
		if (rank->step < 0)
			continue;
		if (least < 0 || rank->step < least) {
			least = rank->step;
			behind = (int64_t)i;
		}
		most = MAX(most, rank->step);
	}
	for (size_t i = 0; i < board->count; i++) {
		struct board_rank *rank = &board->ranks[i];
		rank->now[BOARD_STEP] = rank->step < 0 ? -1 : rank->step - least;
	}
	if (board->next_host != board->host_count)
		board->reshaped = true;
	board->host_count = board->next_host;
	board->base = least;
	put_progress(board, most, behind);
	add_sample(board, false);
}

void board_finish(struct board *board, const struct board_over *over, uint64_t wall_ms)
{
	for (size_t i = 0; i < board->count; i++) {
		struct board_rank *rank = &board->ranks[i];
		int64_t *state = &rank->now[BOARD_STATE];
		bool here = i >= over->first && i - over->first < over->count;
		if (*state != BOARD_FAILED && *state != BOARD_STOPPED)
			*state = here || over->everywhere ? BOARD_ENDED : BOARD_UNKNOWN;
		rank->now[BOARD_CPU] = rank->now[BOARD_SILENT] = 0;
	}
	board->wall_ms = wall_ms;
	if (board->count)
		add_sample(board, true);
}

void board_mark(struct board *board, int64_t rank, enum board_state state)
{
	if (rank >= 0 && (uint64_t)rank < board->count)
		board->ranks[rank].now[BOARD_STATE] = state;
}

void board_set_part(struct board *board, enum board_part part, const struct buf *json)
{
	struct buf *text = &board->parts[part].now;
	buf_clear(text);
	buf_append(text, buf_data(json), buf_len(json));
}
