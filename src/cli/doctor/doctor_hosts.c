/* `muster doctor --hosts`. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/doctor/doctor_many.h"
#include "cli/hosts.h"
#include "core/fleet/fleet.h"
#include "core/worker/exit_code.h"
#include "fleet/ssh.h"
#include "fleet/starter.h"

#define HOST_MAX 256

/* As another host may know it: not by the user there, nor as "localhost". */
static char *plain_name(const char *host)
{
	char own[HOST_MAX] = "";
	const char *at = strrchr(host, '@');
	gethostname(own, sizeof(own) - 1);
	return mem_strdup(ssh_is_here(host) ? own : at ? at + 1 : host);
}

/* Each is told its name and, with commas between them, those of the hosts that it is to reach. */
static void tell_names(const struct hostfile *hosts, struct starter_answer *answers)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	for (size_t i = 0; i < hosts->count; i++)
		strv_take(&names, plain_name(hosts->items[i].name));
	for (size_t i = 0; i < hosts->count; i++) {
		AUTO(strv_done) struct strv reach = STRV_INIT;
		AUTO(buf_done) struct buf text = BUF_INIT;
		doctor_add_reach(&reach, &names, i);
		buf_append_str(&text, hosts->items[i].name);
		for (size_t r = 0; r < reach.count; r++)
			buf_printf(&text, ",%s", reach.items[r]);
		answers[i].name = buf_take_str(&text);
	}
}

void doctor_take_place(struct checks_spec *spec)
{
	AUTO_FREE char *given = hosts_take_name();
	const char *rest = given, *name;
	size_t len;
	for (bool own = true; rest && (name = str_split(&rest, ',', &len)); own = false)
		if (!own)
			strv_take(&spec->reach, mem_strndup(name, len));
	log_set_host(NULL);
}

static void add_answer(struct across *across, const char *name, const struct starter_answer *answer,
		       uint64_t timeout_ns)
{
	const struct exit_status *status = &answer->status;
	AUTO_FREE char *why = NULL;
	const char *remedy = "what muster doctor says there";
	if (answer->late) {
		why = mem_printf("no answer within %.3g s", (double)timeout_ns / (double)NS_PER_S);
		remedy = "look whether the host is up and its address right; a firewall may drop "
			 "connections";
	} else if (answer->lost) {
		why = mem_strdup(answer->why);
		remedy = "ssh must log in there without a question (a key, a known host; --ssh "
			 "names another command), and find muster under the same path as here, or "
			 "in PATH";
	} else if (buf_len(&answer->outs[0]) == STARTER_OUTPUT_MAX) {
		why = mem_strdup("it prints too much, and no results");
	} else {
		AUTO(buf_done) struct buf how = BUF_INIT;
		exit_status_describe(status, &how);
		why = mem_printf("no results; the command ended with %s", buf_str(&how));
	}
	if (*answer->version && !str_eq(answer->version, MUSTER_VERSION))
		remedy = "muster has another version there: install the same on all hosts";
	doctor_add(across, name, &answer->outs[0], &answer->outs[1], why, remedy);
}

static int ask(const struct doctor_options *o, const struct hostfile *hosts, struct across *across,
	       struct err *err)
{
	AUTO(strv_done) struct strv options = STRV_INIT, none = STRV_INIT;
	AUTO_FREE struct starter_answer *answers = NEW_ARRAY(struct starter_answer, hosts->count);
	char program[HOSTS_PROGRAM_MAX];
	struct starter_config config = { .hosts = hosts,
					 .min_nodes = 1,
					 .max_nodes = (uint32_t)hosts->count,
					 .fanout = FLEET_FANOUT_DEFAULT,
					 .timeout_ns = o->hosts.timeout_ns,
					 .run_ns = ns_add(o->hosts.timeout_ns,
							  checks_longest_ns(&o->spec)),
					 .ssh = o->hosts.ssh,
					 .program = program,
					 .what = "doctor",
					 .answers = answers,
					 .token = "",
					 .endpoint = "",
					 .conf = "",
					 .options = &options,
					 .command = &none };
	checks_words(&o->spec, &options);
	tell_names(hosts, answers);
	sigemptyset(&config.stop_signals);
	sigaddset(&config.stop_signals, SIGINT);
	sigaddset(&config.stop_signals, SIGTERM);
	int r = hosts_program(program, err);
	if (r >= 0)
		r = starter_run(&config, err);
	for (size_t i = 0; i < hosts->count; i++) {
		uint64_t limit_ns = *answers[i].version ? config.run_ns : config.timeout_ns;
		add_answer(across, hosts->items[i].name, &answers[i], limit_ns);
		starter_answer_done(&answers[i]);
	}
	return r < 0 ? r : 0;
}

int doctor_on_hosts(const struct command *self, const struct doctor_options *o)
{
	AUTO(hostfile_done) struct hostfile hosts = HOSTFILE_INIT;
	AUTO(across_done) struct across across = ACROSS_INIT;
	struct err err = ERR_INIT;
	if (hosts_check(&o->hosts, &err) < 0 || hosts_read(&o->hosts, &hosts, &err) < 0 ||
	    checks_check_spec(&o->spec, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	if (ask(o, &hosts, &across, &err) < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	across_compare(&across);
	return doctor_show(&across, o->json);
}
