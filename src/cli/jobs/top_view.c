#include "cli/jobs/top_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/jobs/jobs.h"
#include "core/worker/step_progress.h"

#define GRID_LABEL 8   /* characters before the cells of a line */
#define GRID_WIDTH 100 /* of a screen without limit */
#define GRID_SHARE 4   /* the grid of a job gets at most one line in so many */
#define LINES_AROUND 3 /* titles, keys and the notice */
#define UNKNOWN (-1)

const char *const top_sorts[] = {
	[TOP_SORT_RANK] = "rank",     [TOP_SORT_CPU] = "cpu",	[TOP_SORT_MEMORY] = "memory",
	[TOP_SORT_SILENT] = "silent", [TOP_SORT_HOST] = "host", [TOP_SORT_COUNT] = NULL,
};

/* Of a worker, the one that needs attention most last. */
enum cell {
	CELL_RUNNING,
	CELL_STARTING,
	CELL_ENDED,
	CELL_COUNT,
};

static const struct {
	const char *state; /* as /api/state has it */
	const char *colour;
	char sign; /* in the grid; 0: a digit, tenths of a CPU */
} cells[] = {
	[CELL_RUNNING] = { "running", "\033[32m", 0 },
	[CELL_STARTING] = { "starting", "\033[33m", 's' },
	[CELL_ENDED] = { "ended", "\033[31m", 'e' },
};
static_assert(ARRAY_LEN(cells) == CELL_COUNT, "every state needs a sign");

struct top_row {
	size_t job;
	int64_t rank, pid, bytes, step; /* step: UNKNOWN if it tells none */
	enum cell cell;
	double cpu, silent_s; /* share of one CPU; UNKNOWN: not known */
	char *host, *line;
};

struct top_job {
	char *run_id;
	char *state;
	int64_t nodes, workers, restarts, max_restarts, hosts;
	double uptime_s;
	struct step_progress_sum steps;
};

struct look {
	double cpu_s;
	uint64_t at_ns;
};

/* ---- taking ---- */

static void clear(struct top_view *view)
{
	for (size_t i = 0; i < view->job_count; i++) {
		free(view->jobs[i].run_id);
		free(view->jobs[i].state);
	}
	for (size_t i = 0; i < view->row_count; i++) {
		free(view->rows[i].host);
		free(view->rows[i].line);
	}
	view->job_count = view->row_count = 0;
	view->has_steps = view->has_silences = false;
}

static void forget_looks(struct map *looks)
{
	map_foreach(entry, looks) free(entry->value);
	map_done(looks);
}

void top_view_done(struct top_view *view)
{
	clear(view);
	free(view->jobs);
	free(view->rows);
	forget_looks(&view->seen);
	*view = TOP_VIEW_INIT;
}

static char *text_of(struct json_value object, const char *name)
{
	char *text = json_value_text(json_value_get(object, name));
	if (!text)
		return mem_strdup("-");
	str_make_printable(text);
	return text;
}

static double real_of(struct json_value object, const char *name)
{
	struct json_value value = json_value_get(object, name);
	return value.kind == JSON_NONE ? UNKNOWN : json_value_real(value);
}

/* Since the last look; at first, since the worker's start. */
static double cpu_share(const struct map *before, struct map *seen, const struct top_row *row,
			double cpu_s, double uptime_s, uint64_t now_ns)
{
	if (cpu_s < 0)
		return UNKNOWN;
	AUTO_FREE char *key = mem_printf("%s %" PRId64, row->host, row->pid);
	const struct look *last = map_get(before, key, strlen(key));
	struct look *look = map_get(seen, key, strlen(key));
	if (!look)
		map_put(seen, key, strlen(key), look = NEW(struct look));
	*look = (struct look){ cpu_s, now_ns };
	if (last && now_ns > last->at_ns && cpu_s >= last->cpu_s)
		return (cpu_s - last->cpu_s) * (double)NS_PER_S / (double)(now_ns - last->at_ns);
	return uptime_s > 0 ? cpu_s / uptime_s : UNKNOWN;
}

static enum cell cell_of(const char *state)
{
	for (int i = 0; i < CELL_COUNT; i++)
		if (str_eq(state, cells[i].state))
			return (enum cell)i;
	return CELL_ENDED;
}

static uint64_t ns_of(double s)
{
	return s > 0 ? (uint64_t)(s * (double)NS_PER_S) : 0;
}

