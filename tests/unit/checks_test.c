#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/checks/counter_changes.h"
#include "core/checks/check.h"
#include "core/checks/clocks.h"
#include "core/checks/figure.h"
#include "core/checks/fitness.h"
#include "core/checks/limits.h"
#include "core/checks/peers.h"
#include "proto/checks/check_json.h"
#include "sys/checks/checks.h"

/* Numbers from 0 to 1 that look random and are the same in each run. */
static double draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 11) / (double)(1ull << 53);
}

static const struct peers_rule rule = { .share = 0.7 };

TEST(one_peer_far_below_the_others_stands_out)
{
	const double values[] = { 3.1, 3.0, 0.6, 3.2, 3.1 };
	bool bad[5];
	struct peers_verdict verdict = peers_judge(values, 5, &rule, bad);
	ck_assert_uint_eq(verdict.bad, 1);
	ck_assert(bad[2] && !bad[0] && !bad[1] && !bad[3] && !bad[4]);
	ck_assert_double_eq(verdict.median, 3.1);
}

TEST(peers_that_all_wobble_name_none_and_a_slow_one_is_always_found)
{
	uint64_t seed = 7;
	for (int trial = 0; trial < 2000; trial++) {
		double values[64];
		bool bad[64];
		size_t count = 3 + (size_t)(draw(&seed) * 61);
		for (size_t i = 0; i < count; i++)
			values[i] = 100 * (0.85 + 0.3 * draw(&seed));
		ck_assert_uint_eq(peers_judge(values, count, &rule, bad).bad, 0);
		if (count < 8)
			continue;
		size_t slow = (size_t)(draw(&seed) * (double)count);
		values[slow] = 20;
		ck_assert_uint_eq(peers_judge(values, count, &rule, bad).bad, 1);
		ck_assert(bad[slow]);
	}
}

TEST(among_peers_that_differ_widely_a_low_one_is_none)
{
	const double values[] = { 10, 40, 80, 100, 100, 160, 200, 250 };
	bool bad[8];
	ck_assert_uint_eq(peers_judge(values, 8, &rule, bad).bad, 0);
}

TEST(a_clock_is_wrong_only_beyond_what_is_known_of_it)
{
	const struct host_clock sure = { (int64_t)(2 * CLOCKS_FAR_NS), NS_PER_MS };
	const struct host_clock vague = { (int64_t)(2 * CLOCKS_FAR_NS), CLOCKS_FAR_NS };
	struct host_clock all[] = { { 0, 0 }, { 0, 0 }, { 0, 0 }, sure };
	int64_t offset_ns;
	ck_assert(clocks_is_wrong(sure, clocks_middle(all, ARRAY_LEN(all)), &offset_ns));
	ck_assert_int_eq(offset_ns, (int64_t)(2 * CLOCKS_FAR_NS));
	ck_assert(!clocks_is_wrong(vague, clocks_middle(all, ARRAY_LEN(all)), &offset_ns));
}

TEST(a_small_difference_among_equal_peers_is_none)
{
	const double values[] = { 100, 100, 100, 99, 100 };
	bool bad[5];
	ck_assert_uint_eq(peers_judge(values, 5, &rule, bad).bad, 0);
}

TEST(two_peers_cannot_tell_which_of_them_is_slow)
{
	const double values[] = { 100, 10 };
	bool bad[2] = { true, true };
	ck_assert_uint_eq(peers_judge(values, 2, &rule, bad).bad, 0);
	ck_assert(!bad[0] && !bad[1]);
}

TEST(a_peer_without_a_figure_is_not_judged)
{
	const double values[] = { 100, NAN, 100, 10, 100, INFINITY };
	bool bad[6];
	ck_assert_uint_eq(peers_judge(values, 6, &rule, bad).bad, 1);
	ck_assert(bad[3] && !bad[1] && !bad[5]);
	ck_assert(isnan(peers_judge(&values[1], 1, &rule, bad).median));
	ck_assert_uint_eq(peers_judge(values, 0, &rule, bad).bad, 0);
}

