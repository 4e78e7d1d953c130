/* What Kubeflow's Trainer is told. */
#include "unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "proto/k8s/trainer_status.h"

static void says(const struct trainer_status *status, const char *text)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	trainer_status_put(status, &out);
	AUTO_FREE char *whole = mem_printf("{\"trainerStatus\":{%s,\"lastUpdatedTime\":"
					   "\"1970-01-01T00:00:01.000000Z\"}}",
					   text);
	ck_assert_str_eq(buf_str(&out), whole);
}

TEST(a_job_with_a_known_end_tells_its_share_and_the_time_left)
{
	struct trainer_status status = {
		.steps = { .count = 2,
			   .least = 450,
			   .most = 451,
			   .total = 1000,
			   .rate = 2.5,
			   .left_s = 220,
			   .has_saved = true,
			   .saved = 400 },
		.restarts = 1,
		.wall_ns = NS_PER_S,
	};
	says(&status, "\"progressPercentage\":45,\"estimatedRemainingSeconds\":220,\"metrics\":["
		      "{\"name\":\"step\",\"value\":\"450\"},"
		      "{\"name\":\"total_steps\",\"value\":\"1000\"},"
		      "{\"name\":\"saved_step\",\"value\":\"400\"},"
		      "{\"name\":\"steps_per_second\",\"value\":\"2.5\"},"
		      "{\"name\":\"restarts\",\"value\":\"1\"}]");
}

TEST(a_job_without_a_known_end_tells_its_step)
{
	struct trainer_status status = { .steps = STEP_PROGRESS_SUM_INIT, .wall_ns = NS_PER_S };
	status.steps.count = 1;
	status.steps.least = 7;
	says(&status, "\"metrics\":[{\"name\":\"step\",\"value\":\"7\"},"
		      "{\"name\":\"restarts\",\"value\":\"0\"}]");
}

TEST(only_success_is_a_hundred_percent)
{
	struct trainer_status status = { .steps = STEP_PROGRESS_SUM_INIT, .wall_ns = NS_PER_S };
	status.steps.count = 1;
	status.steps.total = 7;
	status.steps.least = UINT64_MAX;
	status.steps.left_s = 1e300;
	says(&status, "\"progressPercentage\":99,\"estimatedRemainingSeconds\":2147483647,"
		      "\"metrics\":[{\"name\":\"step\",\"value\":\"18446744073709551615\"},"
		      "{\"name\":\"total_steps\",\"value\":\"7\"},"
		      "{\"name\":\"restarts\",\"value\":\"0\"}]");
	status.steps.least = 6;
	status.done = true;
	says(&status, "\"progressPercentage\":100,\"estimatedRemainingSeconds\":0,"
		      "\"metrics\":[{\"name\":\"step\",\"value\":\"6\"},"
		      "{\"name\":\"total_steps\",\"value\":\"7\"},"
		      "{\"name\":\"restarts\",\"value\":\"0\"}]");
}