static void take_worker(struct top_view *view, const struct map *before, size_t job,
			struct json_value host, struct json_value worker, uint64_t now_ns)
{
	ARRAY_RESERVE(view->rows, view->row_count, view->row_cap);
	struct top_row *row = &view->rows[view->row_count++];
	AUTO_FREE char *state = text_of(worker, "state");
	struct json_value step = json_value_get(worker, "step");
	*row = (struct top_row){
		.job = job,
		.rank = job_number(worker, "rank"),
		.pid = job_number(worker, "pid"),
		.bytes = job_number(worker, "resident_bytes"),
		.step = step.kind == JSON_NONE ? UNKNOWN : job_number(worker, "step"),
		.cell = cell_of(state),
		.silent_s = MAX(real_of(worker, "silent_s"), real_of(worker, "still_s")),
		.host = text_of(host, "host"),
		.line = text_of(worker, "last_line"),
	};
	row->cpu = cpu_share(before, &view->seen, row, real_of(worker, "cpu_s"),
			     real_of(worker, "uptime_s"), now_ns);
	view->has_steps |= row->step != UNKNOWN;
	view->has_silences |= row->silent_s >= 0;
	if (row->step != UNKNOWN)
		step_progress_add(&view->jobs[job].steps,
				  &(struct step_progress_rank){
					  .rank = row->rank,
					  .step = (uint64_t)row->step,
					  .ended = row->cell == CELL_ENDED,
					  .still_ns = ns_of(real_of(worker, "still_s")),
					  .usual_ns = ns_of(real_of(worker, "usual_step_s")),
				  });
}

/* Hosts of one job have one run id. */
static size_t job_of(struct top_view *view, struct json_value host)
{
	AUTO_FREE char *run_id = text_of(host, "run_id");
	for (size_t i = 0; i < view->job_count; i++)
		if (str_eq(view->jobs[i].run_id, run_id))
			return i;
	ARRAY_RESERVE(view->jobs, view->job_count, view->job_cap);
	view->jobs[view->job_count] = (struct top_job){
		.run_id = mem_strdup(run_id),
		.state = text_of(host, "state"),
		.nodes = job_number(host, "nodes"),
		.workers = job_number(host, "world_size"),
		.restarts = job_number(host, "restarts"),
		.max_restarts = job_number(host, "max_restarts"),
		.uptime_s = real_of(host, "uptime_s"),
		.steps = STEP_PROGRESS_SUM_INIT,
	};
	return view->job_count++;
}

int top_view_take(struct top_view *view, const char *text, size_t len, uint64_t now_ns,
		  struct err *err)
{
	struct json_value root, host, worker;
	struct json_in hosts, workers;
	if (json_value_parse(text, len, &root) < 0 || root.kind != JSON_ARRAY)
		return err_set(err, EINVAL, "muster status says something else than expected");
	struct map before = view->seen;
	view->seen = MAP_INIT;
	clear(view);
	for (json_value_enter(root, &hosts); json_value_next(&hosts, &host);) {
		size_t job = job_of(view, host);
		view->jobs[job].hosts++;
		json_value_enter(json_value_get(host, "workers"), &workers);
		while (json_value_next(&workers, &worker))
			take_worker(view, &before, job, host, worker, now_ns);
	}
	forget_looks(&before);
	return 0;
}

/* ---- order ---- */

static int compare_reals(double a, double b)
{
	return (a > b) - (a < b);
}

