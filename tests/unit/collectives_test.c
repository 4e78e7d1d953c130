#include "unit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/collectives/arrivals.h"
#include "run/tell/finding_text.h"
#include "proto/flight.h"
#include "proto/pickle.h"

#define NOW_NS 50000000000ull
#define RANKS_MAX 8

/* A job whose ranks' records are written in short: one entry is "GROUP SEQ OP SIZE TYPE STATE",
 * with the state o(pen) or d(one), in capitals if our hook has noted it, and how many seconds ago
 * it began (42); entries end in ';'. */
struct job {
	struct record records[RANKS_MAX];
	struct join join;
	struct findings findings;
	struct buf text;
};

static void add_entry(struct buf *json, const char *text)
{
	char group[32], op[32], size[32], type[32], state[8];
	unsigned seq;
	ck_assert_int_eq(
		sscanf(text, " %31s %u %31s %31s %31s %7s", group, &seq, op, size, type, state), 6);
	bool noted = *state == 'O' || *state == 'D';
	bool p2p = noted || str_starts(op, "send") || str_starts(op, "recv");
	for (char *at = op; *at; at++)
		if (*at == '_' && strpbrk(op, "<>"))
			*at = ' ';
	buf_printf(json,
		   "%s{\"process_group\":[\"%s\",\"%s\"],\"profiling_name\":\"gloo:%s\",\"%s\":%u,"
		   "\"is_p2p\":%s,\"noted\":%s,\"input_sizes\":[[%s]],\"output_sizes\":[[%s]],"
		   "\"input_dtypes\":[\"%s\"],\"output_dtypes\":[\"%s\"],\"retired\":%s,"
		   "\"time_created_ns\":%llu}",
		   buf_len(json) > 12 ? "," : "", group,
		   str_eq(group, "0") ? "default_pg" : "undefined", op,
		   p2p ? "p2p_seq_id" : "collective_seq_id", seq, p2p ? "true" : "false",
		   noted ? "true" : "false", size, size, type, type,
		   *state == 'd' || *state == 'D' ? "true" : "false",
		   NOW_NS - (state[1] ? strtoull(state + 1, NULL, 10) : 42) * NS_PER_S);
}

static void read_record(const char *entries, struct record *ret_record)
{
	AUTO(buf_done) struct buf json = BUF_INIT;
	struct err err = ERR_INIT;
	size_t len;
	buf_append_str(&json, "{\"entries\":[");
	for (const char *piece; (piece = str_split(&entries, ';', &len));) {
		AUTO_FREE char *text = mem_strndup(piece, len);
		if (len > 1)
			add_entry(&json, text);
	}
	buf_append_str(&json, "],\"version\":\"2.10\"}");
	ck_assert_msg(flight_read_json(buf_str(&json), buf_len(&json), ret_record, &err) == 0, "%s",
		      err.msg);
}

/* One text per rank; NULL: no record. */
static void job_init(struct job *job, size_t count, const char *const *ranks, const char *groups)
{
	memset(job, 0, sizeof(*job));
	job->text = BUF_INIT;
	join_init(&job->join, count);
	for (uint32_t i = 0; i < count; i++) {
		if (!ranks[i]) {
			join_add_silent(&job->join, i, "it did not answer in time");
			continue;
		}
		read_record(ranks[i], &job->records[i]);
		if (groups)
			ck_assert_int_eq(flight_read_groups(groups, strlen(groups),
							    &job->records[i], NULL),
					 0);
		join_add(&job->join, i, &job->records[i], NOW_NS);
	}
	join_judge(&job->join, JOIN_PATIENCE_NS, &job->findings);
	findings_text(&job->findings, &job->join, NULL, NULL, &job->text);
}

static void job_done(struct job *job)
{
	findings_done(&job->findings);
	for (size_t i = 0; i < RANKS_MAX; i++)
		record_done(&job->records[i]);
	join_done(&job->join);
	buf_done(&job->text);
}

#define EXPECT(said, groups, ...) \
	do { \
		const char *const ranks_[] = { __VA_ARGS__ }; \
		struct job job_; \
		job_init(&job_, ARRAY_LEN(ranks_), ranks_, (groups)); \
		ck_assert_str_eq(buf_str(&job_.text), (said)); \
		job_done(&job_); \
	} while (0)

