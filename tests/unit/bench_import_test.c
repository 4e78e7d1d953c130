#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "proto/bench_import.h"

#define SAMPLES "tests/data/benchmarks/"

struct seen {
	char text[4096];
	size_t values;
};

/* One line a value: commit, id, wall time, number, unit. */
static int on_value(void *arg, const struct bench_version *version, const struct result *result,
		    struct err *err UNUSED)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);
	seen->values++;
	snprintf(seen->text + len, sizeof(seen->text) - len, "%.4s@%lld %s %lld %g%s%s\n",
		 version->commit, (long long)version->time_s, result->id,
		 result->has[RESULT_WALL_NS] ? (long long)result->value[RESULT_WALL_NS] : -1,
		 result->has_number ? result->number : -1.0, result->unit ? result->unit : "",
		 result->more_is_better ? " up" : "");
	return 0;
}

static int import_text(const char *text, struct seen *seen, struct err *err)
{
	*seen = (struct seen){ .values = 0 };
	return bench_import(text, strlen(text), on_value, seen, err);
}

TEST(hyperfine_gives_a_run_for_every_time)
{
	struct seen seen;
	ck_assert_int_eq(import_text("{\"results\":[{\"command\":\"a\",\"mean\":9,\"times\":[0.5,"
				     "0.25],\"memory_usage_byte\":[2048]},"
				     "{\"command\":\"b\",\"mean\":0.001}]}",
				     &seen, NULL),
			 0);
	ck_assert_str_eq(seen.text, "@0 a 500000000 -1\n@0 a 250000000 -1\n@0 b 1000000 -1\n");
}

TEST(google_benchmark_gives_repetitions_or_else_medians)
{
	struct seen seen;
	const char *both =
		"{\"context\":{},\"benchmarks\":[{\"run_name\":\"x\",\"run_type\":\"iteration\","
		"\"real_time\":2.5,\"cpu_time\":1,\"time_unit\":\"us\",\"items_per_second\":7},"
		"{\"run_name\":\"x\",\"run_type\":\"aggregate\",\"aggregate_name\":\"median\","
		"\"real_time\":9,\"time_unit\":\"us\"}]}";
	const char *only =
		"{\"context\":{},\"benchmarks\":[{\"run_name\":\"x\",\"run_type\":\"aggregate\","
		"\"aggregate_name\":\"mean\",\"real_time\":8,\"time_unit\":\"ms\"},{\"run_name\":"
		"\"x\",\"run_type\":\"aggregate\",\"aggregate_name\":\"median\",\"real_time\":9,"
		"\"time_unit\":\"ms\"}]}";
	ck_assert_int_eq(import_text(both, &seen, NULL), 0);
	ck_assert_str_eq(seen.text, "@0 x 2500 7items/s up\n");
	ck_assert_int_eq(import_text(only, &seen, NULL), 0);
	ck_assert_str_eq(seen.text, "@0 x 9000000 -1bytes/s up\n");
}

TEST(pytest_benchmark_says_the_commit)
{
	struct seen seen;
	const char *text = "{\"machine_info\":{\"node\":\"h\"},\"commit_info\":{\"id\":\"abcdef\","
			   "\"time\":\"2023-11-14T23:13:20+01:00\"},\"benchmarks\":[{\"fullname\":"
			   "\"t::a\",\"stats\":{\"median\":1e-6}},{\"fullname\":\"t::b\",\"stats\":"
			   "{\"median\":1,\"data\":[2e-6]}}]}";
	ck_assert_int_eq(import_text(text, &seen, NULL), 0);
	ck_assert_str_eq(seen.text, "abcd@1700000000 t::a 1000 -1\nabcd@1700000000 t::b 2000 -1\n");
}

TEST(asv_parameters_are_part_of_the_name)
{
	struct seen seen;
	const char *text =
		"{\"commit_hash\":\"c0ffee\",\"date\":1700000000000,\"result_columns\":[\"result\","
		"\"params\",\"version\"],\"results\":{\"m.time_x\":[[1,null,3,4],[[\"1\",\"2\"],"
		"[\"'a'\",\"'b'\"]],\"v\"],\"m.track_y\":[[5],[],\"v\"],\"m.time_z\":[null]}}";
	ck_assert_int_eq(import_text(text, &seen, NULL), 0);
	ck_assert_str_eq(seen.text, "c0ff@1700000000 m.time_x(1, 'a') 1000000000 -1\n"
				    "c0ff@1700000000 m.time_x(2, 'a') 3000000000 -1\n"
				    "c0ff@1700000000 m.time_x(2, 'b') 4000000000 -1\n"
				    "c0ff@1700000000 m.track_y -1 5\n");
}

TEST(what_is_not_a_result_of_a_tool_is_refused_with_a_reason)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"{\"results\":[}",
		"{\"results\":3}",
		"{\"results\":[]}",
		"{\"entries\":{\"s\":[{\"benches\":[{\"value\":\"x\"}]}]}}",
		"{\"benchmarks\":[]}",
		"{\"benchmarks\":[],\"context\":{}}",
		"window.BENCHMARK_DATA = nothing",
		"{\"result_columns\":[],\"results\":[]}",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct seen seen;
		struct err err = ERR_INIT;
		ck_assert_int_lt(import_text(bad[i], &seen, &err), 0);
		ck_assert_int_gt((int)strlen(err.msg), 0);
	}
}

TEST(files_that_the_tools_wrote_are_understood)
{
	static const struct {
		const char *path;
		size_t values;
	} files[] = { { SAMPLES "hyperfine-1.15.json", 10 },
		      { SAMPLES "google-benchmark-1.9.5.json", 6 },
		      { SAMPLES "pytest-benchmark-5.3.1.json", 40 },
		      { SAMPLES "asv-0.6.6.json", 7 },
		      { SAMPLES "github-action-benchmark.js", 3 } };
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		struct seen seen = { .values = 0 };
		struct err err = ERR_INIT;
		ck_assert_int_eq(file_read(files[i].path, BENCH_IMPORT_MAX, &text, &err), 0);
		int r = bench_import((const char *)buf_data(&text), buf_len(&text), on_value, &seen,
				     &err);
		ck_assert_msg(r == 0, "%s: %s", files[i].path, err.msg);
		ck_assert_msg(seen.values == files[i].values, "%s: %zu values", files[i].path,
			      seen.values);
	}
}
