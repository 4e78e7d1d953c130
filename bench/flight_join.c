/* Joins the flight records of many ranks, one of which never came to the last collective.
 * usage: flight_join [RANKS [ENTRIES]] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/collectives/join.h"
#include "proto/flight.h"

#define NOW_NS (UINT64_C(1800000000) * NS_PER_S)

/* As PyTorch's server answers. */
static void make_text(uint64_t entries, bool waits, struct buf *out)
{
	buf_clear(out);
	buf_append_str(out, "{\"entries\":[");
	for (uint64_t i = 1; i <= entries; i++)
		buf_printf(out,
			   "%s{\"collective_seq_id\":%" PRIu64
			   ",\"p2p_seq_id\":0,\"op_id\":%" PRIu64
			   ",\"is_p2p\":false,\"pg_id\":0,\"process_group\":[\"0\",\"default_pg\"],"
			   "\"profiling_name\":\"nccl:all_reduce\",\"input_sizes\":[[1024,1024]],"
			   "\"output_sizes\":[[1024,1024]],\"input_dtypes\":[\"Float\"],"
			   "\"output_dtypes\":[\"Float\"],\"state\":\"%s\",\"retired\":%s,"
			   "\"time_created_ns\":%" PRIu64 ",\"timeout_ms\":600000,"
			   "\"thread_name\":\"python\",\"thread_id\":\"140106995460992\"}",
			   i > 1 ? "," : "", i, i,
			   waits && i == entries ? "scheduled" : "completed",
			   waits && i == entries ? "false" : "true",
			   NOW_NS - (entries - i + 60) * NS_PER_S / 10);
	buf_append_str(out, "],\"version\":\"2.10\"}");
}

/* Of CPU time: others may use the machine. */
static double ms_since(double *start_ms)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	double now_ms = 1e3 * (double)now.tv_sec + (double)now.tv_nsec / NS_PER_MS;
	double before_ms = *start_ms;
	*start_ms = now_ms;
	return now_ms - before_ms;
}

int main(int argc, char **argv)
{
	uint64_t ranks = 1000, entries = 2000;
	if ((argc > 1 && str_to_u64(argv[1], &ranks) < 0) ||
	    (argc > 2 && str_to_u64(argv[2], &entries) < 0) || ranks < 2 || entries < 2)
		return 2;
	AUTO(buf_done) struct buf whole = BUF_INIT, less = BUF_INIT;
	make_text(entries, true, &whole);
	make_text(entries - 1, false, &less);
	struct record *records = NEW_ARRAY(struct record, ranks);
	struct join join;
	struct findings findings;
	double start_ms = 0;
	ms_since(&start_ms);
	join_init(&join, ranks);
	for (uint32_t i = 0; i < ranks; i++) {
		struct buf *text = i == ranks / 2 ? &less : &whole;
		records[i] = RECORD_INIT;
		if (flight_read_json(buf_str(text), buf_len(text), &records[i], NULL) < 0)
			return 1;
		join_add(&join, i, &records[i], NOW_NS);
	}
	double read_ms = ms_since(&start_ms);
	join_judge(&join, JOIN_PATIENCE_NS, &findings);
	double join_ms = ms_since(&start_ms);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	bool right = findings.count == 1 && findings.items[0].culprits.count == 1 &&
		     findings.items[0].culprits.items[0] == ranks / 2;
	printf("%.4f %.4f %.1f\n", read_ms / (double)ranks, join_ms,
	       (double)usage.ru_maxrss / 1024);
	if (!right)
		fprintf(stderr, "flight_join: the missing rank is not the one that was named\n");
	findings_done(&findings);
	join_done(&join);
	for (uint32_t i = 0; i < ranks; i++)
		record_done(&records[i]);
	free(records);
	return !right;
}