TEST(a_rank_that_never_came_is_named)
{
	EXPECT("all_reduce #6 of the default group (4 ranks) waits 42.0 s: rank 1 never came; "
	       "ranks 0, 2, 3 came within 0 ms\n",
	       NULL, "0 5 all_reduce 4 Float d;0 6 all_reduce 4 Float o;",
	       "0 5 all_reduce 4 Float d;", "0 5 all_reduce 4 Float d;0 6 all_reduce 4 Float o;",
	       "0 5 all_reduce 4 Float d;0 6 all_reduce 4 Float o;");
}

TEST(a_rank_that_used_no_group_yet_never_came_either)
{
	EXPECT("broadcast #1 of the default group (2 ranks) waits 42.0 s: rank 1 never came; rank "
	       "0 "
	       "came\n",
	       NULL, "0 1 broadcast 4 Float o;", "");
}

TEST(a_healthy_job_has_no_finding)
{
	EXPECT("", NULL, "0 5 all_reduce 4 Float d;", "0 5 all_reduce 4 Float d;");
	EXPECT("", NULL, "", "");
}

TEST(all_have_come_blames_nobody)
{
	const char *const ranks[] = { "0 5 all_reduce 4 Float o;", "0 5 all_reduce 4 Float o;" };
	struct job job;
	job_init(&job, 2, ranks, NULL);
	ck_assert_uint_eq(job.findings.count, 1);
	ck_assert_uint_eq(job.findings.items[0].culprits.count, 0);
	ck_assert_str_eq(buf_str(&job.text),
			 "all_reduce #5 of the default group (2 ranks) is under "
			 "way for 42.0 s: all ranks have come\n");
	job_done(&job);
}

TEST(another_operation_size_or_type_is_told)
{
	EXPECT("all_reduce #2 of the default group (3 ranks) does not match: rank 1 came with "
	       "broadcast, the others with all_reduce\n",
	       NULL, "0 2 all_reduce 4 Float o;", "0 2 broadcast 4 Float o;",
	       "0 2 all_reduce 4 Float o;");
	EXPECT("all_reduce #2 of the default group (3 ranks) does not match: rank 2 came with size "
	       "[[5]], the others with [[4]]\n",
	       NULL, "0 2 all_reduce 4 Float o;", "0 2 all_reduce 4 Float o;",
	       "0 2 all_reduce 5 Float o;");
	EXPECT("all_reduce #2 of the default group (3 ranks) does not match: rank 0 came with type "
	       "[\"Long\"], the others with [\"Float\"]\n",
	       NULL, "0 2 all_reduce 4 Long o;", "0 2 all_reduce 4 Float o;",
	       "0 2 all_reduce 4 Float o;");
}

TEST(another_type_is_told_even_if_the_collective_ended)
{
	EXPECT("all_reduce #2 of the default group (3 ranks) ended, but did not match: rank 0 came "
	       "with type [\"Long\"], the others with [\"Float\"]\n",
	       NULL, "0 2 all_reduce 4 Long d;", "0 2 all_reduce 4 Float d;",
	       "0 2 all_reduce 4 Float d;");
	EXPECT("", NULL, "0 2 all_gather 4 Float d;", "0 2 all_gather 3 Float d;",
	       "0 2 all_gather 4 Float d;");
}

TEST(a_send_that_is_received_is_not_a_finding)
{
	EXPECT("", NULL, "0 3 send_0->1 4 Float o;", "0 3 recv_1<-0 4 Float o;");
	EXPECT("recv 1<-0 #3 of the default group waits 42.0 s: rank 0 never came; rank 1 came\n",
	       NULL, "0 2 send_0->1 4 Float d;", "0 3 recv_1<-0 4 Float o;");
}

TEST(two_against_two_blames_nobody)
{
	const char *const ranks[] = { "0 2 all_reduce 4 Float o;", "0 2 all_reduce 4 Float o;",
				      "0 2 barrier 4 Float o;", "0 2 barrier 4 Float o;" };
	struct job job;
	job_init(&job, 4, ranks, NULL);
	ck_assert_int_eq(job.findings.items[0].kind, FINDING_DIFFERS);
	ck_assert_uint_eq(job.findings.items[0].culprits.count, 0);
	ck_assert_uint_eq(job.findings.items[0].odd.count, 2);
	ck_assert_str_eq(buf_str(&job.text),
			 "all_reduce #2 of the default group (4 ranks) does not match: ranks 2, 3 "
			 "came with barrier, others with all_reduce, and neither are the most\n");
	job_done(&job);
}

