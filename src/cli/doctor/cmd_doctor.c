/* muster doctor: is this host, or are many, fit for workers, and if not, what to do. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/command.h"
#include "cli/doctor/doctor_many.h"
#include "core/worker/exit_code.h"
#include "proto/checks/check_json.h"

#define HOST_MAX 256

extern const struct command command_doctor;

static const struct opt doctor_opts[] = {
	OPT_STR("checks", NULL, struct doctor_options, spec.which, "quick|full|NAME[,NAME...]",
		"which checks to run (default quick: all of them, briefly)"),
	OPT_LIST("dir", struct doctor_options, spec.dirs, "DIR",
		 "write and read there, too (default: the working and the temporary directory)"),
	OPT_LIST("check", struct doctor_options, spec.checks, "COMMAND",
		 "run this as well; a code other than 0 is a finding"),
	OPT_INT("devices", NULL, struct doctor_options, spec.devices, "N",
		"the number of accelerators that must be there"),
	OPT_STR("script", NULL, struct doctor_options, spec.script, "FILE",
		"also read this file, which all hosts should have in the same version"),
	OPT_STR("python", NULL, struct doctor_options, spec.python, "PROGRAM",
		"the workers' interpreter (default python3)"),
	OPT_STR("limits", NULL, struct doctor_options, spec.limits, "FIGURE=[LOW]:[HIGH],...",
		"a figure outside these is bad"),
	OPT_DURATION("timeout", NULL, struct doctor_options, spec.timeout_ns, "TIME",
		     "how long each check may take (default 2 s, with --checks=full 15 s)"),
	OPT_LIST("reach", struct doctor_options, spec.reach, "HOST",
		 "another host, which should be reached from here"),
	OPT_STR("hosts", NULL, struct doctor_options, hosts.list, "HOST,...",
		"check these hosts, over ssh, and show one table"),
	OPT_STR("hostfile", NULL, struct doctor_options, hosts.file, "FILE",
		"the same with a host a line, as mpirun reads it"),
	OPT_STR("ssh", NULL, struct doctor_options, hosts.ssh, "COMMAND",
		"command that reaches a host, with its options (default ssh)"),
	OPT_DURATION("ssh-timeout", NULL, struct doctor_options, hosts.timeout_ns, "TIME",
		     "how long a host may take besides its checks (default 30 s)"),
	OPT_STR("nnodes", NULL, struct doctor_options, meeting.nnodes, "N",
		"show one table for the N hosts on which this is typed"),
	OPT_STR("rdzv-endpoint", NULL, struct doctor_options, meeting.endpoint, "HOST[:PORT]",
		"with --nnodes: where they meet, and the table is shown; the same on all of them"),
	OPT_STR("rdzv-id", NULL, struct doctor_options, meeting.id, "ID",
		"a name for this meeting, if there are several at the same place"),
	OPT_STR("rdzv-conf", NULL, struct doctor_options, meeting.conf, "KEY=VALUE,...",
		"further settings, such as token_file=FILE, as in muster run"),
	OPT_DURATION("meet-timeout", NULL, struct doctor_options, meet_timeout_ns, "TIME",
		     "how long hosts may take to come besides their checks (default 60 s)"),
	OPT_FLAG("json", NULL, struct doctor_options, json,
		 "for programs: an object with the results"),
	OPT_END,
};

/* In a step of Slurm on several nodes, the lines of all of them come out of one srun. */
static const char *label(void)
{
	const char *nodes = getenv("SLURM_STEP_NUM_NODES");
	const char *name = getenv("SLURMD_NODENAME");
	return nodes && !str_eq(nodes, "1") && getenv("SLURM_STEP_ID") ? name : NULL;
}

static void put_labelled(const char *text, const char *name, struct buf *out)
{
	size_t len;
	for (const char *line; text && *text && (line = str_split(&text, '\n', &len));)
		buf_printf(out, "%s: %.*s\n", name, (int)len, line);
}

static void show(const struct check_list *results, bool json)
{
	AUTO(buf_done) struct buf text = BUF_INIT, labelled = BUF_INIT;
	char host[HOST_MAX] = "";
	gethostname(host, sizeof(host) - 1);
	if (json) {
		check_json_write_all(host, results, &text);
	} else {
		check_list_print(results, &text);
		if (label())
			put_labelled(buf_str(&text), label(), &labelled);
	}
	command_print("%s", buf_str(buf_len(&labelled) ? &labelled : &text));
}

static int check_here(const struct command *self, const struct doctor_options *o)
{
	AUTO(check_list_done) struct check_list results = CHECK_LIST_INIT;
	struct err err = ERR_INIT;
	if (checks_run(&o->spec, &results, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	if (results.count)
		show(&results, o->json);
	return check_list_worst(&results) == CHECK_BAD ? EXIT_CODE_BAD_NODE : EXIT_CODE_OK;
}

static int check(const struct command *self, struct doctor_options *o)
{
	AUTO(doctor_meeting_done) struct doctor_meeting meeting = DOCTOR_MEETING_INIT;
	struct err err = ERR_INIT;
	int status = doctor_plan(self, o, &meeting);
	if (status != 0)
		return status;
	if (meeting.nodes == 1)
		return check_here(self, o);
	if (checks_check_spec(&o->spec, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	status = doctor_meet(self, o, &meeting);
	if (status >= 0)
		return status;
	check_here(self, o);
	return EXIT_CODE_BAD_NODE;
}

static int doctor_main(const struct command *self, int argc, char **argv)
{
	struct doctor_options o = {
		.spec = { .devices = CHECKS_ANY_DEVICES },
		.hosts = { .ssh = "ssh", .timeout_ns = HOSTS_TIMEOUT_NS, .fanout = 1 },
		.meeting = { .conf = "",
			     .node_rank = RENDEZVOUS_RANK_UNSET,
			     .master_port = RENDEZVOUS_PORT_UNSET },
		.meet_timeout_ns = DOCTOR_MEET_NS,
	};
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	doctor_take_place(&o.spec);
	if (first < argc)
		status = command_usage_error(self, "unexpected argument '%s'", argv[first]);
	else if ((o.hosts.list || o.hosts.file) && (o.meeting.nnodes || o.meeting.endpoint))
		status = command_usage_error(self, "--hosts starts muster on all hosts, and with "
						   "--nnodes somebody else does: choose one");
	else if (o.hosts.list || o.hosts.file)
		status = doctor_on_hosts(self, &o);
	else
		status = check(self, &o);
	strv_done(&o.spec.dirs);
	strv_done(&o.spec.checks);
	strv_done(&o.spec.reach);
	return status;
}

const struct command command_doctor = {
	.name = "doctor",
	.synopsis = "[--hosts=HOST,... | --nnodes=N --rdzv-endpoint=HOST] "
		    "[--checks=quick|full|NAME,...] [--dir DIR] [--json]",
	.summary = "check whether hosts are fit for workers, and say what to do if not",
	.opts = doctor_opts,
	.mode = OPT_PERMUTE,
	.main = doctor_main,
};
