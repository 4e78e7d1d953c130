#include "run/dry_run.h"

#include <string.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/worker_env.h"

static bool is_plain(const char *word)
{
	return *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789_-+=./:,@%")] == '\0';
}

/* Quotes it so that a line can be pasted into a shell. */
static void append_word(struct buf *out, const char *word)
{
	if (is_plain(word)) {
		buf_append_str(out, word);
		return;
	}
	buf_append_char(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_append_str(out, "'\\''");
		else
			buf_append_char(out, *word);
	}
	buf_append_char(out, '\'');
}

static bool contains(char *const *environment, const char *assignment)
{
	for (; *environment; environment++)
		if (str_eq(*environment, assignment))
			return true;
	return false;
}

static void describe_env(const struct strv *env, char *const *inherited, struct buf *out)
{
	for (size_t i = 0; i < env->count; i++) {
		if (contains(inherited, env->items[i]))
			continue;
		buf_append_str(out, "  ");
		append_word(out, env->items[i]);
		buf_append_char(out, '\n');
	}
}

static void describe_command(const struct entry *entry, uint32_t local_rank, struct buf *out)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	entry_argv(entry, local_rank, &argv);
	buf_append_str(out, "  ");
	append_word(out, entry->path);
	for (size_t i = 1; i < argv.count; i++) {
		buf_append_char(out, ' ');
		append_word(out, argv.items[i]);
	}
	buf_append_char(out, '\n');
}

static struct worker_round first_round(const struct run_config *config)
{
	/* As if all nodes had as many workers as this one. */
	uint32_t group_rank = (uint32_t)MAX(config->rdzv.node_rank, 0);
	return (struct worker_round){
		.group_rank = group_rank,
		.rank_base = group_rank * config->nproc,
		.role_rank_base = group_rank * config->nproc,
		.world_size = config->nproc * config->max_nodes,
		.role_world_size = config->nproc * config->max_nodes,
		.group_world_size = config->max_nodes,
		.local_world_size = config->nproc,
		.role = config->role,
		.run_id = config->run_id,
		.master_addr = config->rdzv.is_static ? config->rdzv.endpoints[0].host
			       : config->master_addr  ? config->master_addr
						      : "<chosen at the start>",
		.master_port = config->rdzv.is_static && !config->master_port
				       ? config->rdzv.endpoints[0].port
				       : config->master_port,
		.max_restarts = config->max_restarts,
		.signals = config->signals_text,
		.virtual_local_rank = config->virtual_local_rank,
	};
}

static int describe_worker(const struct run_config *config, const struct worker_round *round,
			   uint32_t local_rank, char *const *inherited, struct strv *env,
			   struct buf *out, struct err *err)
{
	int r = worker_env_rank(round, inherited, local_rank, "<made at the start>", env, err);
	if (r < 0)
		return r;
	run_placement_env(&config->placement, inherited, local_rank, env);
	program_env_rank(config->env_kinds, round, local_rank, 0, env);
	if (round->master_port == 0)
		env_set(env, "MASTER_PORT", "<chosen at the start>");
	if (config->env_kinds & PROGRAM_JAX)
		env_set(env, "JAX_COORDINATOR_ADDRESS", "<chosen at the start>");

	buf_printf(out, "rank %u, local rank %u\n", round->rank_base + local_rank, local_rank);
	describe_command(&config->entry, local_rank, out);
	describe_env(env, inherited, out);
	if (config->placement.plan) {
		buf_append_str(out, "  on CPUs ");
		cpuset_format(&config->placement.plan[local_rank].cpus, out);
		buf_append_char(out, '\n');
	}
	return 0;
}

int dry_run_describe(const struct run_config *config, char *const *inherited, struct buf *out,
		     struct err *err)
{
	struct worker_round round = first_round(config);
	AUTO(strv_done) struct strv env = STRV_INIT;
	worker_env_round(&round, inherited, &env);
	for (uint32_t r = 0; r < config->nproc; r++) {
		int result = describe_worker(config, &round, r, inherited, &env, out, err);
		if (result < 0)
			return result;
	}
	return 0;
}