TEST(roots_may_have_other_tensors)
{
	EXPECT("scatter #2 of the default group (3 ranks) waits 42.0 s: rank 2 never came; ranks "
	       "0, 1 "
	       "came within 0 ms\n",
	       NULL, "0 2 scatter 4 Float o;", "0 2 scatter 4 Float o;", "");
}

TEST(who_waits_elsewhere_is_not_the_culprit)
{
	/* 0 waits for 1 in dp, 1 waits for 3 in tp, 3 is away. */
	EXPECT("all_reduce #9 of group 'tp' (2 ranks) waits 42.0 s: rank 3 never came; rank 1 "
	       "came\n"
	       "1 more collective waits because of that\n",
	       "{\"1\":{\"desc\":\"dp\",\"ranks\":[0,1]},\"2\":{\"desc\":\"tp\",\"ranks\":[1,3]}}",
	       "1 4 all_reduce 4 Float o;", "2 9 all_reduce 4 Float o;", "",
	       "2 8 all_reduce 4 Float d;");
}

TEST(groups_used_in_different_orders_are_a_circle)
{
	const char *const ranks[] = { "1 4 all_reduce 4 Float o;", "2 9 all_reduce 4 Float o;" };
	struct job job;
	job_init(&job, 2, ranks, "{\"1\":{\"ranks\":[0,1]},\"2\":{\"ranks\":[0,1]}}");
	ck_assert_uint_eq(job.findings.count, 2);
	ck_assert(job.findings.items[0].cycle && job.findings.items[1].cycle);
	ck_assert_uint_eq(job.findings.items[0].culprits.count, 0);
	job_done(&job);
}

TEST(a_rank_without_a_record_is_blamed_if_all_others_came)
{
	EXPECT("all_reduce #2 of the default group (3 ranks) waits 42.0 s: rank 1 gives no record "
	       "(it "
	       "did not answer in time); ranks 0, 2 came within 0 ms\n",
	       NULL, "0 2 all_reduce 4 Float o;", NULL, "0 2 all_reduce 4 Float o;");
	const char *const ranks[] = { "0 2 all_reduce 4 Float o;", NULL, "" };
	struct job job;
	job_init(&job, 3, ranks, NULL);
	ck_assert_uint_eq(job.findings.items[0].culprits.count, 1);
	ck_assert_uint_eq(job.findings.items[0].culprits.items[0], 2);
	job_done(&job);
}

TEST(one_against_many_may_be_ahead)
{
	EXPECT("all_reduce #7 of the default group (4 ranks) waits 42.0 s: rank 0 came alone; "
	       "ranks "
	       "1-3 did not, and wait in no recorded collective\n",
	       NULL, "0 7 all_reduce 4 Float o;", "0 6 all_reduce 4 Float d;",
	       "0 6 all_reduce 4 Float d;", "0 6 all_reduce 4 Float d;");
}

TEST(a_send_without_a_receive_names_the_receiver)
{
	EXPECT("send 0->1 #3 of the default group waits 42.0 s: rank 1 never came; rank 0 came\n",
	       NULL, "0 3 send_0->1 4 Float o;", "0 6 all_reduce 4 Float d;");
}

/* gloo records neither sends nor receives: what our hook notes is numbered by pair. */
TEST(a_noted_receive_names_the_sender_until_it_has_sent)
{
	EXPECT("recv 1<-0 #3 of the default group waits 42.0 s: rank 0 never came; rank 1 came\n",
	       NULL, "0 2 send_0->1 4 Float D;0 7 send_0->2 4 Float D;", "0 3 recv_1<-0 4 Float O;",
	       "0 7 recv_2<-0 4 Float D;");
	/* It was sent, and the receiver is about to go on; the sender has sent more since. */
	EXPECT("", NULL, "0 5 send_0->1 4 Float D;", "0 3 recv_1<-0 4 Float O;");
	EXPECT("", NULL, "0 3 isend_0->1 4 Float O;", "0 3 recv_1<-0 4 Float O;");
	EXPECT("", NULL, "0 3 send_0->1 4 Float O;", "0 9 recv_1<-any 4 Float O;");
}

TEST(a_receive_from_anybody_blames_nobody_of_many)
{
	EXPECT("recv 0<-any #1 of the default group waits 42.0 s: rank 0 came alone; ranks 1, 2 "
	       "did not, and wait in no recorded collective\n",
	       NULL, "0 1 recv_0<-any 4 Float O;", "0 1 all_reduce 4 Float d;", "");
}