TEST(the_worse_finding_replaces_the_text_and_a_milder_one_is_added)
{
	struct check_result result = { .name = "x" };
	check_say(&result, "3 of 4");
	check_find(&result, CHECK_WARNING, "do this", "few %d", 7);
	check_say(&result, "3 of 4");
	ck_assert_str_eq(result.text, "few 7; 3 of 4");
	check_find(&result, CHECK_BAD, "do that", "none");
	check_find(&result, CHECK_WARNING, "do this", "few");
	ck_assert_str_eq(result.text, "none; few");
	ck_assert_str_eq(result.remedy, "do that");
	ck_assert_int_eq(result.state, CHECK_BAD);
	for (int i = 0; i < 200; i++)
		check_say(&result, "and so on");
	ck_assert_uint_lt(strlen(result.text), CHECK_TEXT_MAX);
}

TEST(the_table_has_each_remedy_below_its_finding)
{
	AUTO(check_list_done) struct check_list list = CHECK_LIST_INIT;
	AUTO(buf_done) struct buf out = BUF_INIT;
	struct check_result good = { .name = "cpu", .text = "2 CPUs\x1b" };
	struct check_result bad = {
		.name = "storage", .state = CHECK_BAD, .text = "gone", .remedy = "mount it"
	};
	ck_assert_int_eq(check_list_worst(&list), CHECK_OK);
	check_list_add(&list, &good);
	check_list_add(&list, &bad);
	check_list_print(&list, &out);
	ck_assert_str_eq(buf_str(&out), "ok       cpu      2 CPUs?\n"
					"bad      storage  gone\n"
					"                  remedy: mount it\n"
					"2 checks: 1 bad, 0 warnings, 0 unknown\n");
	ck_assert_int_eq(check_list_worst(&list), CHECK_BAD);
}

TEST(a_result_is_read_back_as_it_was_written)
{
	AUTO(buf_done) struct buf one = BUF_INIT, two = BUF_INIT;
	struct check_result result = {
		.name = "cpu", .state = CHECK_WARNING, .text = "slow", .remedy = "cool it"
	};
	struct check_result again;
	check_measure(&result, "speed", 2.5, "GFLOP/s");
	for (int i = 0; i < 20; i++)
		check_measure(&result, "count", i, "");
	ck_assert_uint_eq(result.figure_count, CHECK_FIGURES_MAX);
	struct json_out out = JSON_OUT(&one);
	check_json_write(&out, &result);
	ck_assert_int_eq(check_json_read(buf_str(&one), buf_len(&one), &again, NULL), 0);
	out = JSON_OUT(&two);
	check_json_write(&out, &again);
	ck_assert_str_eq(buf_str(&one), buf_str(&two));
	static const char *const others[] = { "",
					      "[]",
					      "{}",
					      "{\"name\":\"x\"}",
					      "{\"state\":\"ok\"}",
					      "{\"name\":\"x\",\"state\":\"fine\"}" };
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		ck_assert_int_eq(check_json_read(others[i], strlen(others[i]), &again, NULL),
				 -EPROTO);
}

TEST(a_users_check_may_print_numbers)
{
	struct check_result result = { .name = "gemm" };
	static const char text[] = "{\"tflops\": 312.5, \"note\": \"x\", \"n\\u001b\": 4}\n";
	ck_assert(check_json_figures(text, strlen(text), &result));
	ck_assert_uint_eq(result.figure_count, 2);
	ck_assert_str_eq(result.figures[0].name, "tflops");
	ck_assert_double_eq(result.figures[0].value, 312.5);
	ck_assert_str_eq(result.figures[1].name, "n?");
	ck_assert(!check_json_figures("all is well\n", 12, &result));
	ck_assert(!check_json_figures("[1]", 3, &result));
}

/* ---- nodes compared with each other ---- */

