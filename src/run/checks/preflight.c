#include "run/checks/preflight.h"

#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/checks/pairs.h"
#include "sys/checks/checks.h"

#define PAIR_MS_QUICK 200
#define PAIR_MS_FULL 1000

void preflight_tell(const struct check_list *results)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct check_result *result = &results->items[i];
		const char *remedy = result->remedy, *colon = *remedy ? ". Remedy: " : "";
		if (result->state == CHECK_BAD)
			log_error("preflight: %s: %s%s%s", result->name, result->text, colon,
				  remedy);
		else if (result->state == CHECK_OK)
			log_info("preflight: %s: %s", result->name, result->text);
		else
			log_warn("preflight: %s: %s%s%s", result->name, result->text, colon,
				 remedy);
	}
}

static bool has_log_dir(const struct run_config *config)
{
	return config->log_dir && !str_eq(config->log_dir, "/dev/null");
}

/* The file that all nodes should have in the same version. */
static const char *script(const struct run_config *config)
{
	return config->entry.python ? config->entry.title : config->entry.path;
}

static void fill(const struct run_config *config, struct checks_spec *spec)
{
	const struct preflight *preflight = &config->preflight;
	*spec = (struct checks_spec){
		.which = preflight->checks ? preflight->checks : "",
		.devices = CHECKS_ANY_DEVICES,
		.dirs_later = true,
		.script = script(config),
		.python = config->entry.python ? config->entry.path : NULL,
		.limits = preflight->limits,
	};
	if (has_log_dir(config))
		strv_add(&spec->dirs, config->log_dir);
	if (preflight->command)
		strv_add(&spec->checks, preflight->command);
}

/* Where its files cannot be written, no worker can run. Everything else is a matter of degree, as
 * long as other nodes can take its place. */
static bool must_leave(const struct run_config *config, const struct check_list *results)
{
	if (check_list_worst(results) != CHECK_BAD)
		return false;
	if (config->max_nodes == 1 || config->preflight.bad_node == RUN_BAD_NODE_LEAVE)
		return true;
	for (size_t i = 0; i < results->count; i++)
		if (results->items[i].state == CHECK_BAD &&
		    str_eq(results->items[i].name, "storage"))
			return true;
	return false;
}

int preflight_run(const struct run_config *config, struct check_digest *ret_digest,
		  struct check_counters *ret_counters, struct err *err)
{
	AUTO(check_list_done) struct check_list results = CHECK_LIST_INIT;
	struct checks_spec spec;
	*ret_digest = (struct check_digest){ .bad = false };
	if (!config->preflight.checks && !config->preflight.command)
		return 0;
	fill(config, &spec);
	int r = checks_run(&spec, &results, err);
	strv_done(&spec.dirs);
	strv_done(&spec.checks);
	if (r < 0)
		return r;
	preflight_tell(&results);
	check_changes_add(ret_counters, &results);
	check_digest_make(&results, ret_digest);
	if (must_leave(config, &results))
		return err_set(err, EHOSTDOWN,
			       "this node is not fit for workers and does not join the job");
	return 0;
}

bool preflight_wants_pairs(const struct run_config *config)
{
	return config->max_nodes >= PAIRS_LEAST && config->rdzv.kind != RENDEZVOUS_LOCAL &&
	       config->preflight.checks && checks_name(config->preflight.checks, CHECKS_PAIRS);
}

uint16_t preflight_pair_ms(const struct run_config *config)
{
	return config->preflight.checks && str_eq(config->preflight.checks, "full") ? PAIR_MS_FULL
										    : PAIR_MS_QUICK;
}

void preflight_command(const struct run_config *config, struct strv *argv)
{
	struct checks_spec spec;
	fill(config, &spec);
	strv_add(argv, "/proc/self/exe");
	strv_add(argv, "doctor");
	checks_words(&spec, argv);
	strv_done(&spec.dirs);
	strv_done(&spec.checks);
}
