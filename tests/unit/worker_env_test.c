#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "run/worker_env.h"

static const struct worker_round sample = {
	.rank_base = 3,
	.role_rank_base = 2,
	.group_rank = 2,
	.world_size = 8,
	.role_world_size = 5,
	.group_world_size = 4,
	.local_world_size = 3,
	.role = "train",
	.run_id = "job",
	.master_addr = "h",
	.master_port = 4711,
	.restart_count = 1,
	.max_restarts = 3,
	.signals = "SIGTERM",
};

static struct strv env;
static struct err err;

static int make(const struct worker_round *round, char *const *inherited, uint32_t rank)
{
	strv_done(&env);
	err = ERR_INIT;
	worker_env_round(round, inherited, &env);
	return worker_env_rank(round, inherited, rank, "/logs/e.json", &env, &err);
}

TEST(worker_environment_has_every_variable_of_torch)
{
	static char *const inherited[] = { "HOME=/h", NULL };
	static const char *const expected[][2] = {
		{ "HOME", "/h" },
		{ "RANK", "4" },
		{ "LOCAL_RANK", "1" },
		{ "GROUP_RANK", "2" },
		{ "ROLE_RANK", "3" },
		{ "ROLE_NAME", "train" },
		{ "LOCAL_WORLD_SIZE", "3" },
		{ "WORLD_SIZE", "8" },
		{ "GROUP_WORLD_SIZE", "4" },
		{ "ROLE_WORLD_SIZE", "5" },
		{ "MASTER_ADDR", "h" },
		{ "MASTER_PORT", "4711" },
		{ "TORCHELASTIC_RESTART_COUNT", "1" },
		{ "TORCHELASTIC_MAX_RESTARTS", "3" },
		{ "TORCHELASTIC_RUN_ID", "job" },
		{ "TORCHELASTIC_USE_AGENT_STORE", "False" },
		{ "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1" },
		{ "TORCHELASTIC_ERROR_FILE", "/logs/e.json" },
		{ "TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM" },
		{ "OMP_NUM_THREADS", "1" },
	};
	ck_assert_int_eq(make(&sample, inherited, 1), 0);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		const char *value = env_get(&env, expected[i][0]);
		ck_assert_msg(value != NULL, "%s is missing", expected[i][0]);
		ck_assert_str_eq(value, expected[i][1]);
	}
	ck_assert_uint_eq(env.count, ARRAY_LEN(expected));
	strv_done(&env);
}

TEST(worker_environment_goes_from_rank_to_rank_in_place)
{
	static char *const inherited[] = { "A=1", "RANK=99", "B=2", "C=3", "D=4", "E=5", NULL };
	ck_assert_int_eq(make(&sample, inherited, 0), 0);
	size_t count = env.count;
	ck_assert_int_eq(worker_env_rank(&sample, inherited, 2, "", &env, &err), 0);
	ck_assert_uint_eq(env.count, count);
	ck_assert_str_eq(env_get(&env, "RANK"), "5");
	ck_assert_str_eq(env_get(&env, "LOCAL_RANK"), "2");
	ck_assert_str_eq(env_get(&env, "ROLE_RANK"), "4");
	ck_assert_str_eq(env_get(&env, "TORCHELASTIC_ERROR_FILE"), "");
	static const char *const kept[] = { "A", "B", "C", "D", "E" };
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		ck_assert_ptr_nonnull(env_get(&env, kept[i]));
	strv_done(&env);
}

TEST(worker_environment_respects_what_the_user_chose)
{
	static char *const inherited[] = { "OMP_NUM_THREADS=7", "TORCH_NCCL_ASYNC_ERROR_HANDLING=3",
					   "CUDA_VISIBLE_DEVICES=5,6", NULL };
	ck_assert_int_eq(make(&sample, inherited, 1), 0);
	ck_assert_str_eq(env_get(&env, "OMP_NUM_THREADS"), "7");
	ck_assert_str_eq(env_get(&env, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3");
	ck_assert_str_eq(env_get(&env, "CUDA_VISIBLE_DEVICES"), "5,6");
	struct worker_round alone = sample;
	alone.local_world_size = 1;
	static char *const nothing[] = { NULL };
	ck_assert_int_eq(make(&alone, nothing, 0), 0);
	ck_assert_ptr_null(env_get(&env, "OMP_NUM_THREADS"));
	strv_done(&env);
}

TEST(worker_environment_keeps_odd_bytes_and_ends_doubles)
{
	static char *const inherited[] = {
		"\xff\xfe=\x80", "no equals sign", "=C:", "RANK=7", "RANK=8", "", NULL
	};
	ck_assert_int_eq(make(&sample, inherited, 0), 0);
	size_t ranks = 0, odd = 0;
	for (size_t i = 0; i < env.count; i++) {
		ranks += strncmp(env.items[i], "RANK=", 5) == 0;
		odd += strcmp(env.items[i], "\xff\xfe=\x80") == 0 ||
		       strcmp(env.items[i], "no equals sign") == 0 ||
		       strcmp(env.items[i], "=C:") == 0 || strcmp(env.items[i], "") == 0;
	}
	ck_assert_uint_eq(ranks, 1);
	ck_assert_uint_eq(odd, 4);
	strv_done(&env);
}

TEST(virtual_local_rank_gives_each_worker_one_device)
{
	struct worker_round round = sample;
	round.virtual_local_rank = true;
	static char *const inherited[] = { "CUDA_VISIBLE_DEVICES=3, GPU-ab ", NULL };
	ck_assert_int_eq(make(&round, inherited, 1), 0);
	ck_assert_str_eq(env_get(&env, "LOCAL_RANK"), "0");
	ck_assert_str_eq(env_get(&env, "RANK"), "4");
	ck_assert_str_eq(env_get(&env, "CUDA_VISIBLE_DEVICES"), "GPU-ab");
	ck_assert_int_eq(make(&round, inherited, 2), -EINVAL);
	ck_assert_str_eq(err.msg, "--virtual-local-rank: local rank 2 exceeds the devices in "
				  "CUDA_VISIBLE_DEVICES=3, GPU-ab ");
	static char *const nothing[] = { NULL };
	ck_assert_int_eq(make(&round, nothing, 2), 0);
	ck_assert_str_eq(env_get(&env, "CUDA_VISIBLE_DEVICES"), "2");
	strv_done(&env);
}
