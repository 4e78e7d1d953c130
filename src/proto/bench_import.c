#include "proto/bench_import.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/batch/stats.h"
#include "proto/json_in.h"

#define NS 1e9
#define NUMBER_MAX 9e18 /* fits the integers of a result */

/* ------------------------------------------------------------ members of an object */

enum field_kind {
	FIELD_TEXT, /* struct buf */
	FIELD_REAL, /* double */
	FIELD_MARK, /* struct json_in that stands before the value; start NULL: absent */
};

struct field {
	const char *key;
	enum field_kind kind;
	void *into;
};

static int read_field(struct json_in *in, const struct field *field)
{
	enum json_kind kind = json_in_peek(in);
	if (field->kind == FIELD_TEXT && kind == JSON_STRING)
		return json_in_string(in, field->into);
	if (field->kind == FIELD_REAL && kind == JSON_NUMBER)
		return json_in_double(in, field->into);
	if (field->kind == FIELD_MARK)
		*(struct json_in *)field->into = *in;
	return json_in_skip(in);
}

/* Reads the members that are named, skips the others, and those that are of another kind. */
static int read_fields(struct json_in *in, const struct field *fields, size_t n)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &key)) > 0) {
		size_t i = 0;
		while (i < n && !str_eq(fields[i].key, buf_str(&key)))
			i++;
		r = i < n ? read_field(in, &fields[i]) : json_in_skip(in);
	}
	return r;
}

#define READ_FIELDS(in, ...) \
	read_fields((in), (const struct field[]){ __VA_ARGS__ }, \
		    ARRAY_LEN(((const struct field[]){ __VA_ARGS__ })))

/* The numbers of an array; without other values. */
struct numbers {
	double *items;
	size_t count, cap;
};

static void numbers_done(struct numbers *numbers)
{
	free(numbers->items);
}

static int read_numbers(struct json_in in, struct numbers *ret_numbers)
{
	ret_numbers->count = 0;
	if (!in.start || json_in_peek(&in) != JSON_ARRAY)
		return 0;
	int r = json_in_enter(&in, '[');
	while (r >= 0 && (r = json_in_element(&in)) > 0) {
		double number = NAN;
		r = json_in_peek(&in) == JSON_NUMBER ? json_in_double(&in, &number)
						     : json_in_skip(&in);
		if (r < 0 || !isfinite(number))
			continue;
		ARRAY_RESERVE(ret_numbers->items, ret_numbers->count, ret_numbers->cap);
		ret_numbers->items[ret_numbers->count++] = number;
	}
	return r;
}

/* ----------------------------------------------------------------------- values */

struct import {
	bench_import_fn *on_value;
	void *arg;
	struct bench_version version;
	size_t values;
	struct err *err;
};

static void set_scaled(struct result *result, enum result_value value, double number, double scale)
{
	double scaled = round(number * scale);
	if (scaled >= 0 && scaled < NUMBER_MAX)
		result_set(result, value, (int64_t)scaled);
}

static int give(struct import *import, const char *id, struct result *result)
{
	AUTO_FREE char *copy = mem_strdup(id);
	result->id = copy;
	result->attempt = 1;
	result->reason = REASON_OK;
	import->values++;
	return import->on_value(import->arg, &import->version, result, import->err);
}

/* Seconds in a unit of time; 0: not a unit. */
static double seconds_in(const char *unit)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {
		{ "ns", 1e-9 },		 { "us", 1e-6 },   { "µs", 1e-6 },
		{ "ms", 1e-3 },		 { "s", 1 },	   { "sec", 1 },
		{ "min", 60 },		 { "seconds", 1 }, { "secs", 1 },
		{ "nanoseconds", 1e-9 },
	};
	size_t len = strcspn(unit, "/"); /* "ns/iter", "ns/op" */
	if (unit[len] && !str_starts(unit + len, "/iter") && !str_starts(unit + len, "/op"))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strlen(units[i].name) == len && memcmp(units[i].name, unit, len) == 0)
			return units[i].seconds;
	return 0;
}

/* One value with the unit that the tool gave it: a time, or whatever it is. */
static int give_measure(struct import *import, const char *id, double value, const char *unit,
			bool more_is_better)
{
	struct result result = RESULT_INIT;
	double seconds = seconds_in(unit);
	AUTO_FREE char *copy = mem_strdup(unit);
	if (!isfinite(value))
		return 0;
	if (seconds > 0) {
		set_scaled(&result, RESULT_WALL_NS, value, seconds * NS);
	} else if (str_eq(unit, "bytes")) {
		set_scaled(&result, RESULT_MAXRSS_KB, value, 1.0 / 1024);
	} else {
		result.has_number = true;
		result.number = value;
		result.unit = copy;
		result.more_is_better = more_is_better;
	}
	return give(import, id, &result);
}