/* Whether the program waits for an irecv is not known: it is not blamed for missing elsewhere, and
 * nobody is blamed for not sending, before it is known that the job hangs. */
TEST(a_posted_receive_explains_but_does_not_accuse)
{
	const char *const ranks[] = { "0 4 all_reduce 4 Float o;", "0 4 all_reduce 4 Float o;",
				      "0 1 irecv_2<-3 4 Float O;", "" };
	struct job job;
	job_init(&job, 4, ranks, NULL);
	ck_assert_str_eq(buf_str(&job.text), "all_reduce #4 of the default group (4 ranks) waits "
					     "42.0 s: ranks 2, 3 never came; ranks 0, 1 came "
					     "within 0 ms\n1 more collective waits because of "
					     "that\n");
	ck_assert_uint_eq(job.findings.items[0].culprits.count, 1);
	ck_assert_uint_eq(job.findings.items[0].culprits.items[0], 3);
	job_done(&job);

	const char *const alone[] = { "0 1 irecv_0<-1 4 Float O;", "" };
	job_init(&job, 2, alone, NULL);
	ck_assert(job.findings.items[0].early && job.findings.items[0].culprits.count == 0);
	findings_done(&job.findings);
	join_judge(&job.join, 0, &job.findings);
	ck_assert(!job.findings.items[0].early && job.findings.items[0].culprits.count == 1);
	job_done(&job);
}

TEST(a_slow_pipeline_is_healthy)
{
	/* It waited for 10 s the last time: 25 s are not unusual, 31 s are. */
	EXPECT("recv 0<-1 #5 of the default group has waited 25.0 s so far: rank 1 did not come "
	       "yet\n",
	       NULL, "0 4 recv_0<-1 4 Float D35;0 5 recv_0<-1 4 Float O25;",
	       "0 4 send_1->0 4 Float D25;");
	EXPECT("recv 0<-1 #5 of the default group waits 31.0 s: rank 1 never came; rank 0 came\n",
	       NULL, "0 4 recv_0<-1 4 Float D41;0 5 recv_0<-1 4 Float O31;",
	       "0 4 send_1->0 4 Float D31;");
}

TEST(a_monitored_barrier_is_a_collective_of_its_own)
{
	EXPECT("monitored_barrier #2 of the default group (4 ranks) waits 42.0 s: rank 2 never "
	       "came; ranks 0, 1, 3 came within 2.0 s\n",
	       NULL, "0 2 monitored_barrier 0 Float O;", "0 2 monitored_barrier 0 Float O40;",
	       "0 1 monitored_barrier 0 Float D;0 9 all_reduce 4 Float d;",
	       "0 2 monitored_barrier 0 Float O;");
	/* One that has passed it is not missing. */
	EXPECT("monitored_barrier #2 of the default group (2 ranks) is under way for 42.0 s: all "
	       "ranks have come\n",
	       NULL, "0 2 monitored_barrier 0 Float O;", "0 2 monitored_barrier 0 Float D;");
}

TEST(a_record_keeps_the_last_of_each_pair)
{
	struct record record = RECORD_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_str(&text, "0 1 all_reduce 4 Float d;");
	for (unsigned i = 1; i <= 300; i++)
		buf_printf(&text, "0 %u send_0->%u 4 Float D;", i, i % 3);
	read_record(buf_str(&text), &record);
	ck_assert_uint_eq(record.groups[0].pair_count, 3);
	ck_assert_uint_eq(record.groups[0].done_count, 1); /* they do not drive collectives out */
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_ge(record.groups[0].pairs[i].seq, 298);
	record_done(&record);
}

TEST(the_first_collective_under_way_counts)
{
	/* Rank 0 is two ahead, as with async_op=True. */
	EXPECT("all_reduce #5 of the default group (2 ranks) waits 42.0 s: rank 1 never came; rank "
	       "0 "
	       "came\n",
	       NULL, "0 5 all_reduce 4 Float o;0 6 all_reduce 4 Float o;",
	       "0 4 all_reduce 4 Float d;");
}

