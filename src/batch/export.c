#include "batch/export.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/markup.h"
#include "core/batch/stats.h"
#include "proto/json_out.h"

#define SECONDS(ns) ((ns) / 1e9)

static double mean_seconds(const struct export_entry *entry, enum metric metric)
{
	AUTO_FREE double *values = NEW_ARRAY(double, entry->order->run_count + 1);
	size_t n = samples_values(entry->order, metric, &entry->filter, values, NULL);
	return n ? SECONDS(stats_mean(values, n)) : NAN;
}

/* Suspect runs are left out, but not if there are no others. */
static void entry_read(struct export_entry *entry)
{
	struct sample_filter all = { entry->filter.variant, true };
	entry->n = samples_values(entry->order, METRIC_WALL, &all, entry->times, NULL);
	size_t trusted =
		samples_values(entry->order, METRIC_WALL, &entry->filter, entry->times, NULL);
	entry->all_suspect = trusted == 0 && entry->n > 0;
	entry->left_out = entry->all_suspect ? 0 : entry->n - trusted;
	if (entry->all_suspect)
		entry->filter = all;
	entry->n = samples_values(entry->order, METRIC_WALL, &entry->filter, entry->times, NULL);
}

/* False without one measured run. */
static bool entry_fill(struct export_entry *entry)
{
	size_t room = entry->order->run_count + 1;
	entry->times = NEW_ARRAY(double, room);
	entry_read(entry);
	if (entry->n == 0) {
		free(entry->times);
		return false;
	}
	AUTO_FREE double *sorted = NEW_ARRAY(double, room);
	for (size_t i = 0; i < entry->n; i++)
		sorted[i] = entry->times[i] = SECONDS(entry->times[i]);
	stats_sort(sorted, entry->n);
	entry->mean = stats_mean(sorted, entry->n);
	entry->stddev = stats_stddev(sorted, entry->n);
	entry->median = stats_median(sorted, entry->n);
	entry->min = sorted[0];
	entry->max = sorted[entry->n - 1];
	entry->user = mean_seconds(entry, METRIC_USER);
	entry->system = mean_seconds(entry, METRIC_SYS);
	return true;
}

void export_each(const struct export_source *source, export_fn *visit, void *arg)
{
	for (size_t p = 0; p < source->count; p++) {
		const struct export_part *part = &source->parts[p];
		for (size_t i = 0; i < part->samples->order_count; i++) {
			struct export_entry entry = { .part = part,
						      .order = part->samples->orders[i],
						      .filter = { part->variant,
								  source->suspects } };
			if (!entry_fill(&entry))
				continue;
			visit(&entry, arg);
			free(entry.times);
		}
	}
}

/* The name that the user gave, or the command. */
static const char *order_name(const struct sample_order *order, char variant)
{
	const char *command = samples_command(order, variant);
	return order->named || !*command ? order->id : command;
}

void export_name(const struct export_entry *entry, struct buf *out)
{
	buf_append_str(out, order_name(entry->order, entry->part->variant));
	if (entry->part->label)
		buf_printf(out, " (%s)", entry->part->label);
}

/* In tables, where there is no other place for the word. */
static void append_name(struct buf *out, const struct export_entry *entry)
{
	export_name(entry, out);
	if (entry->all_suspect)
		buf_append_str(out, " (suspect)");
}

/* ---- JSON ---- */

static void put_runs(struct json_out *out, const struct export_entry *entry)
{
	json_out_open(out, "times", '[');
	for (size_t i = 0; i < entry->n; i++)
		json_out_real(out, NULL, entry->times[i]);
	json_out_close(out, ']');
	AUTO_FREE double *sizes = NEW_ARRAY(double, entry->order->run_count + 1);
	/* That of the whole tree where every run has it: never a mixture. */
	size_t n = samples_values(entry->order, METRIC_MEMORY, &entry->filter, sizes, NULL);
	if (n < entry->n)
		n = samples_values(entry->order, METRIC_MAXRSS, &entry->filter, sizes, NULL);
	json_out_open(out, "memory_usage_byte", '[');
	for (size_t i = 0; i < n; i++)
		json_out_int(out, NULL, (int64_t)(sizes[i] * 1024));
	json_out_close(out, ']');
	json_out_open(out, "exit_codes", '[');
	for (size_t i = 0; i < entry->order->run_count; i++)
		if (samples_counts(&entry->order->runs[i], METRIC_WALL, &entry->filter))
			json_out_int(out, NULL, entry->order->runs[i].exit);
	json_out_close(out, ']');
}