/* Many values in seconds, as runs of `command` (NULL: not known); too many: their median. */
static int give_seconds(struct import *import, const char *id, char *command,
			struct numbers *seconds, const struct numbers *bytes)
{
	if (seconds->count > BENCH_IMPORT_RUNS) {
		stats_sort(seconds->items, seconds->count);
		seconds->items[0] = stats_median(seconds->items, seconds->count);
		seconds->count = 1;
	}
	int r = 0;
	for (size_t i = 0; i < seconds->count && r >= 0; i++) {
		struct result result = { .block = -1, .run = (int)i, .shell = command };
		set_scaled(&result, RESULT_WALL_NS, seconds->items[i], NS);
		if (bytes && i < bytes->count)
			set_scaled(&result, RESULT_MAXRSS_KB, bytes->items[i], 1.0 / 1024);
		r = give(import, id, &result);
	}
	return r;
}

/* Calls `read` for every object of an array. */
typedef int entry_fn(struct import *import, struct json_in *in);

static int each_entry(struct import *import, struct json_in in, entry_fn *read)
{
	int r = json_in_enter(&in, '[');
	while (r >= 0 && (r = json_in_element(&in)) > 0)
		r = read(import, &in);
	return r;
}

/* -------------------------------------------------------------------- hyperfine */

static int read_hyperfine(struct import *import, struct json_in *in)
{
	AUTO(buf_done) struct buf command = BUF_INIT;
	AUTO(numbers_done) struct numbers times = { 0 }, sizes = { 0 };
	struct json_in times_at = { 0 }, sizes_at = { 0 };
	double mean = NAN;
	int r = READ_FIELDS(in, { "command", FIELD_TEXT, &command }, { "mean", FIELD_REAL, &mean },
			    { "times", FIELD_MARK, &times_at },
			    { "memory_usage_byte", FIELD_MARK, &sizes_at });
	if (r >= 0)
		r = read_numbers(times_at, &times);
	if (r >= 0)
		r = read_numbers(sizes_at, &sizes);
	if (r < 0)
		return r;
	if (times.count == 0) /* exported by a version that keeps no times */
		return give_measure(import, buf_str(&command), mean, "s", false);
	AUTO_FREE char *line = mem_strdup(buf_str(&command));
	return give_seconds(import, line, line, &times, &sizes);
}

/* ------------------------------------------------------------- Google Benchmark */

static int read_gbench_entry(struct import *import, struct json_in *in, bool aggregates)
{
	AUTO(buf_done)
	struct buf name = BUF_INIT, type = BUF_INIT, unit = BUF_INIT, which = BUF_INIT;
	double real = NAN, cpu = NAN, items = NAN, bytes = NAN;
	int r = READ_FIELDS(in, { "run_name", FIELD_TEXT, &name },
			    { "run_type", FIELD_TEXT, &type },
			    { "aggregate_name", FIELD_TEXT, &which },
			    { "time_unit", FIELD_TEXT, &unit }, { "real_time", FIELD_REAL, &real },
			    { "cpu_time", FIELD_REAL, &cpu },
			    { "items_per_second", FIELD_REAL, &items },
			    { "bytes_per_second", FIELD_REAL, &bytes });
	bool aggregate = str_eq(buf_str(&type), "aggregate");
	bool wanted = aggregates ? aggregate && str_eq(buf_str(&which), "median") : !aggregate;
	if (r < 0 || !wanted)
		return r;
	double seconds = seconds_in(buf_len(&unit) ? buf_str(&unit) : "ns");
	struct result result = RESULT_INIT;
	if (!isnan(real))
		set_scaled(&result, RESULT_WALL_NS, real, seconds * NS);
	if (!isnan(cpu))
		set_scaled(&result, RESULT_USER_NS, cpu, seconds * NS);
	const char *rate = !isnan(items) ? "items/s" : "bytes/s";
	AUTO_FREE char *copy = mem_strdup(rate);
	result.number = !isnan(items) ? items : bytes;
	result.has_number = isfinite(result.number);
	result.unit = copy;
	result.more_is_better = true;
	return give(import, buf_str(&name), &result);
}

