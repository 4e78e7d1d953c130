#include "batch/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/path.h"
#include "proto/shell.h"

extern char **environ;

void launcher_done(struct launcher *launcher)
{
	map_foreach(entry, &launcher->paths) free(entry->value);
	map_done(&launcher->paths);
}

void launch_done(struct launch *launch)
{
	free(launch->path);
	strv_done(&launch->argv);
	strv_done(&launch->env);
}

/* The first executable file of that name, "" if there is none; the caller frees it. */
static char *search(const char *program, const char *path)
{
	char *file = path_search(program, path);
	return file ? file : mem_strdup("");
}

static char *find_program(struct launcher *launcher, const char *program, const struct strv *env)
{
	const char *own = env->count ? env_get(env, "PATH") : NULL;
	if (strchr(program, '/'))
		return mem_strdup(program);
	if (own)
		return search(program, own);
	char *known = map_get(&launcher->paths, program, strlen(program));
	if (!known) {
		known = search(program, NULL);
		map_put(&launcher->paths, program, strlen(program), known);
	}
	return mem_strdup(known);
}

static void make_env(const struct launcher *launcher, const struct order *order,
		     struct strv *ret_env)
{
	bool own = order->extra && order->extra->env.count > 0;
	if (!own && !launcher->env)
		return;
	strv_add_all(ret_env, launcher->env ? launcher->env : environ);
	for (size_t i = 0; own && i < order->extra->env.count; i++) {
		const char *item = order->extra->env.items[i], *equals = strchr(item, '=');
		if (!equals) {
			env_unset(ret_env, item);
			continue;
		}
		AUTO_FREE char *name = mem_strndup(item, (size_t)(equals - item));
		env_set(ret_env, name, equals + 1);
	}
}

int launch_make(struct launcher *launcher, const struct order *order, int slot, bool force_shell,
		struct launch *ret_launch, struct err *err)
{
	AUTO(launch_done) struct launch launch = LAUNCH_INIT;
	AUTO(buf_done) struct buf line = BUF_INIT;
	make_env(launcher, order, &launch.env);
	if (order->argv) {
		strv_add_all(&launch.argv, order->argv);
	} else {
		order_append_command(order, slot, &line);
		launch.by_shell = force_shell || !shell_split_plain(buf_str(&line), &launch.argv);
		if (launch.by_shell) {
			strv_add(&launch.argv, launcher->shell);
			strv_add(&launch.argv, "-c");
			strv_add(&launch.argv, buf_str(&line));
		}
	}
	launch.path = find_program(launcher, launch.argv.items[0], &launch.env);
	if (!*launch.path)
		return err_set(err, ENOENT, "'%s' is not on PATH", launch.argv.items[0]);
	*ret_launch = launch;
	launch = LAUNCH_INIT;
	return 0;
}