/* gloo's threads say late that a collective is over: rank 1 has left #5. */
TEST(a_collective_that_all_came_to_does_not_hide_the_one_that_waits)
{
	EXPECT("all_reduce #6 of the default group (3 ranks) waits 42.0 s: rank 2 never came; "
	       "ranks 0, 1 came within 0 ms\n",
	       NULL, "0 5 all_reduce 4 Float d;0 6 all_reduce 4 Float o;",
	       "0 5 all_reduce 4 Float o;0 6 all_reduce 4 Float o;", "0 5 all_reduce 4 Float d;");
	/* Rank 2 has died and left no record, but #5 is over for rank 0: so it was there. */
	EXPECT("all_reduce #6 of the default group (3 ranks) waits 42.0 s: rank 2 gives no record "
	       "(it did not answer in time); ranks 0, 1 came within 0 ms\n",
	       NULL, "0 5 all_reduce 4 Float d;0 6 all_reduce 4 Float o;",
	       "0 5 all_reduce 4 Float o;0 6 all_reduce 4 Float o;", NULL);
	/* The root of a broadcast may leave before. */
	EXPECT("broadcast #5 of the default group (3 ranks) waits 42.0 s: rank 2 gives no record "
	       "(it did not answer in time); rank 1 came\n",
	       NULL, "0 5 broadcast 4 Float d;0 6 all_reduce 4 Float o;",
	       "0 5 broadcast 4 Float o;", NULL);
	/* Neither does it excuse the rank that is missing elsewhere. */
	const char *const ranks[] = { "1 4 all_reduce 4 Float o;2 7 all_reduce 4 Float d;",
				      "1 3 all_reduce 4 Float d;2 7 all_reduce 4 Float o;" };
	struct job job;
	job_init(&job, 2, ranks, "{\"1\":{\"ranks\":[0,1]},\"2\":{\"ranks\":[0,1]}}");
	ck_assert_uint_eq(job.findings.items[0].culprits.count, 1);
	ck_assert_uint_eq(job.findings.items[0].culprits.items[0], 1);
	job_done(&job);
}

TEST(a_slow_job_is_healthy)
{
	EXPECT("all_reduce #5 of the default group (2 ranks) has waited 3.0 s so far: rank 1 did "
	       "not "
	       "come yet\n",
	       NULL, "0 4 all_reduce 4 Float d6;0 5 all_reduce 4 Float o3;",
	       "0 4 all_reduce 4 Float d6;");
	/* The last pauses were 10 s: 25 s are not unusual, 31 s are. */
	EXPECT("all_reduce #5 of the default group (2 ranks) has waited 25.0 s so far: rank 1 did "
	       "not come yet\n",
	       NULL,
	       "0 3 all_reduce 4 Float d40;0 4 all_reduce 4 Float d30;0 5 all_reduce 4 Float o25;",
	       "0 4 all_reduce 4 Float d30;");
	EXPECT("all_reduce #5 of the default group (2 ranks) waits 31.0 s: rank 1 never came; rank "
	       "0 "
	       "came\n",
	       NULL,
	       "0 3 all_reduce 4 Float d48;0 4 all_reduce 4 Float d38;0 5 all_reduce 4 Float o31;",
	       "0 4 all_reduce 4 Float d38;");
}

TEST(ranks_that_were_not_asked_are_not_blamed)
{
	const char *const ranks[] = { "0 2 all_reduce 4 Float o;", "0 2 all_reduce 4 Float o;" };
	struct job job;
	job_init(&job, 2, ranks, "{\"0\":{\"ranks\":[0,1,2,3]}}");
	ck_assert_uint_eq(job.findings.items[0].culprits.count, 0);
	ck_assert_str_eq(buf_str(&job.text), "all_reduce #2 of the default group (4 ranks) waits "
					     "42.0 s: ranks 2, 3 were not asked; ranks 0, 1 came "
					     "within 0 ms\n");
	job_done(&job);
}

/* ---- who comes last ---- */

#define MS ((int64_t)NS_PER_MS)

/* A job of `ranks`, that have come to `count` collectives of the default group, 20 ms apart. */
static void arrivals_init(struct job *job, uint32_t ranks, uint64_t count,
			  int64_t (*late_ns)(uint32_t rank, uint64_t seq))
{
	memset(job, 0, sizeof(*job));
	join_init(&job->join, ranks);
	for (uint32_t rank = 0; rank < ranks; rank++) {
		struct record *record = &job->records[rank];
		struct record_group *group = record_group(record, "0");
		record_set_desc(group, "default_pg");
		for (uint64_t seq = 1; seq <= count; seq++) {
			struct record_entry entry = { .seq = seq, .complete = true };
			entry.created_ns =
				NOW_NS + seq * 20 * NS_PER_MS + (uint64_t)late_ns(rank, seq);
			record_add(group, &entry);
		}
		join_add(&job->join, rank, record, NOW_NS);
		join_set_clock(&job->join, rank, &(struct wall_offset){ .error_ns = 1 });
	}
}

