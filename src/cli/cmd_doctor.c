/* muster doctor: is this host fit for workers, and if not, what to do. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "core/worker/exit_code.h"
#include "proto/checks/check_json.h"
#include "sys/checks/checks.h"

extern const struct command command_doctor;

struct doctor_options {
	struct checks_spec spec;
	bool json;
};

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
	OPT_FLAG("json", NULL, struct doctor_options, json,
		 "for programs: an object with the results"),
	OPT_END,
};

static void show(const struct check_list *results, bool json)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text, .indent = 2, .flat = 3);
	if (json) {
		json_out_open(&out, NULL, '{');
		json_out_text(&out, "state", check_state_name(check_list_worst(results)));
		json_out_open(&out, "checks", '[');
		for (size_t i = 0; i < results->count; i++)
			check_json_write(&out, &results->items[i]);
		json_out_close(&out, ']');
		json_out_close(&out, '}');
		buf_append_char(&text, '\n');
	} else {
		check_list_print(results, &text);
	}
	fputs(buf_str(&text), stdout);
}

static int doctor_main(const struct command *self, int argc, char **argv)
{
	struct doctor_options o = { .spec = { .devices = CHECKS_ANY_DEVICES } };
	AUTO(check_list_done) struct check_list results = CHECK_LIST_INIT;
	struct err err = ERR_INIT;
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	if (first < argc)
		status = command_usage_error(self, "unexpected argument '%s'", argv[first]);
	else if (checks_run(&o.spec, &results, &err) < 0)
		status = command_usage_error(self, "%s", err.msg);
	else
		status =
			check_list_worst(&results) == CHECK_BAD ? EXIT_CODE_BAD_NODE : EXIT_CODE_OK;
	if (results.count)
		show(&results, o.json);
	strv_done(&o.spec.dirs);
	strv_done(&o.spec.checks);
	return status;
}

const struct command command_doctor = {
	.name = "doctor",
	.synopsis = "[--checks=quick|full|NAME,...] [--dir DIR] [--check COMMAND] [--json]",
	.summary = "check whether this host is fit for workers, and say what to do if not",
	.opts = doctor_opts,
	.mode = OPT_PERMUTE,
	.main = doctor_main,
};
