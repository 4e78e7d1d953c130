#include "run/preload.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/warm.h"
#include "run/preload_source.h"
#include "run/worker_env.h"

#define TEMPLATE_ID UINT64_MAX /* not the number of any worker */
#define ANSWER_S 30	       /* time limit for an answer */
#define LOAD_S 300	       /* time limit for the modules, without --start-timeout */
#define ANSWER_MAX 4096
#define FDS_EACH 4 /* gate, stdin, stdout, stderr */

/* The interpreter runs the text that comes on standard input, which then stays the connection to
 * us. Files in the working directory must not be mistaken for library modules. */
static const char bootstrap[] = "import sys; sys.path[:] = filter(None, sys.path); "
				"import socket; link = socket.socket(fileno=0); "
				"text = {'__name__': 'template'}; "
				"exec(compile(link.recv(1 << 20), '<template>', 'exec'), text); "
				"text['main'](link)";

/* Libraries read these when they are loaded: OpenMP and BLAS, the dynamic linker, malloc,
 * Python. */
static const char *const load_time[] = {
	"OMP_",	 "GOMP_", "KMP_",    "MKL_",   "OPENBLAS_", "GOTO_",
	"BLIS_", "LD_",	  "MALLOC_", "GLIBC_", "PYTHON",
};

/* A start that the warden does not know yet. */
struct start {
	uint64_t id;
	struct spawn_spec spec; /* points to the texts below and to descriptors of our own */
	struct strv argv, env;
	int gate; /* writing end; -1 before the request */
	bool cancelled;
};

enum preload_state {
	PRELOAD_OFF,	 /* no template: the warden starts workers */
	PRELOAD_LOADING, /* it imports modules; starts wait */
	PRELOAD_READY,
};

struct preload {
	const struct run_config *config;
	struct event_base *base;
	preload_failed_fn *on_failed;
	void *arg;
	struct strv env; /* of the template */
	uint64_t nofile_soft;

	enum preload_state state;
	struct warden *warden; /* its parent; borrowed */
	int link;
	struct event *on_link, *on_turn, *on_late;
	uint64_t since_ns;
	struct start *starts; /* oldest first */
	size_t count, cap;
	size_t asked; /* how many of the first were sent to the template */
	bool syncing; /* waiting for WARDEN_SYNCED before the request */
};

/* ---- one start ---- */

static void start_done(struct start *start)
{
	for (int i = 0; i < 3; i++)
		fd_close(&start->spec.stdio[i]); /* the markers are negative too */
	fd_close(&start->gate);
	strv_done(&start->argv);
	strv_done(&start->env);
}

/* A copy that outlives the call. The placement's pointers belong to the configuration. */
static int start_copy(uint64_t id, const struct spawn_spec *spec, struct start *ret_start)
{
	struct start start = { .id = id, .spec = *spec, .gate = -1 };
	int error = 0;
	for (int i = 0; i < 3; i++) {
		if (spec->stdio[i] < 0)
			continue;
		start.spec.stdio[i] = fcntl(spec->stdio[i], F_DUPFD_CLOEXEC, 3);
		if (start.spec.stdio[i] < 0)
			error = errno;
	}
	if (error) {
		start_done(&start);
		return -error;
	}
	strv_add_all(&start.argv, spec->argv);
	strv_add_all(&start.env, spec->envp);
	start.spec.argv = strv_argv(&start.argv);
	start.spec.envp = strv_argv(&start.env);
	*ret_start = start;
	return 0;
}

static void remove_starts(struct preload *preload, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++)
		start_done(&preload->starts[i]);
	preload->count -= count;
	memmove(preload->starts + first, preload->starts + first + count,
		(preload->count - first) * sizeof(*preload->starts));
}

/* Starts a worker in the usual way, through the warden. */
static void start_cold(struct preload *preload, const struct start *start)
{
	int r = start->cancelled ? 0
				 : warden_spawn(preload->warden, start->id, &start->spec, 0, NULL);
	if (r < 0)
		preload->on_failed(preload->arg, start->id, -r);
}

/* ---- the end of the template ---- */