static int compare_ranks(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	if (x->job != y->job)
		return x->job < y->job ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int compare_cpus(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int order = compare_reals(y->cpu, x->cpu);
	return order ? order : compare_ranks(a, b);
}

static int compare_memories(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int order = (y->bytes > x->bytes) - (y->bytes < x->bytes);
	return order ? order : compare_ranks(a, b);
}

static int compare_silences(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int order = compare_reals(y->silent_s, x->silent_s);
	return order ? order : compare_ranks(a, b);
}

static int compare_hosts(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int order = strcmp(x->host, y->host);
	return order ? order : compare_ranks(a, b);
}

static void sort_rows(struct top_view *view, enum top_sort sort)
{
	static int (*const compares[])(const void *, const void *) = {
		[TOP_SORT_RANK] = compare_ranks,      [TOP_SORT_CPU] = compare_cpus,
		[TOP_SORT_MEMORY] = compare_memories, [TOP_SORT_SILENT] = compare_silences,
		[TOP_SORT_HOST] = compare_hosts,
	};
	static_assert(ARRAY_LEN(compares) == TOP_SORT_COUNT, "every order needs a comparison");
	if (view->row_count > 0)
		qsort(view->rows, view->row_count, sizeof(*view->rows), compares[sort]);
}

static size_t last_first(const struct top_view *view)
{
	return view->row_count - MIN(view->row_count, view->page);
}

void top_view_key(struct top_view *view, enum top_key key)
{
	size_t step = key == TOP_KEY_PAGE_UP || key == TOP_KEY_PAGE_DOWN ? MAX(view->page, 1u) : 1;
	switch (key) {
	case TOP_KEY_UP:
	case TOP_KEY_PAGE_UP:
		view->first -= MIN(view->first, step);
		break;
	case TOP_KEY_DOWN:
	case TOP_KEY_PAGE_DOWN:
		view->first += step;
		break;
	case TOP_KEY_HOME:
		view->first = 0;
		break;
	case TOP_KEY_END:
		view->first = view->row_count;
		break;
	case TOP_KEY_NEXT_SORT:
		view->sort = (enum top_sort)((view->sort + 1) % TOP_SORT_COUNT);
		break;
	case TOP_KEY_LAST_SORT:
		view->sort = (enum top_sort)((view->sort + TOP_SORT_COUNT - 1) % TOP_SORT_COUNT);
		break;
	}
	view->first = MIN(view->first, last_first(view));
}

/* ---- drawing ---- */

struct canvas {
	struct buf *out;
	struct top_screen screen;
	int left; /* lines */
	bool begun;
};

/* The beginning of `text` that fits, in bytes. Escape sequences take no room. */
static size_t fitting(const char *text, int width)
{
	size_t at = 0;
	for (int shown = 0; text[at]; at++) {
		if (text[at] == '\033') {
			at += strcspn(text + at, "m");
			continue;
		}
		bool starts = ((unsigned char)text[at] & 0xC0) != 0x80;
		if (starts && width && shown++ == width)
			break;
	}
	return at;
}

static void put_line(struct canvas *canvas, const char *text)
{
	if (canvas->left-- <= 0)
		return;
	bool terminal = canvas->screen.terminal;
	if (terminal && canvas->begun) /* one after the last line would scroll */
		buf_append_char(canvas->out, '\n');
	canvas->begun = true;
	buf_append(canvas->out, text, fitting(text, canvas->screen.width));
	buf_append_str(canvas->out, terminal ? "\033[m\033[K" : "\n");
}

/* How far its workers have got: "  step 17", "  steps 17-19" or "  no step for 2 min 30 s". */
static void put_progress(struct buf *line, const struct step_progress_sum *steps, bool colour)
{
	char lasted[CLOCK_HUMAN_MAX], usual[CLOCK_HUMAN_MAX];
	if (!steps->count)
		return;
	buf_printf(line,
		   steps->least < steps->most ? "  steps %" PRIu64 "-%" PRIu64 : "  step %" PRIu64,
		   steps->least, steps->most);
	if (!steps->still_ns)
		return;
	clock_human(steps->still_ns, lasted);
	clock_human(steps->usual_ns, usual);
	buf_printf(line, "  %sno step for %s (usually %s)%s", colour ? "\033[1;33m" : "", lasted,
		   usual, colour ? "\033[m" : "");
}

static void put_job(struct canvas *canvas, const struct top_job *job)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	char up[CLOCK_HUMAN_MAX] = "-";
	if (job->uptime_s >= 0)
		clock_human((uint64_t)(job->uptime_s * (double)NS_PER_S), up);
	buf_printf(&line,
		   "%s  %s  up %s  hosts %" PRId64 "  workers %" PRId64 "  restarts %" PRId64
		   " of %" PRId64,
		   job->run_id, job->state, up, MAX(job->nodes, job->hosts), job->workers,
		   job->restarts, job->max_restarts);
	put_progress(&line, &job->steps, canvas->screen.colour);
	put_line(canvas, buf_str(&line));
}

/* The one of these rows that needs attention most: it does not run, or uses the least CPU. */
static const struct top_row *worst(const struct top_row *rows, size_t count)
{
	const struct top_row *found = rows;
	for (size_t i = 1; i < count; i++)
		if (rows[i].cell > found->cell ||
		    (rows[i].cell == found->cell && rows[i].cpu < found->cpu))
			found = &rows[i];
	return found;
}

static void put_cell(struct buf *line, const struct top_row *row, bool colour)
{
	char sign = cells[row->cell].sign;
	if (!sign)
		sign = row->cpu < 0 ? '?' : (char)('0' + (int)MIN(row->cpu * 10, 9.0));
	buf_printf(line, "%s%c", colour ? cells[row->cell].colour : "", sign);
}