static struct check_digest digest_of(double speed, const char *torch)
{
	AUTO(check_list_done) struct check_list list = CHECK_LIST_INIT;
	struct check_result result = { .name = "all" };
	struct check_digest digest;
	check_measure(&result, "cpu_speed", speed, "GFLOP/s");
	check_state_fact(&result, "torch", torch);
	check_list_add(&list, &result);
	check_digest_make(&list, &digest);
	return digest;
}

TEST(a_digest_has_what_is_judged_first_and_the_worse_of_two)
{
	AUTO(check_list_done) struct check_list list = CHECK_LIST_INIT;
	struct check_digest digest;
	for (int i = 0; i < 4; i++) {
		struct check_result result = { .name = "shown" };
		char name[CHECK_NAME_MAX];
		for (int f = 0; f < CHECK_FIGURES_MAX; f++) {
			snprintf(name, sizeof(name), "a_rather_long_name_of_a_figure_%d", f);
			check_measure(&result, f ? "read_time" : name, 10 + i, "");
		}
		check_list_add(&list, &result);
	}
	struct check_result storage = { .name = "storage", .state = CHECK_BAD, .text = "gone" };
	check_measure(&storage, "write_time", 3, "ms");
	check_measure(&storage, "write_time", 7, "ms");
	check_measure(&storage, "cpu_speed", 7, "");
	check_measure(&storage, "cpu_speed", 3, "");
	check_measure(&storage, "memory_available", INFINITY, "");
	check_list_add(&list, &storage);
	check_digest_make(&list, &digest);
	ck_assert_double_eq(check_digest_figure(&digest, "write_time"), 7);
	ck_assert_double_eq(check_digest_figure(&digest, "cpu_speed"), 3);
	ck_assert(isnan(check_digest_figure(&digest, "memory_available")));
	ck_assert_str_eq(digest.figures[0].name, "a_rather_long_name_of_a");
	ck_assert_str_eq(digest.figures[digest.figure_count - 1].name, "read_time");
	ck_assert(digest.bad);
	ck_assert_str_eq(digest.finding, "storage: gone");
	ck_assert_ptr_null(check_digest_fact(&digest, "torch"));
}

TEST(the_node_that_stands_out_is_named_with_figure_and_median)
{
	struct check_digest digests[5];
	const struct check_digest *all[6] = { NULL };
	struct fitness fitness[6];
	char difference[FITNESS_TEXT_MAX];
	for (int i = 0; i < 5; i++)
		digests[i] = digest_of(i == 3 ? 1 : 3 + 0.1 * i, i == 1 ? "2.12.0" : "2.13.0");
	for (int i = 0; i < 5; i++)
		all[i] = &digests[i];
	digests[4].bad = true;
	snprintf(digests[4].finding, DIGEST_TEXT_MAX, "devices: 7 of 8");
	fitness_judge(all, 6, fitness, difference);
	ck_assert(!fitness[0].bad && !fitness[2].bad && !fitness[5].bad);
	ck_assert_str_eq(fitness[1].why, "torch 2.12.0, 4 of 5 nodes have 2.13.0");
	ck_assert_str_eq(fitness[3].why, "cpu_speed 1 GFLOP/s, median of 5 nodes 3.1");
	ck_assert_str_eq(fitness[4].why, "devices: 7 of 8");
	ck_assert_str_eq(difference, "");
}

TEST(nodes_whose_figures_wobble_are_all_fit)
{
	static struct check_digest digests[64];
	const struct check_digest *all[64];
	struct fitness fitness[64];
	char difference[FITNESS_TEXT_MAX];
	uint64_t seed = 3;
	for (int trial = 0; trial < 2000; trial++) {
		size_t count = 1 + (size_t)(draw(&seed) * 63);
		for (size_t i = 0; i < count; i++) {
			digests[i] = digest_of(3 * (0.75 + 0.5 * draw(&seed)), "2.13.0");
			all[i] = &digests[i];
		}
		fitness_judge(all, count, fitness, difference);
		for (size_t i = 0; i < count; i++)
			ck_assert(!fitness[i].bad);
	}
}