static void event_drop(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

static void turn_off(struct preload *preload)
{
	preload->state = PRELOAD_OFF;
	preload->asked = 0;
	preload->syncing = false;
	event_drop(&preload->on_link);
	event_drop(&preload->on_turn);
	event_drop(&preload->on_late);
	fd_close(&preload->link);
}

/* Starts all waiting workers in the usual way. Processes that the template may have forked for them
 * find their gates closed, and end. */
static void give_up(struct preload *preload, const char *why)
{
	if (preload->state == PRELOAD_OFF)
		return;
	log_warn("--preload: %s; workers are started in the usual way", why);
	turn_off(preload);
	warden_signal(preload->warden, TEMPLATE_ID, SIGKILL);
	for (size_t i = 0; i < preload->count; i++)
		start_cold(preload, &preload->starts[i]);
	remove_starts(preload, 0, preload->count);
}

/* ---- asking ---- */

static void put_list(struct buf *out, char *const *words)
{
	size_t count = 0;
	while (words[count])
		count++;
	buf_printf(out, "%zu", count);
	buf_append_char(out, '\0');
	for (size_t i = 0; i < count; i++)
		buf_append(out, words[i], strlen(words[i]) + 1);
}

static void put_cpus(struct buf *out, const struct spawn_spec *spec)
{
	const char *comma = "";
	for (size_t cpu = 0; spec->cpus && cpu < spec->cpus_size * 8; cpu++)
		if (CPU_ISSET_S(cpu, spec->cpus_size, spec->cpus)) {
			buf_printf(out, "%s%zu", comma, cpu);
			comma = ",";
		}
	buf_append_char(out, '\0');
}

static void put_memory(struct buf *out, const struct spawn_spec *spec)
{
	const unsigned char *mask = (const unsigned char *)spec->mem_nodes;
	if (spec->mem_mode)
		buf_printf(out, "%d %d ", SYS_set_mempolicy, spec->mem_mode);
	for (size_t i = 0; spec->mem_mode && i < spec->mem_nodes_size; i++)
		buf_printf(out, "%02x", mask[i]);
	buf_append_char(out, '\0');
}

static void put_start(struct buf *out, const struct spawn_spec *spec)
{
	put_list(out, spec->argv);
	put_list(out, spec->envp);
	put_cpus(out, spec);
	put_memory(out, spec);
}

/* The descriptors of one worker: the gate that it reads, then stdio. `null` replaces missing
 * ones. */
static void put_fds(const struct start *start, int gate, int null, int *ret_fds)
{
	ret_fds[0] = gate;
	for (int i = 0; i < 3; i++) {
		int fd = start->spec.stdio[i];
		ret_fds[1 + i] = fd == SPAWN_INHERIT ? i : fd == SPAWN_NULL ? null : fd;
	}
}

static int send_with_fds(int link, const int *fds, size_t count)
{
	char byte = 'F', control[CMSG_SPACE(sizeof(int) * (1 + WARM_BATCH_MAX * FDS_EACH))];
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = CMSG_SPACE(sizeof(int) * count) };
	memset(control, 0, sizeof(control));
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
	return sendmsg(link, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Sends the first `count` starts. The caller closes the template's ends of their gates in any
 * case. */
static int send_batch(struct preload *preload, size_t count, int gates[WARM_BATCH_MAX], int null)
{
	int fds[1 + WARM_BATCH_MAX * FDS_EACH];
	AUTO(buf_done) struct buf words = BUF_INIT;
	AUTO(fd_close) int file = memfd_create("workers", MFD_CLOEXEC);
	if (file < 0)
		return -errno;
	for (size_t i = 0; i < count; i++) {
		struct start *start = &preload->starts[i];
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		gates[i] = ends[0];
		start->gate = ends[1];
		put_start(&words, &start->spec);
		put_fds(start, gates[i], null, fds + 1 + i * FDS_EACH);
	}
	int r = fd_write_all(file, buf_data(&words), buf_len(&words));
	if (r < 0)
		return r;
	fds[0] = file;
	return send_with_fds(preload->link, fds, 1 + count * FDS_EACH);
}

/* Requests all waiting workers, if the template is free.
 *
 *	we ask the warden to signal the orphans of a round;  the round ends;
 *	we request new workers;  they are forked and orphaned;
 *	the warden handles our first request, and signals them
 *
 * So the warden must have handled all our requests first. */
static void ask(struct preload *preload)
{
	if (preload->state != PRELOAD_READY || preload->asked || preload->syncing ||
	    preload->count == 0)
		return;
	preload->syncing = true;
	warden_sync(preload->warden);
}

static void ask_now(struct preload *preload)
{
	size_t count = MIN(preload->count, (size_t)WARM_BATCH_MAX);
	preload->syncing = false;
	if (preload->state != PRELOAD_READY || count == 0) /* all were cancelled meanwhile */
		return;
	int gates[WARM_BATCH_MAX];
	for (size_t i = 0; i < ARRAY_LEN(gates); i++)
		gates[i] = -1;
	AUTO(fd_close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int r = null < 0 ? -errno : send_batch(preload, count, gates, null);
	for (size_t i = 0; i < count; i++)
		fd_close(&gates[i]);
	if (r < 0) {
		AUTO_FREE char *why =
			mem_printf("cannot send a request to the template: %s", strerror(-r));
		give_up(preload, why);
		return;
	}
	preload->asked = count;
	event_add(preload->on_late, &(struct timeval){ .tv_sec = ANSWER_S });
}

/* ---- answers ---- */

static void adopt(struct preload *preload, const struct start *start, pid_t pid)
{
	int r = start->cancelled ? 0
				 : warden_adopt(preload->warden, start->id, pid, start->gate, NULL);
	if (r < 0)
		preload->on_failed(preload->arg, start->id, -r);
}

static void take_forked(struct preload *preload, const struct warm_answer *answer)
{
	size_t asked = preload->asked;
	for (size_t i = 0; i < asked; i++) {
		if (i < answer->count)
			adopt(preload, &preload->starts[i], answer->pids[i]);
		else
			start_cold(preload, &preload->starts[i]);
	}
	preload->asked = 0;
	event_del(preload->on_late);
	remove_starts(preload, 0, asked);
	ask(preload);
}

static void take_answer(struct preload *preload, const char *data, size_t len)
{
	struct warm_answer answer;
	if (warm_answer_parse(data, len, &answer) < 0)
		return give_up(preload, "the template sent an invalid answer");
	switch (answer.type) {
	case WARM_READY:
		log_info("--preload: ready after %.0f ms",
			 (double)(clock_now_ns() - preload->since_ns) / NS_PER_MS);
		preload->state = PRELOAD_READY;
		event_del(preload->on_late);
		ask(preload);
		break;
	case WARM_FORKED:
		take_forked(preload, &answer);
		break;
	case WARM_REFUSED:
		give_up(preload, answer.text);
		break;
	}
}

static void on_link(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct preload *preload = arg;
	char data[ANSWER_MAX];
	ssize_t len = recv(fd, data, sizeof(data), 0);
	if (len > 0)
		return take_answer(preload, data, (size_t)len);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* It is ending, and its exit will tell how; or it has closed the connection, and the time
	 * limit will tell. */
	event_del(preload->on_link);
	event_add(preload->on_late, &(struct timeval){ .tv_sec = ANSWER_S });
}

static void on_turn(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	ask(arg);
}

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	const struct preload *preload = arg;
	if (preload->state == PRELOAD_READY)
		return give_up(arg, "the template does not answer");
	char since[CLOCK_HUMAN_MAX];
	clock_human(clock_now_ns() - preload->since_ns, since);
	AUTO_FREE char *why =
		mem_printf("%s is not imported after %s", preload->config->preload, since);
	give_up(arg, why);
}

/* The warden's report of its end can come before what it said on the link is read. Only why it
 * refuses is of use then. */
static void take_last_words(struct preload *preload)
{
	char data[ANSWER_MAX];
	struct warm_answer answer;
	ssize_t len;
	while (preload->state != PRELOAD_OFF &&
	       (len = recv(preload->link, data, sizeof(data), MSG_DONTWAIT)) > 0)
		if (warm_answer_parse(data, (size_t)len, &answer) == 0 &&
		    answer.type == WARM_REFUSED)
			give_up(preload, answer.text);
}

bool preload_take_event(struct preload *preload, const struct warden_event *event)
{
	if (preload && event->type == WARDEN_SYNCED)
		ask_now(preload);
	if (!preload || event->id != TEMPLATE_ID)
		return false;
	AUTO(buf_done) struct buf why = BUF_INIT;
	if (event->type == WARDEN_SPAWN_FAILED) {
		buf_printf(&why, "the template cannot be started: %s", strerror(event->error));
		give_up(preload, buf_str(&why));
	} else if (event->type == WARDEN_EXITED) {
		take_last_words(preload);
		buf_append_str(&why, "the template ended: ");
		exit_status_describe(&event->status, &why);
		give_up(preload, buf_str(&why));
	}
	return true;
}

/* ---- beginning ---- */

/* Like a worker's in everything that is read at load time; without what only a worker may use. */
static void make_env(const struct run_config *config, struct strv *ret_env)
{
	struct worker_round round = { .local_world_size = config->nproc };
	strv_add_all(ret_env, environ);
	while (env_get(ret_env, "TORCHELASTIC_ERROR_FILE"))
		env_unset(ret_env, "TORCHELASTIC_ERROR_FILE");
	if (worker_env_limits_threads(&round, environ))
		env_set(ret_env, "OMP_NUM_THREADS", "1");
	run_placement_env(&config->placement, environ, 0, ret_env);
}

/* Its command line is longer than any worker's, so that workers can write theirs over it. */
static void make_argv(const struct run_config *config, struct strv *ret_argv)
{
	AUTO(strv_done) struct strv worker = STRV_INIT;
	entry_argv(&config->entry, 0, &worker);
	strv_add(ret_argv, worker.items[0]);
	strv_add(ret_argv, worker.items[1]);
	strv_add(ret_argv, "-c");
	strv_add(ret_argv, bootstrap);
	strv_add(ret_argv, config->preload);
	strv_add_all(ret_argv, strv_argv(&worker) + 2);
}

static int spawn_template(struct preload *preload, int link, struct err *err)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	make_argv(preload->config, &argv);
	struct spawn_spec spec = {
		.path = preload->config->entry.path,
		.argv = strv_argv(&argv),
		.envp = strv_argv(&preload->env),
		.nofile_soft = preload->nofile_soft,
		.ignores_usr = preload->config->workers_ignore_usr,
		.stdio = { link, SPAWN_INHERIT, SPAWN_INHERIT },
	};
	return warden_spawn(preload->warden, TEMPLATE_ID, &spec, WARDEN_ASIDE, err);
}

static int open_link(struct preload *preload, int *ret_theirs, struct err *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "socketpair: %m");
	preload->link = pair[0];
	*ret_theirs = pair[1];
	size_t len = (size_t)(preload_source_end - preload_source);
	if (fd_set_nonblock(preload->link, true) < 0 ||
	    send(preload->link, preload_source, len, MSG_NOSIGNAL) != (ssize_t)len)
		return err_set(err, errno, "send the template: %m");
	preload->on_link =
		event_new(preload->base, preload->link, EV_READ | EV_PERSIST, on_link, preload);
	preload->on_turn = event_new(preload->base, -1, 0, on_turn, preload);
	preload->on_late = event_new(preload->base, -1, 0, on_late, preload);
	if (!preload->on_link || !preload->on_turn || !preload->on_late ||
	    event_add(preload->on_link, NULL) < 0)
		return err_set(err, ENOMEM, "watch the template: %m");
	return 0;
}

