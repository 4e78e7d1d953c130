/* muster: the command table, and what is common to all commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "core/worker/exit_code.h"
#include "fleet/relay.h"
#include "net/wire.h"
#include "proto/fleet/fleet_msg.h"
#include "sys/start/process_title.h"

#ifndef MUSTER_VERSION
#error "the version comes from the build"
#endif

/* In the order of the overview, under its headings. */
#define START(X) X(run) X(k8s) X(doctor) X(coordinator)
#define WATCH(X) \
	X(status) \
	X(top) \
	X(dash) \
	X(logs) X(stacks) X(collectives) X(report) X(explain) X(checkpoint) X(restart) X(stop)
#define MEASURE(X) X(batch) X(compare) X(trend) X(bisect)
#define PARTS(X) X(timer) X(kv) X(store) X(sim) X(help)
#define COMMANDS(X) START(X) WATCH(X) MEASURE(X) PARTS(X)

#define DECLARE(name) extern const struct command command_##name;
#define POINT_TO(name) &command_##name,
#define ONE(name) +1

COMMANDS(DECLARE)

static const struct command *const commands[] = { COMMANDS(POINT_TO) };

static const struct {
	const char *title;
	size_t count;
} headings[] = {
	{ "Start a job", START(ONE) },
	{ "Look at a running job, on all its hosts", WATCH(ONE) },
	{ "Run and measure lists of commands", MEASURE(ONE) },
	{ "Parts and tools", PARTS(ONE) },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void print_overview(FILE *out)
{
	fputs("usage: muster COMMAND [OPTIONS] ...\n\n"
	      "Starts groups of worker processes, watches them, restarts them, says why they "
	      "died.\n\n"
	      "First steps:\n"
	      "  muster run --nproc-per-node=4 train.py   start what torchrun would start\n"
	      "  muster batch 'gzip -k {}' ::: *.log      run many commands side by side\n"
	      "  muster doctor                            check this host, if a job does not "
	      "start\n",
	      out);
	size_t next = 0;
	for (size_t i = 0; i < ARRAY_LEN(headings); i++) {
		fprintf(out, "\n%s:\n", headings[i].title);
		for (size_t end = next + headings[i].count; next < end; next++)
			fprintf(out, "  %-12s %s\n", commands[next]->name, commands[next]->summary);
	}
	fputs("\n'muster help COMMAND' explains one; 'man muster' has the exit codes; 'muster "
	      "--version'\nprints the version.\n",
	      out);
}

/* Whether the user meant `muster run NAME`. */
static bool looks_runnable(const char *name)
{
	size_t len = strlen(name);
	return strchr(name, '/') || (len > 3 && str_eq(name + len - 3, ".py")) ||
	       access(name, F_OK) == 0;
}

static int unknown_option(const char *word)
{
	if (opt_known(command_run.opts, word))
		fprintf(stderr, "muster: '%s' is an option of a command: 'muster run %s ...'\n",
			word, word);
	else
		fprintf(stderr, "muster: unknown option '%s'; 'muster --help' explains\n", word);
	return EXIT_CODE_USAGE;
}

static int unknown_command(const char *name)
{
	if (*name == '-')
		return unknown_option(name);
	const char *nearest = NULL;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		nearest = str_nearest(name, commands[i]->name, nearest);
	if (looks_runnable(name))
		fprintf(stderr,
			"muster: '%s' is not a command; to start it as workers: 'muster run %s'\n",
			name, name);
	else if (nearest)
		fprintf(stderr, "muster: unknown command '%s'; did you mean '%s'?\n", name,
			nearest);
	else
		fprintf(stderr, "muster: unknown command '%s'; 'muster help' lists them\n", name);
	return EXIT_CODE_USAGE;
}

/* `muster help COMMAND`, and for the build: `muster help --options COMMAND`, `--words
 * COMMAND`, `--texts [COMMAND]`, `--commands`. */
struct help_options {
	bool list_options;
	bool list_texts;
	bool list_words;
	bool list_commands;
};

static const struct opt help_opts[] = {
	OPT_FLAG("options", NULL, struct help_options, list_options,
		 "print the option names of COMMAND for programs"),
	OPT_FLAG("words", NULL, struct help_options, list_words,
		 "print what the first argument of COMMAND may be for programs"),
	OPT_FLAG("texts", NULL, struct help_options, list_texts,
		 "print the options of COMMAND, or the commands, with their help for programs"),
	OPT_FLAG("commands", NULL, struct help_options, list_commands,
		 "print the command names for programs"),
	OPT_END,
};

static const char *command_name(size_t i)
{
	return i < ARRAY_LEN(commands) ? commands[i]->name : NULL;
}

static void print_summaries(void)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("%s\t%s\n", commands[i]->name, commands[i]->summary);
}

static void print_words(const struct command *command)
{
	const char *word;
	for (size_t i = 0; command->word && (word = command->word(i)); i++)
		puts(word);
}

static int help_main(const struct command *self, int argc, char **argv)
{
	struct help_options o = { 0 };
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	if (o.list_commands) {
		print_words(self);
		return EXIT_CODE_OK;
	}
	if (first >= argc && o.list_texts) {
		print_summaries();
		return EXIT_CODE_OK;
	}
	if (first >= argc) {
		print_overview(stdout);
		return EXIT_CODE_OK;
	}
	const struct command *command = find_command(argv[first]);
	if (!command)
		return unknown_command(argv[first]);
	if (o.list_options)
		opt_print_names(command->opts, stdout);
	else if (o.list_texts)
		opt_print_help_lines(command->opts, stdout);
	else if (o.list_words)
		print_words(command);
	else
		command_print_help(command, stdout);
	return EXIT_CODE_OK;
}

const struct command command_help = {
	.name = "help",
	.synopsis = "[COMMAND]",
	.summary = "explain a command",
	.opts = help_opts,
	.mode = OPT_PERMUTE,
	.word = command_name,
	.main = help_main,
};

static int set_log_level(void)
{
	const char *text = getenv("LOGLEVEL");
	if (!text || !*text)
		return 0;
	int level = log_parse_level(text);
	if (level < 0) {
		fprintf(stderr,
			"muster: LOGLEVEL: unknown level '%s' (use DEBUG, INFO, WARNING or "
			"ERROR)\n",
			text);
		return EXIT_CODE_USAGE;
	}
	log_set_level((enum log_level)level);
	return 0;
}

int main(int argc, char **argv)
{
	if (fd_open_standard() < 0)
		return EXIT_CODE_SYSTEM; /* there is no way to say why */
	int status = set_log_level();
	if (status)
		return status;
	process_title_know_arguments(argc, argv);

	const char *slash = strrchr(argv[0], '/');
	if (str_eq(slash ? slash + 1 : argv[0], "torchrun")) {
		command_set_title("torchrun");
		return command_run.main(&command_run, argc, argv);
	}
	if (argc < 2) {
		print_overview(stderr);
		return EXIT_CODE_USAGE;
	}
	if (str_eq(argv[1], "--version") || str_eq(argv[1], "-V") || str_eq(argv[1], "version")) {
		puts("muster " MUSTER_VERSION);
		return EXIT_CODE_OK;
	}
	if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")) {
		print_overview(stdout);
		return EXIT_CODE_OK;
	}
	/* Not for people: `muster run --hosts` starts it on other hosts. */
	if (str_eq(argv[1], FLEET_COMMAND))
		return relay_main(argc - 1, argv + 1);
	/* Nor this: the child that measures the wire to another node. */
	if (str_eq(argv[1], WIRE_COMMAND))
		return wire_main();
	const struct command *command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	return command->main(command, argc - 1, argv + 1);
}