static int read_gbench(struct import *import, struct json_in *in)
{
	return read_gbench_entry(import, in, false);
}

static int read_gbench_median(struct import *import, struct json_in *in)
{
	return read_gbench_entry(import, in, true);
}

/* Where only aggregates were kept, the medians. */
static int import_gbench(struct import *import, struct json_in benchmarks)
{
	int r = each_entry(import, benchmarks, read_gbench);
	if (r >= 0 && import->values == 0)
		r = each_entry(import, benchmarks, read_gbench_median);
	return r;
}

/* ------------------------------------------------------------- pytest-benchmark */

static int read_pytest(struct import *import, struct json_in *in)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	AUTO(numbers_done) struct numbers data = { 0 };
	struct json_in stats_at = { 0 }, data_at = { 0 };
	double median = NAN;
	int r = READ_FIELDS(in, { "fullname", FIELD_TEXT, &name },
			    { "stats", FIELD_MARK, &stats_at });
	if (r >= 0 && stats_at.start)
		r = READ_FIELDS(&stats_at, { "median", FIELD_REAL, &median },
				{ "data", FIELD_MARK, &data_at });
	if (r >= 0)
		r = read_numbers(data_at, &data);
	if (r < 0)
		return r;
	return data.count ? give_seconds(import, buf_str(&name), NULL, &data, NULL)
			  : give_measure(import, buf_str(&name), median, "s", false);
}

/* ISO 8601 as tools write it ("2026-11-16T12:53:43+00:00", "...Z", with or without fractions), in
 * seconds since the epoch; 0: it is something else. */
static int64_t iso_seconds(const char *text)
{
	int year, month, day, hour, minute, second, used = 0, zone_hours = 0, zone_minutes = 0;
	char sign = '+';
	if (sscanf(text, "%4d-%2d-%2d%*[T ]%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
		   &second, &used) < 6 ||
	    month < 1 || month > 12)
		return 0;
	const char *zone = text + used;
	if (*zone == '.')
		zone += 1 + strspn(zone + 1, "0123456789");
	if (*zone == '+' || *zone == '-')
		sscanf(zone, "%c%2d:%2d", &sign, &zone_hours, &zone_minutes);
	/* Days by the civil calendar, from a year that begins in March. */
	int64_t y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
	int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719469;
	int64_t offset = (int64_t)(zone_hours * 60 + zone_minutes) * 60;
	return days * 86400 + hour * 3600 + minute * 60 + second - (sign == '-' ? -offset : offset);
}

/* -------------------------------------------------------------------------- asv */

struct asv {
	size_t result_column, params_column;
};

static int read_columns(struct json_in in, struct asv *asv)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	int r = json_in_enter(&in, '[');
	for (size_t i = 0; r >= 0 && (r = json_in_element(&in)) > 0; i++) {
		r = json_in_peek(&in) == JSON_STRING ? json_in_string(&in, &name)
						     : json_in_skip(&in);
		if (r >= 0 && str_eq(buf_str(&name), "result"))
			asv->result_column = i;
		if (r >= 0 && str_eq(buf_str(&name), "params"))
			asv->params_column = i;
	}
	return r;
}

/* The unit of a benchmark follows from how its function is called. */
static const char *asv_unit(const char *name)
{
	const char *dot = strrchr(name, '.'), *function = dot ? dot + 1 : name;
	if (str_starts(function, "mem_") || str_starts(function, "peakmem_"))
		return "bytes";
	return str_starts(function, "track_") ? "" : "s";
}

/* Appends "(a, b)" for combination `index` of the lists of parameters, the last of which runs
 * fastest. */
static int append_params(struct json_in in, size_t index, struct buf *name)
{
	struct {
		struct json_in at;
		size_t count;
	} lists[16];
	size_t n = 0;
	if (!in.start || json_in_peek(&in) != JSON_ARRAY)
		return 0;
	int r = json_in_enter(&in, '[');
	while (r >= 0 && (r = json_in_element(&in)) > 0) {
		if (n == ARRAY_LEN(lists) || json_in_peek(&in) != JSON_ARRAY)
			return -EINVAL;
		lists[n].at = in;
		lists[n].count = 0;
		r = json_in_enter(&in, '[');
		while (r >= 0 && (r = json_in_element(&in)) > 0) {
			lists[n].count++;
			r = json_in_skip(&in);
		}
		n++;
	}
	size_t weight = 1;
	for (size_t i = 0; i < n; i++)
		weight *= MAX(lists[i].count, (size_t)1);
	for (size_t i = 0; i < n && r >= 0; i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		weight /= MAX(lists[i].count, (size_t)1);
		size_t wanted = weight && lists[i].count ? index / weight % lists[i].count : 0;
		r = json_in_enter(&lists[i].at, '[');
		for (size_t k = 0; r >= 0 && (r = json_in_element(&lists[i].at)) > 0; k++)
			r = k == wanted && json_in_peek(&lists[i].at) == JSON_STRING
				    ? json_in_string(&lists[i].at, &text)
				    : json_in_skip(&lists[i].at);
		buf_printf(name, "%s%s%s", i ? ", " : "(", buf_str(&text), i + 1 == n ? ")" : "");
	}
	return r;
}

