/* The JSON of Google Benchmark and of pytest-benchmark, for what reads those: their own commands
 * that compare, and services that keep histories. */
#include <math.h>

#include "base/mem.h"
#include "batch/export.h"
#include "core/batch/stats.h"
#include "proto/json_out.h"

#define NS(seconds) ((seconds)*1e9)

struct state {
	struct json_out json;
	int64_t family; /* orders so far */
};

/* ---- Google Benchmark ---- */

/* A repetition of one iteration. Its readers want both times: one stands for the other. */
static void put_repetition(const struct export_entry *entry, struct state *state, const char *name,
			   size_t i, double cpu_ns)
{
	struct json_out *out = &state->json;
	json_out_open(out, NULL, '{');
	json_out_text(out, "name", name);
	json_out_int(out, "family_index", state->family);
	json_out_int(out, "per_family_instance_index", 0);
	json_out_text(out, "run_name", name);
	json_out_text(out, "run_type", "iteration");
	json_out_int(out, "repetitions", (int64_t)entry->n);
	json_out_int(out, "repetition_index", (int64_t)i);
	json_out_int(out, "threads", 1);
	json_out_int(out, "iterations", 1);
	json_out_real(out, "real_time", NS(entry->times[i]));
	json_out_real(out, "cpu_time", isfinite(cpu_ns) ? cpu_ns : NS(entry->times[i]));
	json_out_text(out, "time_unit", "ns");
	if (entry->all_suspect)
		json_out_text(out, "label", "suspect");
	json_out_close(out, '}');
}

static void put_google(const struct export_entry *entry, void *arg)
{
	struct state *state = arg;
	AUTO(buf_done) struct buf name = BUF_INIT;
	AUTO_FREE double *cpu = NEW_ARRAY(double, entry->order->run_count + 1);
	/* Runs have both times or, in results of other tools, none has the second. */
	size_t known = samples_values(entry->order, METRIC_CPU, &entry->filter, cpu, NULL);
	export_name(entry, &name);
	for (size_t i = 0; i < entry->n; i++)
		put_repetition(entry, state, buf_str(&name), i, known == entry->n ? cpu[i] : NAN);
	state->family++;
}

void export_google(const struct export_source *source, struct buf *out)
{
	struct state state = { .json = JSON_OUT(out, .indent = 2) };
	const struct samples *samples = source->parts[0].samples;
	json_out_open(&state.json, NULL, '{');
	json_out_open(&state.json, "context", '{');
	json_out_text(&state.json, "date", samples->started);
	json_out_text(&state.json, "host_name", samples->host);
	json_out_text(&state.json, "executable", "muster batch");
	json_out_int(&state.json, "json_schema_version", 1);
	json_out_close(&state.json, '}');
	json_out_open(&state.json, "benchmarks", '[');
	export_each(source, put_google, &state);
	json_out_close(&state.json, ']');
	json_out_close(&state.json, '}');
	buf_append_char(out, '\n');
}

/* ---- pytest-benchmark ---- */

/* Quartiles as there, of Moore and McCabe: the medians of the two halves, without the middle. */
struct quartiles {
	double first, third;
	double low, high; /* the farthest values within 1.5 times their distance */
	int64_t outside;  /* values beyond */
};

static struct quartiles quartiles_of(const double *sorted, size_t n)
{
	size_t half = n / 2;
	struct quartiles q = { sorted[0], sorted[0], sorted[n - 1], sorted[0], 0 };
	if (half) {
		q.first = stats_median(sorted, half);
		q.third = stats_median(sorted + n - half, half);
	}
	double reach = 1.5 * (q.third - q.first);
	for (size_t i = 0; i < n; i++) {
		bool inside = sorted[i] >= q.first - reach && sorted[i] <= q.third + reach;
		q.outside += !inside;
		q.low = inside ? MIN(q.low, sorted[i]) : q.low;
		q.high = inside ? MAX(q.high, sorted[i]) : q.high;
	}
	return q;
}

static void put_stats(struct json_out *out, const struct export_entry *entry)
{
	AUTO_FREE double *sorted = NEW_ARRAY(double, entry->n);
	int64_t far = 0;
	double total = 0, spread = entry->n > 1 ? entry->stddev : 0;
	for (size_t i = 0; i < entry->n; i++) {
		sorted[i] = entry->times[i];
		total += entry->times[i];
		far += fabs(entry->times[i] - entry->mean) > spread;
	}
	stats_sort(sorted, entry->n);
	struct quartiles q = quartiles_of(sorted, entry->n);
	AUTO_FREE char *outliers = mem_printf("%lld;%lld", (long long)far, (long long)q.outside);
	json_out_open(out, "stats", '{');
	json_out_real(out, "min", entry->min);
	json_out_real(out, "max", entry->max);
	json_out_real(out, "mean", entry->mean);
	json_out_real(out, "stddev", spread);
	json_out_int(out, "rounds", (int64_t)entry->n);
	json_out_real(out, "median", entry->median);
	json_out_real(out, "iqr", q.third - q.first);
	json_out_real(out, "q1", q.first);
	json_out_real(out, "q3", q.third);
	json_out_int(out, "iqr_outliers", q.outside);
	json_out_int(out, "stddev_outliers", far);
	json_out_text(out, "outliers", outliers);
	json_out_real(out, "ld15iqr", q.low);
	json_out_real(out, "hd15iqr", q.high);
	json_out_real(out, "ops", 1 / entry->mean);
	json_out_real(out, "total", total);
	json_out_open(out, "data", '[');
	for (size_t i = 0; i < entry->n; i++)
		json_out_real(out, NULL, entry->times[i]);
	json_out_close(out, ']');
	json_out_int(out, "iterations", 1);
	json_out_close(out, '}');
}

static void put_pytest(const struct export_entry *entry, void *arg)
{
	struct json_out *out = arg;
	AUTO(buf_done) struct buf name = BUF_INIT;
	export_name(entry, &name);
	json_out_open(out, NULL, '{');
	json_out_null(out, "group");
	json_out_text(out, "name", buf_str(&name));
	json_out_text(out, "fullname", buf_str(&name));
	json_out_null(out, "params");
	json_out_null(out, "param");
	json_out_open(out, "extra_info", '{');
	if (entry->all_suspect)
		json_out_bool(out, "suspect", true);
	json_out_close(out, '}');
	json_out_open(out, "options", '{');
	json_out_text(out, "timer", "muster batch");
	json_out_close(out, '}');
	put_stats(out, entry);
	json_out_close(out, '}');
}

void export_pytest(const struct export_source *source, struct buf *out)
{
	struct json_out json = JSON_OUT(out, .indent = 1);
	const struct samples *samples = source->parts[0].samples;
	json_out_open(&json, NULL, '{');
	json_out_open(&json, "machine_info", '{');
	json_out_text(&json, "node", samples->host);
	json_out_close(&json, '}');
	json_out_open(&json, "commit_info", '{');
	json_out_text(&json, "id", "unversioned");
	json_out_null(&json, "time");
	json_out_bool(&json, "dirty", false);
	json_out_text(&json, "branch", "(unknown)");
	json_out_close(&json, '}');
	json_out_open(&json, "benchmarks", '[');
	export_each(source, put_pytest, &json);
	json_out_close(&json, ']');
	json_out_text(&json, "datetime", samples->started);
	json_out_text(&json, "version", "5.0.0"); /* of the format */
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}
