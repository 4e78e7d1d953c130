#include "core/worker/exit_status.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/str.h"
#include "core/worker/exit_code.h"

bool exit_status_killed(const struct exit_status *status)
{
	return status->kind != EXIT_UNKNOWN &&
	       exit_status_shell_code(status) == EXIT_CODE_SIGNAL_BASE + SIGKILL;
}

struct exit_status exit_status_from_wait(int wait_status)
{
	if (WIFEXITED(wait_status))
		return (struct exit_status){ EXIT_CODE, WEXITSTATUS(wait_status), false };
	if (WIFSIGNALED(wait_status))
		return (struct exit_status){ EXIT_SIGNAL, WTERMSIG(wait_status),
					     WCOREDUMP(wait_status) };
	return (struct exit_status){ .kind = EXIT_UNKNOWN };
}

int exit_status_shell_code(const struct exit_status *status)
{
	switch (status->kind) {
	case EXIT_CODE:
		return status->value;
	case EXIT_SIGNAL:
		return EXIT_CODE_SIGNAL_BASE + status->value;
	case EXIT_UNKNOWN:
		break;
	}
	return EXIT_CODE_SYSTEM;
}

void exit_status_describe(const struct exit_status *status, struct buf *out)
{
	if (status->kind == EXIT_CODE)
		buf_printf(out, "exit code %d", status->value);
	else if (status->kind == EXIT_UNKNOWN)
		buf_append_str(out, "unknown");
	else if (str_signal_name(status->value))
		buf_append_str(out, str_signal_name(status->value));
	else
		buf_printf(out, "signal %d", status->value);
	if (status->core_dumped)
		buf_append_str(out, " (core dumped)");
}