static int give_asv(struct import *import, const char *bench, struct json_in result,
		    struct json_in params)
{
	int r = 0;
	double value = NAN;
	if (json_in_peek(&result) == JSON_NUMBER) {
		r = json_in_double(&result, &value);
		return r < 0 ? r : give_measure(import, bench, value, asv_unit(bench), false);
	}
	if (json_in_peek(&result) != JSON_ARRAY)
		return 0; /* null: it failed */
	r = json_in_enter(&result, '[');
	for (size_t i = 0; r >= 0 && (r = json_in_element(&result)) > 0; i++) {
		AUTO(buf_done) struct buf name = BUF_INIT;
		if (json_in_peek(&result) != JSON_NUMBER) {
			r = json_in_skip(&result);
			continue;
		}
		buf_append_str(&name, bench);
		r = json_in_double(&result, &value);
		if (r >= 0)
			r = append_params(params, i, &name);
		if (r >= 0)
			r = give_measure(import, buf_str(&name), value, asv_unit(bench), false);
	}
	return r;
}

static int read_asv(struct import *import, const struct asv *asv, struct json_in in)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	int r = json_in_enter(&in, '{');
	while (r >= 0 && (r = json_in_member(&in, &name)) > 0) {
		struct json_in result = { 0 }, params = { 0 };
		if (json_in_peek(&in) != JSON_ARRAY) {
			r = json_in_skip(&in);
			continue;
		}
		r = json_in_enter(&in, '[');
		for (size_t i = 0; r >= 0 && (r = json_in_element(&in)) > 0; i++) {
			*(i == asv->result_column   ? &result
			  : i == asv->params_column ? &params
						    : &(struct json_in){ 0 }) = in;
			r = json_in_skip(&in);
		}
		if (r >= 0 && result.start)
			r = give_asv(import, buf_str(&name), result, params);
	}
	return r;
}

/* ------------------------------------------------------- github-action-benchmark */

static bool tool_counts_up(const char *tool)
{
	static const char *const tools[] = { "customBiggerIsBetter", "benchmarkjs", "pytest" };
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (str_eq(tools[i], tool))
			return true;
	return false;
}

static int read_bench(struct import *import, struct json_in *in, bool more_is_better)
{
	AUTO(buf_done) struct buf name = BUF_INIT, unit = BUF_INIT;
	double value = NAN;
	int r = READ_FIELDS(in, { "name", FIELD_TEXT, &name }, { "unit", FIELD_TEXT, &unit },
			    { "value", FIELD_REAL, &value });
	return r < 0 ? r
		     : give_measure(import, buf_str(&name), value, buf_str(&unit), more_is_better);
}

static int read_github_entry(struct import *import, struct json_in *in)
{
	AUTO(buf_done) struct buf tool = BUF_INIT, id = BUF_INIT, stamp = BUF_INIT;
	struct json_in commit = { 0 }, benches = { 0 };
	double date_ms = 0;
	int r = READ_FIELDS(in, { "commit", FIELD_MARK, &commit }, { "tool", FIELD_TEXT, &tool },
			    { "date", FIELD_REAL, &date_ms }, { "benches", FIELD_MARK, &benches });
	if (r >= 0 && commit.start)
		r = READ_FIELDS(&commit, { "id", FIELD_TEXT, &id },
				{ "timestamp", FIELD_TEXT, &stamp });
	if (r < 0 || !benches.start)
		return r;
	int64_t time_s = iso_seconds(buf_str(&stamp));
	if (!time_s && fabs(date_ms) < NUMBER_MAX)
		time_s = (int64_t)(date_ms / 1000);
	import->version.commit = buf_str(&id);
	import->version.time_s = time_s;
	bool more = tool_counts_up(buf_str(&tool));
	r = json_in_enter(&benches, '[');
	while (r >= 0 && (r = json_in_element(&benches)) > 0)
		r = read_bench(import, &benches, more);
	import->version.commit = "";
	return r;
}

