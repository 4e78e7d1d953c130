/* muster: the command table, and what is common to all commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "core/worker/exit_code.h"

#ifndef MUSTER_VERSION
#error "the version comes from the build"
#endif

/* In the order of the overview. */
#define COMMANDS(X) \
	X(run) \
	X(batch) \
	X(compare) \
	X(trend) \
	X(bisect) \
	X(help) \
	X(sim) \
	X(coordinator) \
	X(store) \
	X(kv) \
	X(status) \
	X(logs) \
	X(stacks) \
	X(restart) \
	X(stop) \
	X(timer)

#define DECLARE(name) extern const struct command command_##name;
#define POINT_TO(name) &command_##name,

COMMANDS(DECLARE)

static const struct command *const commands[] = { COMMANDS(POINT_TO) };

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
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n'muster help COMMAND' explains one; 'muster --version' prints the version.\n",
	      out);
}

static int unknown_command(const char *name)
{
	const char *nearest = NULL;
	for (size_t i = 0; *name != '-' && i < ARRAY_LEN(commands); i++)
		nearest = str_nearest(name, commands[i]->name, nearest);
	if (*name == '-')
		fprintf(stderr, "muster: unknown option '%s'; 'muster --help' explains\n", name);
	else if (nearest)
		fprintf(stderr, "muster: unknown command '%s'; did you mean '%s'?\n", name,
			nearest);
	else
		fprintf(stderr, "muster: unknown command '%s'; 'muster help' lists them\n", name);
	return EXIT_CODE_USAGE;
}

/* `muster help COMMAND`, and for the build: `muster help --options COMMAND`, `--words
 * COMMAND`, `--commands`. */
struct help_options {
	bool list_options;
	bool list_words;
	bool list_commands;
};

static const struct opt help_opts[] = {
	OPT_FLAG("options", NULL, struct help_options, list_options,
		 "print the option names of COMMAND for programs"),
	OPT_FLAG("words", NULL, struct help_options, list_words,
		 "print what the first argument of COMMAND may be for programs"),
	OPT_FLAG("commands", NULL, struct help_options, list_commands,
		 "print the command names for programs"),
	OPT_END,
};

static const char *command_name(size_t i)
{
	return i < ARRAY_LEN(commands) ? commands[i]->name : NULL;
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
	if (first >= argc) {
		print_overview(stdout);
		return EXIT_CODE_OK;
	}
	const struct command *command = find_command(argv[first]);
	if (!command)
		return unknown_command(argv[first]);
	if (o.list_options)
		opt_print_names(command->opts, stdout);
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

	const char *slash = strrchr(argv[0], '/');
	if (str_eq(slash ? slash + 1 : argv[0], "torchrun")) {
		command_set_title("torchrun");
		return command_run.main(&command_run, argc, argv);
	}
	if (argc < 2) {
		print_overview(stderr);
		return EXIT_CODE_USAGE;
	}
	if (str_eq(argv[1], "--version")) {
		puts("muster " MUSTER_VERSION);
		return EXIT_CODE_OK;
	}
	if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")) {
		print_overview(stdout);
		return EXIT_CODE_OK;
	}
	const struct command *command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	return command->main(command, argc - 1, argv + 1);
}