/* A worker that loads the modules itself must show a sign of life in this time, too. */
static struct timeval load_limit(const struct hang_policy *hang)
{
	uint64_t limit_ns = hang->start_ns ? hang->start_ns : hang->silent_ns;
	return clock_timeval(limit_ns ? limit_ns : LOAD_S * NS_PER_S);
}

void preload_start(struct preload *preload, struct warden *warden)
{
	if (!preload)
		return;
	struct err err = ERR_INIT;
	AUTO(fd_close) int theirs = -1;
	preload->warden = warden;
	preload->since_ns = clock_now_ns();
	preload->state = PRELOAD_LOADING;
	int r = open_link(preload, &theirs, &err);
	if (r == 0)
		r = spawn_template(preload, theirs, &err);
	if (r < 0)
		return give_up(preload, err.msg);
	struct timeval limit = load_limit(&preload->config->guard.hang);
	event_add(preload->on_late, &limit);
}

void preload_lost(struct preload *preload)
{
	if (!preload)
		return;
	turn_off(preload);
	remove_starts(preload, 0, preload->count);
}

struct preload *preload_new(const struct run_config *config, uint64_t nofile_soft,
			    struct event_base *base, preload_failed_fn *on_failed, void *arg)
{
	struct preload *preload = NEW(struct preload);
	*preload = (struct preload){ .config = config,
				     .nofile_soft = nofile_soft,
				     .base = base,
				     .on_failed = on_failed,
				     .arg = arg,
				     .link = -1 };
	make_env(config, &preload->env);
	return preload;
}