static void expect_laggards(struct job *job, const char *said)
{
	AUTO(laggards_done) struct laggards laggards;
	arrivals_judge(&job->join, &laggards);
	for (size_t i = 0; i < laggards.count; i++)
		laggard_text(&laggards.items[i], NULL, NULL, &job->text);
	ck_assert_str_eq(buf_str(&job->text), said);
	job_done(job);
}

#define HOLDS(times, of, lag) \
	"rank 2 holds the others up: it came last to " times " of the last " of \
	" collectives of the default group that were waited for, " lag " ms after the others\n"

static int64_t third_is_late(uint32_t rank, uint64_t seq UNUSED)
{
	return rank == 2 ? 6 * MS : rank * MS / 10;
}

TEST(a_rank_that_comes_last_to_collectives_again_and_again_is_named)
{
	struct job job;
	arrivals_init(&job, 4, 100, third_is_late);
	expect_laggards(&job, HOLDS("64", "64", "5.9"));
}

TEST(a_few_collectives_name_nobody)
{
	struct job job;
	arrivals_init(&job, 4, STRAGGLER_TRIALS_MIN - 1, third_is_late);
	expect_laggards(&job, "");
}

static int64_t each_is_late_in_turn(uint32_t rank, uint64_t seq)
{
	return seq % 4 == rank ? 6 * MS : 0;
}

TEST(ranks_that_come_last_in_turn_are_not_named)
{
	struct job job;
	arrivals_init(&job, 4, 200, each_is_late_in_turn);
	expect_laggards(&job, "");
}

/* A step of eight collectives: the ranks wait for each other in the first alone. */
static int64_t late_to_the_first_of_a_step(uint32_t rank, uint64_t seq)
{
	return rank == 2 && seq % 8 == 1 ? 15 * MS : 0;
}

TEST(a_rank_that_is_late_to_one_collective_of_each_step_is_named)
{
	struct job job;
	arrivals_init(&job, 4, 800, late_to_the_first_of_a_step);
	expect_laggards(&job, HOLDS("64", "64", "15.0"));
}

static int64_t rarely_late(uint32_t rank, uint64_t seq)
{
	return rank == 2 && seq % 32 == 1 ? 15 * MS : 0;
}

TEST(a_rank_that_is_late_so_rarely_that_it_does_not_matter_is_not_named)
{
	struct job job;
	arrivals_init(&job, 4, 900, rarely_late);
	expect_laggards(&job, "");
}

static int64_t third_has_another_clock(uint32_t rank, uint64_t seq UNUSED)
{
	return rank == 2 ? 20 * (int64_t)NS_PER_S : rank == 1 ? 6 * MS : 0;
}

TEST(clocks_of_hosts_are_compared_as_far_as_they_are_known)
{
	struct wall_offset clock = { .offset_ns = -20 * (int64_t)NS_PER_S, .error_ns = MS / 10 };
	struct wall_offset vague = { .offset_ns = -20 * (int64_t)NS_PER_S, .error_ns = 4 * MS };
	struct job job;
	arrivals_init(&job, 3, 100, third_has_another_clock);
	join_set_clock(&job.join, 2, &clock);
	expect_laggards(&job, "rank 1 holds the others up: it came last to 64 of the last 64 "
			      "collectives of the default group that were waited for, 6.0 ms "
			      "after the others\n");
	/* 6 ms are less than such clocks may be wrong. */
	arrivals_init(&job, 3, 100, third_has_another_clock);
	join_set_clock(&job.join, 2, &vague);
	expect_laggards(&job, "");
	arrivals_init(&job, 3, 100, third_has_another_clock);
	join_set_clock(&job.join, 2, &(struct wall_offset){ .error_ns = 0 });
	expect_laggards(&job, "");
}

TEST(what_not_all_records_have_is_not_compared)
{
	struct job job;
	arrivals_init(&job, 4, 100, third_is_late);
	join_add_silent(&job.join, 3, "it did not answer in time");
	expect_laggards(&job, "");
	/* One is far ahead, and its record has not the others' collectives any more. */
	arrivals_init(&job, 4, 100, third_is_late);
	for (uint64_t seq = 101; seq <= 101 + 2 * RECORD_TIMES_MAX; seq++)
		record_add_time(&job.records[1].groups[0], &(struct record_time){ seq, NOW_NS });
	expect_laggards(&job, "");
}

