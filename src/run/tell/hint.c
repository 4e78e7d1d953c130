#include "run/tell/hint.h"

#include <signal.h>
#include <stdio.h>

static const struct {
	const char *text; /* in the end of the worker's output */
	const char *hint; /* %s: the interpreter */
} by_text[] = {
	{ "ModuleNotFoundError",
	  "install the module for %s, or name another interpreter in PYTHON_EXEC" },
	{ "CUDA out of memory",
	  "lower the batch size, or look with nvidia-smi for another job on the device" },
	{ "torch.OutOfMemoryError", "lower the batch size, or look for another job on the device" },
	{ "MemoryError", "the worker ran out of memory: lower its needs, or raise 'ulimit -v' or "
			 "the cgroup's limit" },
	{ "Cannot allocate memory", "the worker ran out of memory: lower its needs, or raise "
				    "'ulimit -v' or the cgroup's limit" },
	{ "Address already in use",
	  "another program has the port: leave --master-port out, and a free one is taken" },
	{ "EADDRINUSE",
	  "another program has the port: leave --master-port out, and a free one is taken" },
	{ "No space left on device", "a disk is full: look with df -h (/dev/shm too)" },
	{ "Too many open files", "raise 'ulimit -n'" },
	{ "terminate called without an active exception",
	  "if it was at its end, a thread of PyTorch outlived the interpreter: end with "
	  "os._exit(0) after destroy_process_group()" },
	{ "GLIBC_", "the program was built for a newer system: build it on this one" },
	{ "Connection refused", "a peer was not there: look at the other failures and earlier "
				"attempts for the first death" },
	{ "Connection reset by peer",
	  "a peer died: look at the other failures for the first death" },
};

static const struct {
	int signal;
	const char *hint;
} by_signal[] = {
	{ SIGKILL, "muster did not send it: most often the kernel's out-of-memory killer; look at "
		   "'dmesg -T | grep -i oom' and "
		   "lower the memory a worker needs" },
	{ SIGTERM, "muster did not send it: a batch system's time limit or pre-emption, or "
		   "a user" },
	{ SIGINT, "muster did not send it: a user interrupted this worker alone" },
	{ SIGHUP, "muster did not send it: its terminal or session ended" },
	{ SIGSEGV, "a crash in native code: open the core with coredumpctl; for Python set "
		   "PYTHONFAULTHANDLER=1" },
	{ SIGBUS,
	  "often a full /dev/shm or a file that shrank under a mapping: look with df -h /dev/shm" },
	{ SIGABRT, "the program gave up by itself: its last lines say why; for Python set "
		   "PYTHONFAULTHANDLER=1" },
	{ SIGFPE, "a division by zero in native code; for Python set PYTHONFAULTHANDLER=1" },
	{ SIGILL,
	  "built for another processor: look which library was compiled with what this CPU lacks" },
	{ SIGPIPE, "it wrote to a pipe whose reader had gone" },
	{ SIGXCPU, "its CPU time limit is used up: raise 'ulimit -t'" },
	{ SIGXFSZ, "its file size limit is used up: raise 'ulimit -f'" },
	{ SIGSYS,
	  "a system call was refused by a filter: look at the container's seccomp profile" },
};

static const struct {
	int code;
	const char *hint;
} by_code[] = {
	{ 126, "a shell's code for: a program was found but is not executable" },
	{ 127, "a shell's code for: a program was not found; check its name and PATH" },
	{ 137, "a shell's code for: a program got SIGKILL, most often from the "
	       "out-of-memory killer" },
	{ 139, "a shell's code for: a program crashed with SIGSEGV" },
};

static const char *hint_from_status(const struct exit_status *status)
{
	if (status->kind == EXIT_SIGNAL)
		for (size_t i = 0; i < ARRAY_LEN(by_signal); i++)
			if (by_signal[i].signal == status->value)
				return by_signal[i].hint;
	if (status->kind == EXIT_CODE)
		for (size_t i = 0; i < ARRAY_LEN(by_code); i++)
			if (by_code[i].code == status->value)
				return by_code[i].hint;
	return NULL;
}

/* As argparse, click, getopt and others say it. */
static bool refuses_option(const char *text)
{
	static const char *const words[] = { "unrecognized argument", "unrecognized option",
					     "unrecognised",	      "no such option",
					     "No such option",	      "unknown option",
					     "invalid option" };
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

const char *hint_for(const struct history_failure *failure, const struct run_config *config,
		     const char *text, char *room, size_t size)
{
	if (failure->reason == FAILURE_WARDEN)
		return "the parent process of the workers was killed; how they ended is unknown";
	if (failure->reason == FAILURE_TIMER || failure->reason == FAILURE_HANG)
		return failure->elsewhere ? "its stack is in the report of its host"
					  : "its stack is in the messages above";
	if (config->misplaced && refuses_option(text)) {
		snprintf(room, size, "%.*s is also an option of muster run: put it before %.100s",
			 (int)strcspn(config->misplaced, "="), config->misplaced,
			 config->entry.title);
		return room;
	}
	if (!config->master_port &&
	    (strstr(text, "Address already in use") || strstr(text, "EADDRINUSE")))
		return "another program has a port that the worker itself asks for";
	for (size_t i = 0; i < ARRAY_LEN(by_text); i++) {
		if (!strstr(text, by_text[i].text))
			continue;
		if (!strstr(by_text[i].hint, "%s"))
			return by_text[i].hint;
		if (!config->entry.python)
			continue;
		snprintf(room, size, by_text[i].hint, config->entry.path);
		return room;
	}
	const char *hint = hint_from_status(&failure->status);
	if (hint || *text || !config->entry.python)
		return hint;
	return "decorate the main function with "
	       "torch.distributed.elastic.multiprocessing.errors.record to see "
	       "its traceback here, or use --capture=always";
}