void preload_free(struct preload *preload)
{
	if (!preload)
		return;
	preload_lost(preload);
	strv_done(&preload->env);
	free(preload->starts);
	free(preload);
}

/* ---- starts ---- */

static bool is_load_time(const char *variable)
{
	for (size_t i = 0; i < ARRAY_LEN(load_time); i++)
		if (str_starts(variable, load_time[i]))
			return true;
	return false;
}

/* The first load-time variable of `a` that `b` lacks or has with another value; NULL if there is
 * none. */
static const char *find_difference(char *const *a, char *const *b)
{
	for (; *a; a++) {
		if (!is_load_time(*a))
			continue;
		char *const *other = b;
		while (*other && !str_eq(*other, *a))
			other++;
		if (!*other)
			return *a;
	}
	return NULL;
}

bool preload_env_differs(char *const *worker, char *const *template, struct buf *ret_why)
{
	const char *variable = find_difference(worker, template);
	if (variable)
		buf_printf(ret_why, "%.128s is not what the template was started with", variable);
	else if ((variable = find_difference(template, worker)))
		buf_printf(ret_why, "the template was started with %.128s", variable);
	return variable;
}

static const char *rank_of(char *const *env)
{
	while (*env && !str_starts(*env, "RANK="))
		env++;
	return *env ? *env + strlen("RANK=") : "?";
}

