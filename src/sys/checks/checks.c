#include "sys/checks/checks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/checks/limits.h"
#include "core/worker/exit_code.h"
#include "proto/checks/check_json.h"
#include "sys/checks/checks_private.h"

#define OUTPUT_MAX ((size_t)64 << 10)
#define CHUNK 4096
#define KILLED_MS 200 /* in which a process that was killed ends, unless it hangs in the kernel */

/* In the order in which they run. Those that measure run alone, the others at once. */
static const struct {
	const char *name;
	check_fn *check;
	bool alone;
} table[] = {
	{ "cpu", check_cpu, true },
	{ "bandwidth", check_bandwidth, true },
	{ "memory", check_memory, false },
	{ "shm", check_shm, false },
	{ "storage", check_storage, false },
	{ "limits", check_limits, false },
	{ "cgroup", check_cgroup, false },
	{ "names", check_names, false },
	{ "ports", check_ports, false },
	{ "interfaces", check_interfaces, false },
	{ "reach", check_reach, false },
	{ "devices", check_devices, false },
	{ "hardware", check_hardware, false },
	{ "versions", check_versions, false },
	{ "script", check_script, false },
};

struct probe { /* one check under way */
	struct check_result result;
	const char *command; /* of the user; NULL: one of ours */
	bool storage;
	pid_t pid;
	int pidfd; /* -1: it has ended, or never began */
	int fd;	   /* of its output */
	struct buf output;
	uint64_t began_ns, deadline_ns;
};

struct probes {
	struct probe *items;
	size_t count, cap;
};

/* ---- in the child ---- */

_Noreturn static void probe_main(check_fn *check, const struct check_place *place,
				 struct check_result *result, int fd)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	check(place, result);
	struct json_out out = JSON_OUT(&text);
	check_json_write(&out, result);
	fd_write_all(fd, buf_data(&text), buf_len(&text));
	_exit(0);
}

_Noreturn static void command_main(const char *command, int fd)
{
	char *const argv[] = { "sh", "-c", (char *)command, NULL };
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execv("/bin/sh", argv);
	_exit(EXIT_CODE_NOT_FOUND);
}

/* ---- starting ---- */

static void probe_start(struct probes *probes, const char *name, check_fn *check,
			const struct check_place *place, const char *command, uint64_t deadline_ns)
{
	int ends[2];
	struct err err = ERR_INIT;
	ARRAY_RESERVE(probes->items, probes->count, probes->cap);
	struct probe *probe = &probes->items[probes->count++];
	*probe = (struct probe){ .command = command,
				 .storage = check == check_storage,
				 .pidfd = -1,
				 .fd = -1,
				 .output = BUF_INIT,
				 .began_ns = clock_now_ns(),
				 .deadline_ns = deadline_ns };
	snprintf(probe->result.name, sizeof(probe->result.name), "%s", name);
	if (fd_open_pipe(&ends[0], &ends[1], &err) < 0) {
		check_find(&probe->result, CHECK_UNKNOWN, "", "%s", err.msg);
		return;
	}
	pid_t parent = getpid();
	probe->pid = child_fork();
	if (probe->pid == 0) {
		setpgid(0, 0); /* the check and what it starts are killed together */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		if (command)
			command_main(command, ends[1]);
		probe_main(check, place, &probe->result, ends[1]);
	}
	if (probe->pid < 0) {
		check_find(&probe->result, CHECK_UNKNOWN, "", "no process can be started: %s",
			   strerror(errno));
	} else {
		setpgid(probe->pid, probe->pid); /* whoever is first */
		probe->pidfd = pidfd_open(probe->pid, 0);
		probe->fd = fd_take(&ends[0]);
		fd_set_nonblock(probe->fd, true);
	}
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

/* ---- ending ---- */

static void judge_late(struct probe *probe, const struct check_place *place)
{
	double seconds = (double)(probe->deadline_ns - probe->began_ns) / (double)NS_PER_S;
	if (probe->storage)
		check_find(&probe->result, CHECK_BAD,
			   "look at the disk or the file server; name another directory with "
			   "--log-dir",
			   "%s: no answer within %.3g s", place->dir, seconds);
	else
		check_find(&probe->result, CHECK_UNKNOWN, "", "it did not end within %.3g s",
			   seconds);
}

static void judge_command(struct probe *probe, int status)
{
	struct check_result *result = &probe->result;
	size_t len = buf_len(&probe->output);
	const char *text = buf_str(&probe->output);
	bool figures = check_json_figures(text, len, result);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		check_say(result, "%.*s", figures ? 2 : (int)strcspn(text, "\n"),
			  figures ? "ok" : text);
		return;
	}
	if (WIFSIGNALED(status))
		check_find(result, CHECK_UNKNOWN, "", "it was ended by signal %d",
			   WTERMSIG(status));
	else if (WEXITSTATUS(status) == EXIT_CODE_NOT_EXEC ||
		 WEXITSTATUS(status) == EXIT_CODE_NOT_FOUND)
		check_find(result, CHECK_UNKNOWN, "", "it could not be started");
	else
		check_find(result, CHECK_BAD, "what the command found must be mended on this host",
			   "it ended with code %d", WEXITSTATUS(status));
	if (*text)
		check_say(result, "%.*s", (int)strcspn(text, "\n"), text);
}