TEST(more_is_worse_for_times_and_errors_and_small_distances_are_noise)
{
	bool bad[4];
	const double times[] = { 10, 12, 11, 5000 }, noise[] = { 10, 12, 11, 900 };
	const double counts[] = { 8, 8, 7, 8 }, none[] = { 0, 0, 5000, 0 };
	ck_assert_uint_eq(peers_judge(times, 4, &figure_rule("write_time")->peers, bad).bad, 1);
	ck_assert(bad[3]);
	ck_assert_uint_eq(peers_judge(noise, 4, &figure_rule("write_time")->peers, bad).bad, 0);
	ck_assert_uint_eq(peers_judge(counts, 4, &figure_rule("accelerators")->peers, bad).bad, 1);
	ck_assert(bad[2]);
	ck_assert_uint_eq(peers_judge(none, 4, &figure_rule("new_memory_errors")->peers, bad).bad,
			  1);
	ck_assert(figure_rule("allreduce_latency")->peers.less &&
		  figure_rule("step_ms")->peers.less);
	ck_assert(!figure_rule("tflops")->peers.less && figure_rule("tflops")->judged);
	ck_assert(!figure_rule("read_time")->judged);
}

TEST(limits_of_the_user_are_kept_whatever_others_have)
{
	static const char *const wrong[] = { "tflops", "=1:2", "tflops=1", "tflops=x:", "a=2:1" };
	struct check_limits limits;
	struct check_result result = { .name = "gemm" };
	ck_assert_int_eq(check_limits_parse("tflops=300:,write_time=:2e3", &limits, NULL), 0);
	ck_assert_uint_eq(limits.count, 2);
	check_measure(&result, "write_time", 2000, "ms");
	check_measure(&result, "tflops", 300, "");
	check_limits_apply(&limits, &result);
	ck_assert_int_eq(result.state, CHECK_OK);
	check_measure(&result, "tflops", 299.5, "TFLOP/s");
	check_limits_apply(&limits, &result);
	ck_assert_int_eq(result.state, CHECK_BAD);
	ck_assert_str_eq(result.text, "tflops is 299.5 TFLOP/s, below the limit of 300");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_int_eq(check_limits_parse(wrong[i], &limits, NULL), -EINVAL);
}

TEST(a_limit_is_about_the_figure_that_it_names_and_there_are_so_many)
{
	struct check_limits limits;
	struct check_result result = { .name = "gemm" };
	struct err err = ERR_INIT;
	ck_assert_int_eq(check_limits_parse("a=1:2", &limits, NULL), 0);
	check_measure(&result, "other", 9, "");
	check_limits_apply(&limits, &result);
	ck_assert_int_eq(result.state, CHECK_OK);
	check_measure(&result, "a", 3, "");
	check_limits_apply(&limits, &result);
	ck_assert_str_eq(result.text, "a is 3, above the limit of 2");
	struct check_result first = { .name = "gemm" };
	check_measure(&first, "a", 0.5, "");
	check_limits_apply(&limits, &first);
	ck_assert_str_eq(first.text, "a is 0.5, below the limit of 1");
	char text[(CHECK_LIMITS_MAX + 1) * 8] = "a=1:";
	for (int i = 1; i < CHECK_LIMITS_MAX; i++)
		strcat(text, ",a=1:");
	ck_assert_int_eq(check_limits_parse(text, &limits, &err), 0);
	ck_assert_uint_eq(limits.count, CHECK_LIMITS_MAX);
	strcat(text, ",a=1:");
	ck_assert_int_eq(check_limits_parse(text, &limits, &err), -EINVAL);
	snprintf(text, sizeof(text), "more than %d limits", CHECK_LIMITS_MAX);
	ck_assert_str_eq(err.msg, text);
}

