#include "core/worker/judgement.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/worker/symptoms.h"

/* ---- signals and codes ---- */

struct row {
	int value;
	enum failure_class class;
	enum failure_certainty certainty;
	enum failure_advice advice;
	const char *hint;
	bool foreign; /* somebody else sent it: what the program printed is not why */
};

static const struct row by_signal[] = {
	{ SIGKILL, CLASS_MEMORY, CERTAINTY_GUESS, ADVICE_NONE,
	  "muster did not send it: most often the kernel's out-of-memory killer; look at "
	  "'dmesg -T | grep -i oom' and lower the memory a worker needs",
	  true },
	{ SIGTERM, CLASS_PREEMPTION, CERTAINTY_GUESS, ADVICE_RESTART,
	  "muster did not send it: a batch system's time limit or pre-emption, or a user", true },
	{ SIGINT, CLASS_PREEMPTION, CERTAINTY_GUESS, ADVICE_NONE,
	  "muster did not send it: a user interrupted this worker alone", true },
	{ SIGHUP, CLASS_PREEMPTION, CERTAINTY_GUESS, ADVICE_RESTART,
	  "muster did not send it: its terminal or session ended", true },
	{ SIGSEGV, CLASS_CODE, CERTAINTY_LIKELY, ADVICE_FIX,
	  "a crash in native code: open the core with coredumpctl; for Python set "
	  "PYTHONFAULTHANDLER=1",
	  false },
	{ SIGBUS, CLASS_STORAGE, CERTAINTY_GUESS, ADVICE_FIX,
	  "often a full /dev/shm or a file that shrank under a mapping: look with df -h /dev/shm",
	  false },
	{ SIGABRT, CLASS_CODE, CERTAINTY_GUESS, ADVICE_NONE,
	  "the program gave up by itself: its last lines say why; for Python set "
	  "PYTHONFAULTHANDLER=1",
	  false },
	{ SIGFPE, CLASS_CODE, CERTAINTY_KNOWN, ADVICE_FIX,
	  "a division by zero in native code; for Python set PYTHONFAULTHANDLER=1", false },
	{ SIGILL, CLASS_CONFIGURATION, CERTAINTY_LIKELY, ADVICE_ELSEWHERE,
	  "built for another processor: look which library was compiled with what this CPU lacks",
	  false },
	{ SIGPIPE, CLASS_CODE, CERTAINTY_GUESS, ADVICE_NONE,
	  "it wrote to a pipe whose reader had gone", false },
	{ SIGXCPU, CLASS_CONFIGURATION, CERTAINTY_KNOWN, ADVICE_FIX,
	  "its CPU time limit is used up: raise 'ulimit -t'", false },
	{ SIGXFSZ, CLASS_CONFIGURATION, CERTAINTY_KNOWN, ADVICE_FIX,
	  "its file size limit is used up: raise 'ulimit -f'", false },
	{ SIGSYS, CLASS_CONFIGURATION, CERTAINTY_KNOWN, ADVICE_FIX,
	  "a system call was refused by a filter: look at the container's seccomp profile", false },
};

static const struct row by_code[] = {
	{ 126, CLASS_CONFIGURATION, CERTAINTY_LIKELY, ADVICE_FIX,
	  "a shell's code for: a program was found but is not executable", false },
	{ 127, CLASS_CONFIGURATION, CERTAINTY_LIKELY, ADVICE_FIX,
	  "a shell's code for: a program was not found; check its name and PATH", false },
	{ 137, CLASS_MEMORY, CERTAINTY_GUESS, ADVICE_NONE,
	  "a shell's code for: a program got SIGKILL, most often from the out-of-memory killer",
	  false },
	{ 139, CLASS_CODE, CERTAINTY_LIKELY, ADVICE_FIX,
	  "a shell's code for: a program crashed with SIGSEGV", false },
	{ 143, CLASS_PREEMPTION, CERTAINTY_GUESS, ADVICE_RESTART,
	  "a shell's code for: a program got SIGTERM", false },
};

static const struct row *row_of(const struct exit_status *status)
{
	const bool signal = status->kind == EXIT_SIGNAL;
	const struct row *rows = signal ? by_signal : by_code;
	size_t count = signal ? ARRAY_LEN(by_signal) : ARRAY_LEN(by_code);
	for (size_t i = 0; status->kind != EXIT_UNKNOWN && i < count; i++)
		if (rows[i].value == status->value)
			return &rows[i];
	return NULL;
}

/* ---- what the launcher saw ---- */