TEST(times_pass_between_hosts_with_a_record)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct record copy = RECORD_INIT;
	struct json_out out = JSON_OUT(&text);
	struct job job;
	arrivals_init(&job, 4, 100, third_is_late);
	flight_write(&out, NULL, &job.records[2]);
	ck_assert_int_eq(flight_read_json(buf_str(&text), buf_len(&text), &copy, NULL), 0);
	record_done(&job.records[2]);
	job.records[2] = copy;
	expect_laggards(&job, HOLDS("64", "64", "5.9"));
}

TEST(bad_times_are_refused)
{
	static const char *const bad[] = { "[1]x", "[-1,5]", "[1,\"a\"]", "{}" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct record record = RECORD_INIT;
		AUTO_FREE char *text = mem_printf("{\"groups\":{\"0\":{\"times\":%s}}}", bad[i]);
		ck_assert_int_eq(flight_read_json(text, strlen(text), &record, NULL), -EPROTO);
		record_done(&record);
	}
}

TEST(a_record_keeps_the_end_of_a_long_ring)
{
	struct record record = RECORD_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (unsigned i = 1; i <= 300; i++)
		buf_printf(&text, "0 %u all_reduce 4 Float %s;", i, i <= 200 ? "d" : "o");
	read_record(buf_str(&text), &record);
	ck_assert_uint_eq(record.count, 1);
	ck_assert_uint_eq(record.groups[0].open_count, RECORD_OPEN_MAX);
	ck_assert_uint_eq(record.groups[0].open[0].seq, 201);
	ck_assert_uint_eq(record.groups[0].done_count, RECORD_DONE_MAX);
	ck_assert_uint_eq(record.groups[0].done[RECORD_DONE_MAX - 1].seq, 200);
	ck_assert_uint_eq(record.groups[0].last_seq, 300);
	record_done(&record);
}

TEST(a_record_survives_a_round_trip)
{
	struct record record = RECORD_INIT, again = RECORD_INIT;
	AUTO(buf_done) struct buf one = BUF_INIT, two = BUF_INIT;
	read_record("0 5 all_reduce 4,3 Float d;0 6 barrier 1 Long o;1 2 send_0->1 4 Float o;",
		    &record);
	uint32_t ranks[] = { 3, 0, 3 };
	record_set_ranks(&record.groups[0], ranks, ARRAY_LEN(ranks));
	ck_assert_uint_eq(record.groups[0].rank_count, 2);
	struct json_out out = JSON_OUT(&one);
	flight_write(&out, NULL, &record);
	ck_assert_int_eq(flight_read_json(buf_str(&one), buf_len(&one), &again, NULL), 0);
	out = JSON_OUT(&two);
	flight_write(&out, NULL, &again);
	ck_assert_str_eq(buf_str(&one), buf_str(&two));
	record_done(&record);
	record_done(&again);
}

/* What Python makes of pickle.dumps({"entries": [{"process_group": ("0", "dp"), "retired": True,
 * "collective_seq_id": 300, "time_created_ns": -1 ...}]}, 2). */
TEST(a_pickle_of_plain_data_is_read)
{
	static const unsigned char pickle[] =
		"\x80\x02}q\x00X\x07\x00\x00\x00"
		"entriesq\x01]q\x02}q\x03(X\x0d\x00\x00\x00process_groupq\x04X\x01\x00\x00\x00"
		"0q\x05X\x02\x00\x00\x00"
		"dpq\x06\x86q\x07X\x07\x00\x00\x00retiredq\x08\x88X\x11\x00\x00\x00"
		"collective_seq_idq\x09M,\x01X\x0e\x00\x00\x00profiling_nameq\x0ah\x06ua"
		"s.";
	struct record record = RECORD_INIT;
	struct err err = ERR_INIT;
	ck_assert_msg(flight_read_pickle(pickle, sizeof(pickle) - 1, &record, &err) == 0, "%s",
		      err.msg);
	ck_assert_uint_eq(record.count, 1);
	ck_assert_str_eq(record.groups[0].desc, "dp");
	ck_assert_uint_eq(record.groups[0].done_count, 1);
	ck_assert_uint_eq(record.groups[0].done[0].seq, 300);
	ck_assert_str_eq(record.groups[0].done[0].op, "dp");
	record_done(&record);
}