TEST(every_figure_that_checks_measure_has_its_rule)
{
	static const struct {
		const char *name;
		bool judged, less;
	} known[] = {
		{ "new_heat_events", true, true },
		{ "new_memory_errors", true, true },
		{ "new_network_errors", true, true },
		{ "heat_events", false, true },
		{ "memory_errors", false, true },
		{ "network_errors", false, true },
		{ "shm_free", false, false },
		{ "read_time", false, true },
		{ "write_time", true, true },
		{ "pair_latency", true, true },
		{ "pair_bandwidth", true, false },
		{ "cpu_speed", true, false },
		{ "cpus", false, false },
		{ "interfaces", false, false },
		{ "cpu_quota", false, false },
		{ "numa_nodes", false, false },
		{ "some_s", true, true },
		{ "s", true, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const struct figure_rule *of = figure_rule(known[i].name);
		ck_assert_msg(of->judged == known[i].judged, "%s", known[i].name);
		ck_assert_msg(of->peers.less == known[i].less, "%s", known[i].name);
	}
	ck_assert_double_eq(figure_rule("new_heat_events")->peers.floor, 1000);
	ck_assert_double_eq(figure_rule("heat_events")->peers.share, 0.5);
}

TEST(what_is_new_in_a_counter_counts)
{
	struct check_counters counters = { .known = { false } };
	const double errors[] = { 5, 12, 3 };
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		AUTO(check_list_done) struct check_list list = CHECK_LIST_INIT;
		struct check_result result = { .name = "hardware" };
		check_measure(&result, "memory_errors", errors[i], "");
		check_list_add(&list, &result);
		check_changes_add(&counters, &list);
		/* Nothing is known before the first, and the last began anew. */
		ck_assert_uint_eq(list.count, i == 1 ? 2 : 1);
		if (i == 1)
			ck_assert_double_eq(list.items[1].figures[0].value, 7);
	}
}

TEST(the_results_of_a_doctor_are_read)
{
	static const char text[] = "{\"state\":\"ok\",\"checks\":[{\"name\":\"versions\",\"state\":"
				   "\"ok\",\"facts\":{\"torch\":\"2.13.0\",\"n\":1}}]}";
	static const char *const others[] = { "",
					      "{}",
					      "{\"checks\":1}",
					      "{\"checks\":[1]}",
					      "{\"checks\":[{}]}",
					      "Segmentation fault" };
	AUTO(check_list_done) struct check_list list = CHECK_LIST_INIT;
	ck_assert_int_eq(check_json_read_all(text, strlen(text), &list, NULL), 0);
	ck_assert_uint_eq(list.count, 1);
	ck_assert_uint_eq(list.items[0].fact_count, 1);
	ck_assert_str_eq(list.items[0].facts[0].value, "2.13.0");
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		ck_assert_int_eq(check_json_read_all(others[i], strlen(others[i]), &list, NULL),
				 -EPROTO);
}

TEST(the_longest_that_checks_take_depends_on_which_are_asked_for)
{
	struct checks_spec spec = { .which = "limits", .devices = CHECKS_ANY_DEVICES };
	ck_assert_uint_eq(checks_longest_ns(&spec), CHECKS_QUICK_NS);
	spec.which = "limits,versions";
	ck_assert_uint_eq(checks_longest_ns(&spec), CHECKS_SLOW_NS);
	spec.which =
		"cpu,bandwidth,limits"; /* a CPU's speed is measured alone, and then memory's */
	ck_assert_uint_eq(checks_longest_ns(&spec), 3 * CHECKS_QUICK_NS);
	spec.which = "full";
	ck_assert_uint_eq(checks_longest_ns(&spec), 3 * CHECKS_FULL_NS);
	spec.timeout_ns = NS_PER_S;
	ck_assert_uint_eq(checks_longest_ns(&spec), 3 * NS_PER_S);
	spec.which = ""; /* none */
	ck_assert_uint_eq(checks_longest_ns(&spec), 0);
}