static bool must_start_cold(const struct preload *preload, const struct spawn_spec *spec)
{
	if (preload->state == PRELOAD_OFF || spec->extra_fd > 0)
		return true;
	AUTO(buf_done) struct buf why = BUF_INIT;
	if (!preload_env_differs(spec->envp, strv_argv(&preload->env), &why))
		return false;
	log_warn("--preload: rank %s is started in the usual way: %s", rank_of(spec->envp),
		 buf_str(&why));
	return true;
}

int preload_spawn(struct preload *preload, struct warden *warden, uint64_t id,
		  const struct spawn_spec *spec, struct err *err)
{
	if (!preload || must_start_cold(preload, spec))
		return warden_spawn(warden, id, spec, 0, err);
	struct start start;
	int r = start_copy(id, spec, &start);
	if (r < 0)
		return err_set(err, -r, "cannot keep the descriptors of a worker: %m");
	ARRAY_RESERVE(preload->starts, preload->count, preload->cap);
	preload->starts[preload->count++] = start;
	event_active(preload->on_turn, 0,
		     0); /* later, so that all workers that start together form one batch */
	return 0;
}

static void take_back(struct preload *preload, size_t i)
{
	struct start *start = &preload->starts[i];
	/* if that fails, LOST follows anyway */
	warden_adopt(preload->warden, start->id, 0, -1, NULL);
	if (i >= preload->asked) {
		remove_starts(preload, i, 1);
		return;
	}
	start->cancelled = true;
	fd_close(&start->gate);
}

bool preload_cancel(struct preload *preload, uint64_t id)
{
	for (size_t i = 0; preload && i < preload->count; i++)
		if (preload->starts[i].id == id && !preload->starts[i].cancelled) {
			take_back(preload, i);
			return true;
		}
	return false;
}

void preload_cancel_all(struct preload *preload)
{
	for (size_t i = preload ? preload->count : 0; i-- > 0;)
		if (!preload->starts[i].cancelled)
			take_back(preload, i);
}