/* As PyTorch writes the stacks of its entries: a frame is remembered once it is whole. */
TEST(a_pickle_may_refer_to_whole_lists_and_dicts)
{
	static const unsigned char pickle[] = "\x80\x02](}(X\x01\x00\x00\x00"
					      "aK\x01uq\x00h\x00](h\x00h\x00"
					      "eq\x01h\x01"
					      "e.";
	static const unsigned char early[] = "\x80\x02](}q\x00(X\x01\x00\x00\x00"
					     "aK\x01uh\x00"
					     "e.";
	AUTO(buf_done) struct buf json = BUF_INIT;
	struct err err = ERR_INIT;
	ck_assert_msg(pickle_to_json(pickle, sizeof(pickle) - 1, &json, &err) == 0, "%s", err.msg);
	ck_assert_str_eq(buf_str(&json),
			 "[{\"a\":1},{\"a\":1},[{\"a\":1},{\"a\":1}],[{\"a\":1},{\"a\":1}]]");
	ck_assert_int_eq(pickle_to_json(early, sizeof(early) - 1, &json, &err), -EPROTO);
}

/* A text of 1 MB, then so many operations. */
static int read_bomb(const char *op, size_t len, size_t count)
{
	enum { TEXT = 1 << 20 };
	AUTO(buf_done) struct buf pickle = BUF_INIT, json = BUF_INIT;
	buf_append(&pickle, "X\0\0\x10\0", 5);
	memset(buf_reserve(&pickle, TEXT), 'x', TEXT);
	buf_commit(&pickle, TEXT);
	for (size_t i = 0; i < count; i++)
		buf_append(&pickle, op, len);
	buf_append_char(&pickle, '.');
	return pickle_to_json(buf_data(&pickle), buf_len(&pickle), &json, NULL);
}

TEST(a_pickle_takes_no_more_memory_than_it_may_hold)
{
	enum { LESS_THAN_KB = 1 << 20 };
	struct rusage usage;
	ck_assert_int_eq(read_bomb("\x94", 1, 60000), -EPROTO);	    /* MEMOIZE */
	ck_assert_int_eq(read_bomb("q\0", 2, 1000000), -EPROTO);    /* BINPUT 0 */
	ck_assert_int_eq(read_bomb("q\0h\0", 4, 1000000), -EPROTO); /* and BINGET 0 */
	ck_assert_int_eq(read_bomb("N", 1, 20000000), -EPROTO);
	ck_assert_int_eq(read_bomb("]", 1, 20000000), -EPROTO);
	ck_assert_int_eq(read_bomb("(", 1, 20000000), -EPROTO);
	ck_assert_int_eq(read_bomb("", 0, 0), 0);
	getrusage(RUSAGE_SELF, &usage);
	ck_assert_int_lt(usage.ru_maxrss, LESS_THAN_KB);
}

TEST(a_pickle_that_calls_anything_is_refused)
{
	static const char evil[] = "cos\nsystem\n(S'true'\ntR.";
	struct record record = RECORD_INIT;
	struct err err = ERR_INIT;
	ck_assert_int_eq(flight_read_pickle(evil, strlen(evil), &record, &err), -EPROTO);
	ck_assert_ptr_nonnull(strstr(err.msg, "0x63"));
	ck_assert_int_eq(flight_read_pickle("\x80\x02}q", 4, &record, &err), -EPROTO);
	ck_assert_int_eq(flight_read_json("{\"entries\":[{", 13, &record, &err), -EPROTO);
}

TEST(the_place_is_the_first_frame_of_the_user)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	AUTO(stack_process_done) struct stack_process stack = STACK_PROCESS_INIT;
	finding_place(&stack, &out);
	ck_assert_str_eq(buf_str(&out), "");
	struct stack_thread *thread = stack_add_thread(&stack, bytes_str("worker"), 77);
	stack_add_frame(thread, FRAME_PYTHON, bytes_str("poll"), bytes_str("loader.py"), 3, true);
	thread = stack_add_thread(&stack, bytes_str("MainThread"), 12);
	thread->main = true;
	stack_add_frame(thread, FRAME_PYTHON, bytes_str("all_reduce"),
			bytes_str("torch/distributed/distributed_c10d.py"), 3245, false);
	stack_add_frame(thread, FRAME_PYTHON, bytes_str("read"), bytes_str("src/data.py"), 88,
			true);
	stack_add_frame(thread, FRAME_PYTHON, bytes_str("<module>"), bytes_str("train.py"), 9,
			true);
	stack_process_settle(&stack);
	finding_place(&stack, &out);
	ck_assert_str_eq(buf_str(&out), "data.py:88 in read()");
}