static void judge(struct probe *probe, int status)
{
	struct check_result read;
	if (probe->command)
		judge_command(probe, status);
	else if (status == 0 && check_json_read(buf_str(&probe->output), buf_len(&probe->output),
						&read, NULL) == 0)
		probe->result = read;
	else
		check_find(&probe->result, CHECK_UNKNOWN, "", "the check itself failed");
}

static void probe_finish(struct probe *probe, const struct check_place *place)
{
	int status = 0;
	if (probe->pid <= 0)
		return;
	bool late = probe->pidfd >= 0;
	/* It was not waited for yet, so the number of its group is still its own. */
	kill(-probe->pid, SIGKILL);
	if (late) {
		/* One that hangs in the kernel takes no signal; it ends when that lets it go. */
		struct pollfd end = { .fd = probe->pidfd, .events = POLLIN };
		poll(&end, 1, KILLED_MS);
		child_try_wait(probe->pid, &status);
		judge_late(probe, place);
	} else {
		judge(probe, child_wait(probe->pid));
	}
	fd_close(&probe->pidfd);
	fd_close(&probe->fd);
}

/* False: nothing more can be read now. */
static bool probe_read(struct probe *probe)
{
	ssize_t n = fd_read_some(probe->fd, CHUNK, &probe->output);
	if (n < 0)
		return false;
	if (n == 0 || buf_len(&probe->output) > OUTPUT_MAX)
		fd_close(&probe->fd);
	return probe->fd >= 0;
}

/* What it started may hold its output open: the end of the process counts. */
static void probe_see(struct probe *probe, const struct pollfd fds[2])
{
	if (fds[0].revents)
		probe_read(probe);
	if (!fds[1].revents)
		return;
	while (probe->fd >= 0 && probe_read(probe))
		;
	fd_close(&probe->pidfd);
}

static void probes_wait(struct probes *probes)
{
	AUTO_FREE struct pollfd *fds = NEW_ARRAY(struct pollfd, 2 * probes->count + 1);
	for (;;) {
		size_t running = 0;
		uint64_t now_ns = clock_now_ns(), deadline_ns = 0;
		for (size_t i = 0; i < probes->count; i++) {
			struct probe *probe = &probes->items[i];
			fds[2 * i] = (struct pollfd){ .fd = probe->fd, .events = POLLIN };
			fds[2 * i + 1] = (struct pollfd){ .fd = probe->pidfd, .events = POLLIN };
			bool runs = probe->pidfd >= 0 && now_ns < probe->deadline_ns;
			running += runs;
			deadline_ns = MAX(deadline_ns, runs ? probe->deadline_ns : 0);
		}
		if (running == 0)
			return;
		if (poll(fds, 2 * probes->count, clock_left_ms(deadline_ns, now_ns)) < 0) {
			if (errno != EINTR)
				return;
			continue;
		}
		for (size_t i = 0; i < probes->count; i++)
			probe_see(&probes->items[i], &fds[2 * i]);
	}
}

/* ---- all of them ---- */

static bool is_full(const char *which)
{
	return which && str_eq(which, "full");
}

static bool is_word(const char *word, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(word, name, len) == 0;
}

static bool is_all(const char *which)
{
	return !which || str_eq(which, "quick") || str_eq(which, "full");
}

/* By its own name. */
static bool is_listed(const char *which, const char *name)
{
	size_t len;
	if (is_all(which))
		return false;
	for (const char *word; (word = str_split(&which, ',', &len));)
		if (is_word(word, len, name))
			return true;
	return false;
}

bool checks_name(const char *which, const char *name)
{
	return is_all(which) || is_listed(which, name);
}

static int unknown_check(const char *word, size_t len, struct err *err)
{
	AUTO(buf_done) struct buf names = BUF_INIT;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		buf_printf(&names, "%s, ", table[i].name);
	return err_set(err, EINVAL, "there is no check '%.*s'; there are %s" CHECKS_PAIRS, (int)len,
		       word, buf_str(&names));
}

static int check_words(const char *which, struct err *err)
{
	size_t len;
	if (is_all(which) || !*which)
		return 0;
	for (const char *word; (word = str_split(&which, ',', &len));) {
		bool known = is_word(word, len, CHECKS_PAIRS);
		for (size_t i = 0; i < ARRAY_LEN(table); i++)
			known |= is_word(word, len, table[i].name);
		if (!known)
			return unknown_check(word, len, err);
	}
	return 0;
}

static void add_directories(const struct checks_spec *spec, struct strv *dirs)
{
	const char *temporary = getenv("TMPDIR");
	for (size_t i = 0; i < spec->dirs.count; i++)
		strv_add(dirs, spec->dirs.items[i]);
	if (spec->dirs.count)
		return;
	strv_add(dirs, ".");
	strv_add(dirs, temporary && *temporary ? temporary : "/tmp");
}

struct batch {
	const struct checks_spec *spec;
	struct check_limits limits;
	struct check_place *places; /* of the probes, in their order */
	struct probes probes;
	struct check_list *results;
};