static int import_github(struct import *import, struct json_in entries)
{
	AUTO(buf_done) struct buf suite = BUF_INIT;
	int r = json_in_enter(&entries, '{');
	while (r >= 0 && (r = json_in_member(&entries, &suite)) > 0) {
		struct json_in list = entries;
		import->version.suite = buf_str(&suite);
		r = json_in_skip(&entries);
		if (r >= 0)
			r = each_entry(import, list, read_github_entry);
	}
	import->version.suite = "";
	return r;
}

/* ------------------------------------------------------------------ which is it */

struct top {
	struct json_in results, columns, benchmarks, context, machine, commit, entries;
	struct buf commit_hash;
	double date_ms;
};

static void top_done(struct top *top)
{
	buf_done(&top->commit_hash);
}

static int import_asv(struct import *import, struct top *top)
{
	struct asv asv = { 0 };
	int r = read_columns(top->columns, &asv);
	import->version.commit = buf_str(&top->commit_hash);
	if (fabs(top->date_ms) < NUMBER_MAX)
		import->version.time_s = (int64_t)(top->date_ms / 1000);
	return r < 0 ? r : read_asv(import, &asv, top->results);
}

static int import_pytest(struct import *import, struct top *top)
{
	AUTO(buf_done) struct buf id = BUF_INIT, stamp = BUF_INIT, node = BUF_INIT;
	int r = 0;
	if (top->commit.start)
		r = READ_FIELDS(&top->commit, { "id", FIELD_TEXT, &id },
				{ "time", FIELD_TEXT, &stamp });
	if (r >= 0)
		r = READ_FIELDS(&top->machine, { "node", FIELD_TEXT, &node });
	import->version = (struct bench_version){ .commit = buf_str(&id),
						  .time_s = iso_seconds(buf_str(&stamp)),
						  .host = buf_str(&node),
						  .suite = "" };
	return r < 0 ? r : each_entry(import, top->benchmarks, read_pytest);
}

static int dispatch(struct import *import, struct top *top)
{
	if (top->entries.start)
		return import_github(import, top->entries);
	if (top->columns.start && top->results.start)
		return import_asv(import, top);
	if (top->results.start)
		return each_entry(import, top->results, read_hyperfine);
	if (top->benchmarks.start && top->machine.start)
		return import_pytest(import, top);
	if (top->benchmarks.start && top->context.start)
		return import_gbench(import, top->benchmarks);
	return err_set(import->err, EINVAL,
		       "not a file of hyperfine, Google Benchmark, pytest-benchmark, asv or "
		       "github-action-benchmark");
}

int bench_import(const char *text, size_t len, bench_import_fn *on_value, void *arg,
		 struct err *err)
{
	static const char prefix[] = "window.BENCHMARK_DATA";
	AUTO(top_done) struct top top = { 0 };
	struct err reason = ERR_INIT;
	struct import import = { .on_value = on_value,
				 .arg = arg,
				 .version = { .commit = "", .host = "", .suite = "" },
				 .err = &reason };
	if (len > strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0) {
		const char *brace = memchr(text, '{', len);
		len -= brace ? (size_t)(brace - text) : 0;
		text = brace ? brace : text;
	}
	struct json_in in;
	json_in_init(&in, text, len);
	in.python = true; /* asv writes Infinity */
	int r = READ_FIELDS(&in, { "results", FIELD_MARK, &top.results },
			    { "result_columns", FIELD_MARK, &top.columns },
			    { "benchmarks", FIELD_MARK, &top.benchmarks },
			    { "context", FIELD_MARK, &top.context },
			    { "machine_info", FIELD_MARK, &top.machine },
			    { "commit_info", FIELD_MARK, &top.commit },
			    { "entries", FIELD_MARK, &top.entries },
			    { "commit_hash", FIELD_TEXT, &top.commit_hash },
			    { "date", FIELD_REAL, &top.date_ms });
	if (r >= 0)
		r = dispatch(&import, &top);
	if (r >= 0 && import.values == 0)
		return err_set(err, ENODATA, "no benchmark in it");
	if (r < 0 && !reason.code)
		return err_set(err, EINVAL,
			       "not JSON of a benchmark, or not as its tool writes it");
	return r < 0 ? err_set(err, reason.code, "%s", reason.msg) : 0;
}