/* Only the arguments, if there are any: hyperfine's plot over a parameter takes exactly one. */
static void put_parameters(struct json_out *out, const struct export_entry *entry)
{
	const struct strv *args = &entry->order->args;
	json_out_open(out, "parameters", '{');
	for (size_t i = 0; i < args->count; i++) {
		const struct strv *names = &entry->order->arg_names;
		char number[24];
		snprintf(number, sizeof(number), "%zu", i + 1);
		bool named = i < names->count && *names->items[i];
		json_out_text(out, named ? names->items[i] : number, args->items[i]);
	}
	if (args->count == 0) {
		json_out_members(out, &entry->order->labels);
		json_out_text(out, "id", entry->order->id);
		json_out_text_if(out, "variant", (char[]){ entry->part->variant, '\0' });
	}
	json_out_close(out, '}');
}

static void put_json(const struct export_entry *entry, void *arg)
{
	struct json_out *out = arg;
	AUTO(buf_done) struct buf name = BUF_INIT;
	export_name(entry, &name);
	json_out_open(out, NULL, '{');
	json_out_text(out, "command", buf_str(&name));
	json_out_real(out, "mean", entry->mean);
	json_out_real(out, "stddev", entry->n > 1 ? entry->stddev : NAN);
	json_out_real(out, "median", entry->median);
	json_out_real(out, "user", entry->user);
	json_out_real(out, "system", entry->system);
	json_out_real(out, "min", entry->min);
	json_out_real(out, "max", entry->max);
	put_runs(out, entry);
	put_parameters(out, entry);
	if (entry->all_suspect)
		json_out_bool(out, "suspect", true);
	if (entry->left_out)
		json_out_int(out, "suspect_left_out", (int64_t)entry->left_out);
	json_out_close(out, '}');
}

/* As hyperfine writes it, a line for each value of an entry: results[] with command, mean, stddev,
 * median, user, system, min, max (seconds), times[], memory_usage_byte[], exit_codes[], parameters.
 */
static void make_json(const struct export_source *source, struct buf *out)
{
	struct json_out json = JSON_OUT(out, .indent = 2, .flat = 4);
	json_out_open(&json, NULL, '{');
	json_out_open(&json, "results", '[');
	export_each(source, put_json, &json);
	json_out_close(&json, ']');
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}

/* ---- CSV ---- */

static void put_csv(const struct export_entry *entry, void *arg)
{
	struct buf *out = arg;
	AUTO(buf_done) struct buf name = BUF_INIT;
	append_name(&name, entry);
	markup_csv(out, buf_str(&name));
	const double fields[] = { entry->mean,	 entry->stddev, entry->median, entry->user,
				  entry->system, entry->min,	entry->max };
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		buf_append_char(out, ',');
		if (isfinite(fields[i]))
			buf_printf(out, "%.17g", fields[i]);
	}
	buf_append_char(out, '\n');
}

/* hyperfine's CSV: command,mean,stddev,median,user,system,min,max. */
static void make_csv(const struct export_source *source, struct buf *out)
{
	buf_append_str(out, "command,mean,stddev,median,user,system,min,max\n");
	export_each(source, put_csv, out);
}

/* ---- Markdown ---- */

struct markdown_state {
	struct buf *out;
	double fastest, scale;
};

static void find_fastest(const struct export_entry *entry, void *arg)
{
	struct markdown_state *state = arg;
	if (!(state->fastest <= entry->mean))
		state->fastest = entry->mean;
}

static void put_markdown(const struct export_entry *entry, void *arg)
{
	struct markdown_state *state = arg;
	struct buf *out = state->out;
	AUTO(buf_done) struct buf name = BUF_INIT;
	append_name(&name, entry);
	buf_append_str(out, "| ");
	markup_markdown(out, buf_str(&name));
	buf_printf(out, " | %.1f ± %.1f | %.1f | %.1f | %.2f |\n", entry->mean * state->scale,
		   entry->stddev * state->scale, entry->min * state->scale,
		   entry->max * state->scale, entry->mean / state->fastest);
}