/* The ranks of a job in their order, one character for each, or for each few of them. */
static void put_grid(struct canvas *canvas, const struct top_row *rows, size_t count)
{
	int width = canvas->screen.width ? canvas->screen.width : GRID_WIDTH;
	size_t per_line = (size_t)MAX(width - GRID_LABEL, 1);
	size_t lines = (size_t)MAX(canvas->screen.height / GRID_SHARE, 1);
	size_t per_cell =
		canvas->screen.height ? (count + per_line * lines - 1) / (per_line * lines) : 1;
	per_cell = MAX(per_cell, (size_t)1);
	for (size_t at = 0; at < count;) {
		AUTO(buf_done) struct buf line = BUF_INIT;
		buf_printf(&line, "%*" PRId64 " ", GRID_LABEL - 1, rows[at].rank);
		for (size_t i = 0; i < per_line && at < count; i++, at += per_cell)
			put_cell(&line, worst(&rows[at], MIN(per_cell, count - at)),
				 canvas->screen.colour);
		put_line(canvas, buf_str(&line));
	}
	if (per_cell > 1) {
		AUTO_FREE char *text = mem_printf("%*s each sign is the worst of %zu ranks",
						  GRID_LABEL - 1, "", per_cell);
		put_line(canvas, text);
	}
}

static void put_jobs(struct canvas *canvas, struct top_view *view)
{
	sort_rows(view, TOP_SORT_RANK);
	size_t at = 0;
	for (size_t i = 0; i < view->job_count; i++) {
		size_t from = at;
		while (at < view->row_count && view->rows[at].job == i)
			at++;
		put_job(canvas, &view->jobs[i]);
		put_grid(canvas, &view->rows[from], at - from);
	}
}

static void put_share(struct buf *line, double share)
{
	if (share < 0)
		buf_printf(line, " %6s", "-");
	else
		buf_printf(line, " %6.1f", share * 100);
}

static void put_seconds(struct buf *line, double s)
{
	char text[CLOCK_HUMAN_MAX] = "-";
	if (s >= 0)
		clock_human((uint64_t)(s * (double)NS_PER_S), text);
	buf_printf(line, " %12s", text);
}

static void put_row(struct canvas *canvas, const struct top_view *view, const struct top_row *row)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	bool colour = canvas->screen.colour && row->cell != CELL_RUNNING;
	if (view->job_count > 1)
		buf_printf(&line, "%-10.10s ", view->jobs[row->job].run_id);
	buf_printf(&line, "%6" PRId64 " %-10.10s %8" PRId64 " %s%-8s%s", row->rank, row->host,
		   row->pid, colour ? cells[row->cell].colour : "", cells[row->cell].state,
		   colour ? "\033[m" : "");
	put_share(&line, row->cpu);
	buf_printf(&line, " %7" PRId64, row->bytes >> 20);
	if (view->has_silences)
		put_seconds(&line, row->silent_s);
	if (view->has_steps && row->step != UNKNOWN)
		buf_printf(&line, " %9" PRId64, row->step);
	else if (view->has_steps)
		buf_printf(&line, " %9s", "-");
	buf_printf(&line, "  %s", row->line);
	put_line(canvas, buf_str(&line));
}

static void put_titles(struct canvas *canvas, const struct top_view *view)
{
	AUTO_FREE char *text =
		mem_printf("%s%s%6s %-10s %8s %-8s %6s %7s%s%s  last line",
			   canvas->screen.colour ? "\033[7m" : "",
			   view->job_count > 1 ? "job        " : "", "rank", "host", "pid", "state",
			   "%cpu", "MiB", view->has_silences ? "       silent" : "",
			   view->has_steps ? "      step" : "");
	put_line(canvas, text);
}

static void put_keys(struct canvas *canvas, const struct top_view *view)
{
	size_t last = MIN(view->first + view->page, view->row_count);
	AUTO_FREE char *text =
		mem_printf("%zu-%zu of %zu by %s   q quit   up, down scroll   left, right, s sort",
			   MIN(view->first + 1, last), last, view->row_count,
			   top_sorts[view->sort]);
	put_line(canvas, text);
}

void top_view_draw(struct top_view *view, struct top_screen screen, struct buf *out)
{
	struct canvas canvas = { .out = out,
				 .screen = screen,
				 .left = screen.height ? screen.height : INT32_MAX };
	if (screen.terminal)
		buf_append_str(out, "\033[H");
	put_jobs(&canvas, view);
	if (view->job_count == 0)
		put_line(&canvas, "no job of this user is running here");
	int room = canvas.left - LINES_AROUND;
	view->page = screen.height ? (size_t)MAX(room, 1) : view->row_count;
	view->first = MIN(view->first, last_first(view));
	put_titles(&canvas, view);
	sort_rows(view, view->sort);
	for (size_t i = view->first; i < view->row_count && i < view->first + view->page; i++)
		put_row(&canvas, view, &view->rows[i]);
	if (screen.terminal) {
		put_keys(&canvas, view);
		put_line(&canvas, view->notice);
		buf_append_str(out, "\033[J");
	}
}
