#include "cli/doctor/doctor_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/hosts.h"
#include "core/checks/across.h"
#include "core/worker/exit_code.h"
#include "fleet/gather.h"
#include "fleet/ssh.h"
#include "proto/checks/check_json.h"

#define HOST_MAX 256
#define CODE_SSH 255 /* of ssh itself */
#define CODE_NOT_FOUND 127

/* Of those that `muster run --hosts` passes on, what decides which Python and which libraries. */
static const char *const passed_on[] = { "PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV",
					 "LD_LIBRARY_PATH" };

static void add_if(struct strv *words, const char *option, const char *value)
{
	if (value)
		strv_take(words, mem_printf("--%s=%s", option, value));
}

static void add_each(struct strv *words, const char *option, const struct strv *values)
{
	for (size_t i = 0; i < values->count; i++)
		add_if(words, option, values->items[i]);
}

/* The checks of a host are the same as here, in the same directory. */
static void make_words(const struct checks_spec *spec, struct strv *words)
{
	strv_add(words, "doctor");
	strv_add(words, "--json");
	strv_add(words, "--nnodes=1"); /* also where this host is in a step of Slurm */
	add_if(words, "checks", spec->which);
	add_each(words, "dir", &spec->dirs);
	add_each(words, "reach", &spec->reach);
	add_each(words, "check", &spec->checks);
	if (spec->devices != CHECKS_ANY_DEVICES)
		strv_take(words, mem_printf("--devices=%lld", (long long)spec->devices));
	add_if(words, "script", spec->script);
	add_if(words, "python", spec->python);
	add_if(words, "limits", spec->limits);
	if (spec->timeout_ns)
		strv_take(words, mem_printf("--timeout=%.3f",
					    (double)spec->timeout_ns / (double)NS_PER_S));
}

/* As another host may know it: not by the user there, nor as "localhost". */
static char *plain_name(const char *host)
{
	char own[HOST_MAX] = "";
	const char *at = strrchr(host, '@');
	gethostname(own, sizeof(own) - 1);
	return mem_strdup(ssh_is_here(host) ? own : at ? at + 1 : host);
}

/* Each host tries those that follow it in the list, all of them if they are few. */
static void add_reach(const struct hostfile *hosts, size_t self, struct strv *words)
{
	for (size_t i = 1; i < hosts->count && i <= HOSTS_REACH_MAX; i++) {
		AUTO_FREE char *name = plain_name(hosts->items[(self + i) % hosts->count].name);
		add_if(words, "reach", name);
	}
}

static void make_env(struct strv *env)
{
	for (size_t i = 0; i < ARRAY_LEN(passed_on); i++) {
		const char *value = getenv(passed_on[i]);
		if (value)
			strv_take(env, mem_printf("%s=%s", passed_on[i], value));
	}
}

/* ---- what came back ---- */

/* The last line that says something: ssh's reason, or the shell's. */
static char *last_line(struct buf *errors)
{
	AUTO_FREE char *text = mem_strdup(buf_str(errors));
	size_t len = strlen(text);
	while (len && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	const char *newline = strrchr(text, '\n');
	return mem_strdup(newline ? newline + 1 : text);
}

static void add_lost(struct across *across, const char *name, struct gather_item *item,
		     uint64_t timeout_ns)
{
	AUTO_FREE char *said = last_line(&item->errors), *why = NULL;
	int code = WIFEXITED(item->status) ? WEXITSTATUS(item->status) : -1;
	const char *remedy = "what muster doctor says there";
	if (item->late) {
		why = mem_printf("no answer within %.3g s", (double)timeout_ns / (double)NS_PER_S);
		remedy = "look whether the host is up and its address right; a firewall may drop "
			 "connections";
	} else if (item->too_much) {
		why = mem_strdup("it prints too much, and no results");
		remedy = "the login shell there must not print without end";
	} else if (code == CODE_SSH) {
		remedy = "ssh must log in there without a question: a key, a known host; --ssh "
			 "names another command";
	} else if (code == CODE_NOT_FOUND) {
		remedy = "muster must be there under the same path as here, or in PATH";
	} else if (code == EXIT_CODE_USAGE) {
		remedy = "muster may have another version there; install the same on all hosts";
	}
	if (!why && *said)
		why = mem_strdup(said);
	else if (!why)
		why = mem_printf("no results; the command ended with code %d", code);
	across_add_lost(across, name, remedy, why);
}

static void add_host(struct across *across, const char *name, struct gather_item *item,
		     uint64_t timeout_ns)
{
	struct check_list results = CHECK_LIST_INIT;
	if (!item->late && !item->too_much &&
	    check_json_find_all(buf_str(&item->output), buf_len(&item->output), &results, NULL) ==
		    0)
		across_add(across, name, &results);
	else
		add_lost(across, name, item, timeout_ns);
}

/* ---- all of it ---- */

static void ask(const struct hosts_options *o, const struct hostfile *hosts, const char *program,
		const struct checks_spec *spec, struct across *across)
{
	AUTO(strv_done) struct strv words = STRV_INIT, env = STRV_INIT;
	AUTO_FREE struct gather_item *items = NEW_ARRAY(struct gather_item, hosts->count);
	AUTO_FREE char *dir = getcwd(NULL, 0);
	struct ssh_config ssh = { .command = o->ssh,
				  .program = program,
				  .timeout_ns = o->timeout_ns };
	uint64_t timeout_ns = ns_add(o->timeout_ns, checks_longest_ns(spec));
	make_words(spec, &words);
	make_env(&env);
	for (size_t i = 0; i < hosts->count; i++) {
		AUTO(strv_done) struct strv own = STRV_INIT;
		items[i] = GATHER_ITEM_INIT;
		strv_add_all(&own, words.items);
		add_reach(hosts, i, &own);
		ssh_command_in(&ssh, hosts->items[i].name, dir, &env, &own, &items[i].argv);
	}
	gather_run(items, hosts->count, timeout_ns);
	for (size_t i = 0; i < hosts->count; i++) {
		add_host(across, hosts->items[i].name, &items[i], timeout_ns);
		gather_item_done(&items[i]);
	}
	across_compare(across);
}

int doctor_on_hosts(const struct command *self, const struct hosts_options *o,
		    const struct checks_spec *spec, bool json)
{
	AUTO(hostfile_done) struct hostfile hosts = HOSTFILE_INIT;
	AUTO(across_done) struct across across = ACROSS_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	char program[HOSTS_PROGRAM_MAX];
	struct err err = ERR_INIT;
	if (hosts_check(o, &err) < 0 || hosts_read(o, &hosts, &err) < 0 ||
	    checks_check_spec(spec, &err) < 0 || hosts_program(program, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	ask(o, &hosts, program, spec, &across);
	if (json)
		check_json_write_hosts(&across, &text);
	else
		across_print(&across, &text);
	command_print("%s", buf_str(&text));
	return across_worst(&across) == CHECK_BAD ? EXIT_CODE_BAD_NODE : EXIT_CODE_OK;
}
