#include "run/worker_env.h"

#include <errno.h>
#include <stdio.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/str.h"

#define DEVICES_VARIABLE "CUDA_VISIBLE_DEVICES"

/* Sets a variable that may be there more than once: programs differ in which one they read. */
static void overlay(struct strv *env, const char *name, const char *value)
{
	while (env_get(env, name))
		env_unset(env, name);
	env_set(env, name, value);
}

static void overlay_number(struct strv *env, const char *name, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof(text), "%u", value);
	overlay(env, name, text);
}

bool worker_env_limits_threads(const struct worker_round *round, char *const *inherited)
{
	return round->local_world_size > 1 && !env_find(inherited, "OMP_NUM_THREADS");
}

void worker_env_round(const struct worker_round *round, char *const *inherited,
		      struct strv *ret_env)
{
	/* First the variables that differ between workers, so that worker_env_rank() finds them at
	 * once. */
	static const char *const per_rank[] = { "RANK", "LOCAL_RANK", "ROLE_RANK",
						"TORCHELASTIC_ERROR_FILE", DEVICES_VARIABLE };
	size_t first = ret_env->count;
	strv_add_all(ret_env, inherited);
	for (size_t i = 0; i < ARRAY_LEN(per_rank); i++) {
		if (str_eq(per_rank[i], DEVICES_VARIABLE) && !round->virtual_local_rank)
			continue;
		overlay(ret_env, per_rank[i], "");
		char *mine = ret_env->items[ret_env->count - 1];
		ret_env->items[ret_env->count - 1] = ret_env->items[first];
		ret_env->items[first++] = mine;
	}
	overlay_number(ret_env, "GROUP_RANK", round->group_rank);
	overlay(ret_env, "ROLE_NAME", round->role);
	overlay_number(ret_env, "LOCAL_WORLD_SIZE", round->local_world_size);
	overlay_number(ret_env, "WORLD_SIZE", round->world_size);
	overlay_number(ret_env, "GROUP_WORLD_SIZE", round->group_world_size);
	overlay_number(ret_env, "ROLE_WORLD_SIZE", round->role_world_size);
	overlay(ret_env, "MASTER_ADDR", round->master_addr);
	overlay_number(ret_env, "MASTER_PORT", round->master_port);
	overlay_number(ret_env, "TORCHELASTIC_RESTART_COUNT", round->restart_count);
	overlay_number(ret_env, "TORCHELASTIC_MAX_RESTARTS", round->max_restarts);
	overlay(ret_env, "TORCHELASTIC_RUN_ID", round->run_id);
	overlay(ret_env, "TORCHELASTIC_USE_AGENT_STORE", round->agent_store ? "True" : "False");
	overlay(ret_env, "TORCHELASTIC_SIGNALS_TO_HANDLE", round->signals);
	if (!env_find(inherited, "TORCH_NCCL_ASYNC_ERROR_HANDLING"))
		overlay(ret_env, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
	if (worker_env_limits_threads(round, inherited))
		overlay(ret_env, "OMP_NUM_THREADS", "1");
}

/* The one device of a worker: item [local_rank] of muster's own list, or that number. */
static int set_device(char *const *inherited, uint32_t local_rank, struct strv *env,
		      struct err *err)
{
	const char *devices = env_find(inherited, DEVICES_VARIABLE), *rest = devices, *piece = NULL;
	size_t len = 0;
	if (!devices) {
		env_setf(env, DEVICES_VARIABLE, "%u", local_rank);
		return 0;
	}
	for (uint32_t i = 0; i <= local_rank; i++)
		if (!(piece = str_split(&rest, ',', &len)))
			return err_set(err, EINVAL,
				       "--virtual-local-rank: local rank %u exceeds the devices "
				       "in " DEVICES_VARIABLE "=%.64s",
				       local_rank, devices);
	while (len && *piece == ' ')
		piece++, len--;
	while (len && piece[len - 1] == ' ')
		len--;
	env_setf(env, DEVICES_VARIABLE, "%.*s", (int)len, piece);
	return 0;
}

int worker_env_check_devices(char *const *inherited, uint32_t nproc, struct err *err)
{
	AUTO(strv_done) struct strv scratch = STRV_INIT;
	return set_device(inherited, nproc - 1, &scratch, err);
}

int worker_env_rank(const struct worker_round *round, char *const *inherited, uint32_t local_rank,
		    const char *error_file, struct strv *env, struct err *err)
{
	env_setf(env, "RANK", "%u", round->rank_base + local_rank);
	env_setf(env, "LOCAL_RANK", "%u", round->virtual_local_rank ? 0 : local_rank);
	env_setf(env, "ROLE_RANK", "%u", round->role_rank_base + local_rank);
	env_set(env, "TORCHELASTIC_ERROR_FILE", error_file);
	return round->virtual_local_rank ? set_device(inherited, local_rank, env, err) : 0;
}