/* hyperfine's Markdown table: mean, min, max and how many times the fastest. */
static void make_markdown(const struct export_source *source, struct buf *out)
{
	struct markdown_state state = { .out = out, .fastest = NAN };
	export_each(source, find_fastest, &state);
	bool seconds = state.fastest >= 1;
	state.scale = seconds ? 1 : 1000;
	const char *unit = seconds ? "s" : "ms";
	buf_printf(out,
		   "| Command | Mean [%s] | Min [%s] | Max [%s] | Relative |\n"
		   "|:---|---:|---:|---:|---:|\n",
		   unit, unit, unit);
	export_each(source, put_markdown, &state);
}

/* ---- JUnit ---- */

static void put_failure(struct buf *out, const struct export_part *part,
			const struct sample_order *order)
{
	buf_printf(out, "    <failure type=\"%s\" message=\"%zu failed attempt%s, the last: %s\">",
		   order->last_failed, order->failed, order->failed == 1 ? "" : "s",
		   order->last_end ? order->last_end : order->last_failed);
	markup_escape(out, samples_command(order, part->variant));
	buf_append_str(out, "</failure>\n");
	if (order->last_tail) {
		buf_append_str(out, "    <system-err>");
		markup_escape(out, order->last_tail);
		buf_append_str(out, "</system-err>\n");
	}
}

static void put_case(struct buf *out, const struct export_part *part,
		     const struct sample_order *order)
{
	double seconds = 0;
	for (size_t i = 0; i < order->run_count; i++)
		if (!isnan(order->runs[i].values[METRIC_WALL]))
			seconds += SECONDS(order->runs[i].values[METRIC_WALL]);
	buf_append_str(out, "  <testcase classname=\"");
	markup_escape(out, part->label ? part->label : "batch");
	buf_append_str(out, "\" name=\"");
	bool has_id = !str_starts(order->hash, order->id);
	markup_escape(out, has_id ? order->id : order_name(order, part->variant));
	buf_printf(out, "\" time=\"%.6f\"", seconds);
	bool failed = order->run_count == 0 && order->failed;
	buf_append_str(out, order->node || failed ? ">\n" : "/>\n");
	if (order->node) {
		buf_append_str(out, "    <properties><property name=\"host\" value=\"");
		markup_escape(out, order->node);
		buf_append_str(out, "\"/></properties>\n");
	}
	if (failed)
		put_failure(out, part, order);
	if (order->node || failed)
		buf_append_str(out, "  </testcase>\n");
}

/* JUnit XML: an order is a test case, which fails when no attempt succeeded. */
static void make_junit(const struct export_source *source, struct buf *out)
{
	size_t tests = 0, failures = 0;
	for (size_t p = 0; p < source->count; p++) {
		const struct samples *samples = source->parts[p].samples;
		tests += samples->order_count;
		for (size_t i = 0; i < samples->order_count; i++)
			failures +=
				samples->orders[i]->run_count == 0 && samples->orders[i]->failed;
	}
	buf_printf(
		out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"muster batch\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n",
		tests, failures);
	for (size_t p = 0; p < source->count; p++)
		for (size_t i = 0; i < source->parts[p].samples->order_count; i++)
			put_case(out, &source->parts[p], source->parts[p].samples->orders[i]);
	buf_append_str(out, "</testsuite>\n");
}

/* ---- files ---- */

int export_file(const char *path, const struct buf *text, struct err *err)
{
	if (str_eq(path, "-")) {
		int r = fd_write_all(STDOUT_FILENO, buf_data(text), buf_len(text));
		return r < 0 ? err_set(err, -r, "write standard output: %m") : 0;
	}
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(err, errno, "%s: %m", path);
	int r = fd_write_all(fd, buf_data(text), buf_len(text));
	return r < 0 ? err_set(err, -r, "write %s: %m", path) : 0;
}

bool export_wanted(const struct export_paths *paths)
{
	return paths->json || paths->csv || paths->markdown || paths->junit || paths->google ||
	       paths->pytest;
}

int export_write(const struct export_paths *paths, const struct export_source *source,
		 struct err *err)
{
	const struct {
		const char *path;
		void (*make)(const struct export_source *source, struct buf *out);
	} exports[] = {
		{ paths->json, make_json },	    { paths->csv, make_csv },
		{ paths->markdown, make_markdown }, { paths->junit, make_junit },
		{ paths->google, export_google },   { paths->pytest, export_pytest },
	};
	for (size_t i = 0; i < ARRAY_LEN(exports); i++) {
		if (!exports[i].path)
			continue;
		AUTO(buf_done) struct buf text = BUF_INIT;
		exports[i].make(source, &text);
		int r = export_file(exports[i].path, &text, err);
		if (r < 0)
			return r;
	}
	return 0;
}
