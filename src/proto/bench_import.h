/* Reads the result files of other benchmark tools: hyperfine's JSON, Google Benchmark's JSON,
 * pytest-benchmark's JSON, a result file of asv, and the data file of github-action-benchmark (with
 * or without its "window.BENCHMARK_DATA ="). Which of them it is, its keys tell. */
#ifndef PROTO_BENCH_IMPORT_H
#define PROTO_BENCH_IMPORT_H

#include "proto/result.h"

#define BENCH_IMPORT_MAX ((size_t)256 << 20) /* bytes of a file */
#define BENCH_IMPORT_RUNS 1000 /* a benchmark with more values than this gives their median */

/* Where a value belongs; what the file does not say is "" and 0. Borrowed for the call. */
struct bench_version {
	const char *commit;
	int64_t time_s; /* of the commit, since the epoch */
	const char *host;
	const char *suite; /* benchmarks of the same name in another suite are others */
};

/* Called for every value in order. */
typedef int bench_import_fn(void *arg, const struct bench_version *version,
			    const struct result *result, struct err *err);

int bench_import(const char *text, size_t len, bench_import_fn *on_value, void *arg,
		 struct err *err);

#endif
