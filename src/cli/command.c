#include "cli/command.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/worker/exit_code.h"

#define WIDTH_DEFAULT 80
#define WIDTH_MIN 40
#define WIDTH_MAX 1000

static const char *title_override;

void command_set_title(const char *title)
{
	title_override = title;
}

const char *command_title(const struct command *command)
{
	static char title[64];
	if (title_override)
		return title_override;
	snprintf(title, sizeof(title), "muster %s", command->name);
	return title;
}

/* What the user asks for; 0: nothing. */
static int asked_width(void)
{
	const char *columns = getenv("COLUMNS");
	int64_t width;
	bool valid = columns && str_to_i64(columns, &width) == 0 && width >= WIDTH_MIN &&
		     width <= WIDTH_MAX;
	return valid ? (int)width : 0;
}

static int terminal_width(void)
{
	struct winsize size;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN;
	return known ? size.ws_col : 0;
}

int command_width(void)
{
	int width = asked_width();
	return width ? width : terminal_width();
}

static int help_width(void)
{
	int width = command_width();
	return width && (asked_width() || width < WIDTH_DEFAULT) ? width : WIDTH_DEFAULT;
}

void command_print_help(const struct command *command, FILE *out)
{
	fprintf(out, "usage: %s %s\n\n%s\n", command_title(command), command->synopsis,
		command->summary);
	if (command->opts)
		opt_print_help(command->opts, out, help_width());
	if (command->footer)
		fprintf(out, "\n%s", command->footer);
}

static void print_safely(FILE *out, const char *before, const char *fmt, va_list args)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_printf(&text, "%s%s", before, *before ? ": " : "");
	buf_vprintf(&text, fmt, args);
	buf_append_str(&text, *before ? "\n" : "");
	utf8_make_rest_printable(&text, 0, "\t\n");
	fwrite(buf_data(&text), 1, buf_len(&text), out); /* at once: others write there, too */
}

void command_print(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	print_safely(stdout, "", fmt, args);
	va_end(args);
}

void command_complain(const struct command *command, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	print_safely(stderr, command_title(command), fmt, args);
	va_end(args);
}

int command_usage_error(const struct command *command, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	print_safely(stderr, command_title(command), fmt, args);
	va_end(args);
	fprintf(stderr, "try '%s --help'\n", command_title(command));
	return EXIT_CODE_USAGE;
}

bool command_parse(const struct command *command, void *into, int argc, char **argv,
		   struct opt_seen *ret_seen, int *ret_first, int *ret_status)
{
	struct err err = ERR_INIT;
	int r = opt_parse(command->opts, command->mode, into, argc, argv, ret_seen, &err);
	if (r == OPT_WANTS_HELP) {
		command_print_help(command, stdout);
		*ret_status = EXIT_CODE_OK;
		return false;
	}
	if (r < 0) {
		*ret_status = command_usage_error(command, "%s", err.msg);
		return false;
	}
	*ret_first = r;
	return true;
}
