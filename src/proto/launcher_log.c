#include "proto/launcher_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define LINE_MAX_LEN 512 /* longer ones are of no launcher */
#define SIGNAL_MAX 64
#define CODE_MAX 255

static struct exit_status from_number(int number)
{
	if (number < 0 && number >= -SIGNAL_MAX)
		return (struct exit_status){ EXIT_SIGNAL, -number, false };
	if (number >= 0 && number <= CODE_MAX)
		return (struct exit_status){ EXIT_CODE, number, false };
	return (struct exit_status){ .kind = EXIT_UNKNOWN };
}

/* A line of torchrun's table, below "Root Cause (first observed failure):". */
static void take_torchrun(const char *line, struct launcher_log *log)
{
	char host[LAUNCHER_HOST_MAX];
	int64_t rank;
	int number;
	if (sscanf(line, " host : %255s", host) == 1)
		memcpy(log->host, host, sizeof(host));
	else if (sscanf(line, " rank : %" SCNd64, &rank) == 1)
		log->rank = rank;
	else if (sscanf(line, " exitcode : %d", &number) == 1)
		log->status = from_number(number);
}

/* "srun: error: node3: task 2: Exited with exit code 1", "…: tasks 2-3: Killed" */
static void take_srun(const char *line, struct launcher_log *log)
{
	char host[LAUNCHER_HOST_MAX], how[64] = "";
	int64_t rank;
	int code;
	if (log->rank >= 0 ||
	    (sscanf(line, "srun: error: %255[^: ]: task %" SCNd64 ": %63[^\n]", host, &rank, how) !=
		     3 &&
	     sscanf(line, "srun: error: %255[^: ]: tasks %" SCNd64 "%*[^:]: %63[^\n]", host, &rank,
		    how) != 3))
		return;
	memcpy(log->host, host, sizeof(host));
	log->rank = rank;
	int signal = str_to_signal(strcmp(how, "Killed") == 0		   ? "SIGKILL"
				   : strcmp(how, "Terminated") == 0	   ? "SIGTERM"
				   : strncmp(how, "Segmentation", 12) == 0 ? "SIGSEGV"
				   : strncmp(how, "Aborted", 7) == 0	   ? "SIGABRT"
									   : "");
	if (sscanf(how, "Exited with exit code %d", &code) == 1)
		log->status = from_number(code);
	else if (signal > 0)
		log->status = from_number(-signal);
}

void launcher_log_read(const char *text, struct launcher_log *ret)
{
	const char *rest = text;
	bool in_table = false;
	size_t len;
	*ret = (struct launcher_log){ .rank = -1 };
	for (const char *at; (at = str_split(&rest, '\n', &len));) {
		char line[LINE_MAX_LEN];
		if (len >= sizeof(line))
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)len, at);
		in_table |= strstr(line, "Root Cause (first observed failure):") != NULL;
		if (in_table)
			take_torchrun(line, ret);
		else
			take_srun(line, ret);
	}
	ret->rank = MAX(ret->rank, (int64_t)-1);
}