static const struct judgement by_reason[FAILURE_REASON_COUNT] = {
	[FAILURE_SPAWN] = { CLASS_CONFIGURATION, CERTAINTY_KNOWN, ADVICE_FIX, "launcher",
			    "it could not be started", NULL },
	[FAILURE_WARDEN] = { CLASS_HOST, CERTAINTY_GUESS, ADVICE_RESTART, "launcher",
			     "the parent of the workers was killed",
			     "the parent process of the workers was killed; how they ended is "
			     "unknown" },
	[FAILURE_TIMER] = { CLASS_UNKNOWN, CERTAINTY_KNOWN, ADVICE_RESTART, "launcher",
			    "its watchdog expired", "its stack is in the messages above" },
	[FAILURE_HANG] = { CLASS_UNKNOWN, CERTAINTY_KNOWN, ADVICE_RESTART, "launcher",
			   "it showed no sign of life", "its stack is in the messages above" },
	[FAILURE_ABORT] = { CLASS_CODE, CERTAINTY_LIKELY, ADVICE_NONE, "launcher",
			    "it called MPI_Abort", NULL },
	[FAILURE_UNFINALIZED] = { CLASS_CODE, CERTAINTY_LIKELY, ADVICE_FIX, "launcher",
				  "it ended without MPI_Finalize", NULL },
	[FAILURE_PMI] = { CLASS_CONFIGURATION, CERTAINTY_LIKELY, ADVICE_FIX, "launcher",
			  "it broke the protocol between MPI and its launcher", NULL },
	[FAILURE_LOST] = { CLASS_HOST, CERTAINTY_KNOWN, ADVICE_ELSEWHERE, "launcher",
			   "its host was lost", NULL },
	[FAILURE_LEFT] = { CLASS_PREEMPTION, CERTAINTY_LIKELY, ADVICE_RESTART, "launcher",
			   "the muster of its host was stopped", NULL },
};

static void take(struct judgement *judgement, const struct symptom *symptom, const char *from)
{
	*judgement = (struct judgement){ symptom->class, symptom->certainty, symptom->advice,
					 from,		 symptom->text,	     symptom->hint };
}

static void take_row(struct judgement *judgement, const struct row *row, bool signal)
{
	*judgement = (struct judgement){ row->class,
					 row->certainty,
					 row->advice,
					 signal ? "signal" : "exit code",
					 signal ? str_signal_name(row->value) : NULL,
					 row->hint };
}

/* "… Out of memory: Killed process 1234 (python)" */
static bool kernel_killed(const char *log, pid_t pid)
{
	char words[48];
	snprintf(words, sizeof(words), "Killed process %d ", (int)pid);
	return pid > 0 && strstr(log, words);
}

static void take_oom(struct judgement *judgement, const char *from)
{
	*judgement = (struct judgement){
		CLASS_MEMORY,
		CERTAINTY_KNOWN,
		ADVICE_FIX,
		from,
		"killed by the kernel: out of memory",
		"the kernel's out-of-memory killer ended it: lower the memory a worker needs, or "
		"raise the cgroup's limit",
	};
}

/* The last line first: that is where an exception stands, and lines before it may be those of
 * troubles that were overcome. */
static const struct symptom *find_in_words(const char *words)
{
	size_t end = strlen(words);
	while (end > 0 && (words[end - 1] == '\n' || words[end - 1] == ' '))
		end--;
	size_t from = end;
	while (from > 0 && words[from - 1] != '\n')
		from--;
	const struct symptom *symptom = symptom_find(symptoms, words + from);
	return symptom ? symptom : symptom_find(symptoms, words);
}

void judge_failure(const struct evidence *evidence, struct judgement *ret)
{
	const struct exit_status *status = &evidence->status;
	const char *kernel = evidence->kernel ? evidence->kernel : "";
	const struct row *row = row_of(status);
	const struct symptom *symptom;
	*ret = (struct judgement){ .from = "none" };
	bool watched = evidence->reason != FAILURE_EXIT;
	if (watched && by_reason[evidence->reason].from)
		*ret = by_reason[evidence->reason];
	else if (exit_status_killed(status) && evidence->oom_kill)
		take_oom(ret, "cgroup");
	else if (exit_status_killed(status) && kernel_killed(kernel, evidence->pid))
		take_oom(ret, "kernel log");
	else if ((symptom = symptom_find(kernel_symptoms, kernel)))
		take(ret, symptom, "kernel log");
	else if (!(row && row->foreign) && evidence->words &&
		 (symptom = find_in_words(evidence->words)))
		take(ret, symptom, "error text");
	else if (row)
		take_row(ret, row, status->kind == EXIT_SIGNAL);
}

void judge_text(const char *text, struct judgement *ret)
{
	const struct symptom *symptom = find_in_words(text);
	*ret = (struct judgement){ .from = "none" };
	if (!symptom)
		symptom = symptom_find(kernel_symptoms, text);
	if (symptom)
		take(ret, symptom, "error text");
}