static void batch_end(struct batch *batch)
{
	probes_wait(&batch->probes);
	for (size_t i = 0; i < batch->probes.count; i++) {
		struct probe *probe = &batch->probes.items[i];
		probe_finish(probe, &batch->places[i]);
		check_limits_apply(&batch->limits, &probe->result);
		check_list_add(batch->results, &probe->result);
		buf_done(&probe->output);
	}
	batch->probes.count = 0;
}

static uint64_t timeout_of(const struct checks_spec *spec, check_fn *check)
{
	bool slow = check == check_storage || check == check_versions || check == check_reach;
	if (spec->timeout_ns)
		return spec->timeout_ns;
	uint64_t usual_ns = is_full(spec->which) ? CHECKS_FULL_NS : CHECKS_QUICK_NS;
	return slow ? MAX(usual_ns, CHECKS_SLOW_NS) : usual_ns;
}

static void batch_add(struct batch *batch, const char *name, check_fn *check, const char *dir,
		      const char *command)
{
	struct check_place *place = &batch->places[batch->probes.count];
	*place = (struct check_place){ .spec = batch->spec,
				       .full = is_full(batch->spec->which),
				       .dir = dir };
	place->timeout_ns = timeout_of(batch->spec, check);
	probe_start(&batch->probes, name, check, place, command,
		    ns_add(clock_now_ns(), place->timeout_ns));
}

/* There is something to check. */
static bool has_object(const struct checks_spec *spec, check_fn *check)
{
	if (check == check_script)
		return spec->script;
	return check != check_reach || spec->reach.count > 0;
}

int checks_check_spec(const struct checks_spec *spec, struct err *err)
{
	struct check_limits limits;
	int r = check_words(spec->which, err);
	return r == 0 && spec->limits ? check_limits_parse(spec->limits, &limits, err) : r;
}

/* Each group as checks_run() makes them: what runs together ends together. */
uint64_t checks_longest_ns(const struct checks_spec *spec)
{
	uint64_t all_ns = 0, group_ns = 0;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (!checks_name(spec->which, table[i].name) || !has_object(spec, table[i].check))
			continue;
		group_ns = MAX(group_ns, timeout_of(spec, table[i].check));
		if (table[i].alone) {
			all_ns = ns_add(all_ns, group_ns);
			group_ns = 0;
		}
	}
	if (spec->checks.count > 0)
		group_ns = MAX(group_ns, timeout_of(spec, NULL));
	return ns_add(all_ns, group_ns);
}

static void add_word(struct strv *words, const char *option, const char *value)
{
	if (value)
		strv_take(words, mem_printf("--%s=%s", option, value));
}

static void add_each(struct strv *words, const char *option, const struct strv *values)
{
	for (size_t i = 0; i < values->count; i++)
		add_word(words, option, values->items[i]);
}

void checks_words(const struct checks_spec *spec, struct strv *words)
{
	strv_add(words, "--json");
	strv_add(words, "--nnodes=1"); /* also in a step of Slurm */
	add_word(words, "checks", spec->which);
	add_each(words, "dir", &spec->dirs);
	add_each(words, "reach", &spec->reach);
	add_each(words, "check", &spec->checks);
	if (spec->devices != CHECKS_ANY_DEVICES)
		strv_take(words, mem_printf("--devices=%lld", (long long)spec->devices));
	add_word(words, "script", spec->script);
	add_word(words, "python", spec->python);
	add_word(words, "limits", spec->limits);
	if (spec->timeout_ns)
		strv_take(words, mem_printf("--timeout=%.3f",
					    (double)spec->timeout_ns / (double)NS_PER_S));
}

int checks_run(const struct checks_spec *spec, struct check_list *ret_results, struct err *err)
{
	AUTO(strv_done) struct strv dirs = STRV_INIT;
	int r = check_words(spec->which, err);
	if (r < 0)
		return r;
	if (spec->reach.count == 0 && is_listed(spec->which, "reach"))
		return err_set(err, EINVAL,
			       "the check 'reach' needs hosts: --reach of muster doctor");
	add_directories(spec, &dirs);
	*ret_results = CHECK_LIST_INIT;
	AUTO_FREE struct check_place *places =
		NEW_ARRAY(struct check_place, ARRAY_LEN(table) + dirs.count + spec->checks.count);
	struct batch batch = { .spec = spec, .places = places, .results = ret_results };
	if (spec->limits && (r = check_limits_parse(spec->limits, &batch.limits, err)) < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		bool storage = table[i].check == check_storage;
		if (!checks_name(spec->which, table[i].name) || !has_object(spec, table[i].check))
			continue;
		for (size_t d = 0; d < (storage ? dirs.count : 1); d++)
			batch_add(&batch, table[i].name, table[i].check,
				  storage ? dirs.items[d] : NULL, NULL);
		if (table[i].alone)
			batch_end(&batch);
	}
	for (size_t i = 0; i < spec->checks.count; i++)
		batch_add(&batch, spec->checks.items[i], NULL, NULL, spec->checks.items[i]);
	batch_end(&batch);
	free(batch.probes.items);
	return 0;
}
