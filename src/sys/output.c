#include "sys/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "core/lines/named_template.h"
#include "sys/output_pump.h"
#include "sys/thread.h"

#define MESSAGES_MAX ((size_t)256 * 1024)
#define FIRST_NUMBER 2 /* writers 0 and 1 of the screen are "none" and muster itself */

struct console *output_console(struct output *output, enum output_stream kind)
{
	return &output->consoles[output->one_console ? OUTPUT_STDOUT : kind];
}

void output_post(struct output *output, const struct output_event *event)
{
	struct event_node *node = NEW(struct event_node);
	node->event = *event;
	pthread_mutex_lock(&output->lock);
	bool first = list_empty(&output->events); /* the others are read with it */
	list_append(&output->events, &node->link);
	pthread_mutex_unlock(&output->lock);
	if (first)
		eventfd_write(output->notify_fd, 1);
}

int output_new(const struct output_config *config, struct output **ret_output, struct err *err)
{
	struct output *output = NEW(struct output);
	const char *prefix = config->prefix ? config->prefix : OUTPUT_PREFIX_DEFAULT;
	output->prefix_template = mem_strdup(prefix);
	output->merge = config->merge;
	output->log_max_size = config->log_max_size;
	output->steps = config->steps;
	output->queues = config->queue;
	output->next_number = FIRST_NUMBER;
	output->one_console = console_same_file(STDOUT_FILENO, STDERR_FILENO);
	pthread_mutex_init(&output->lock, NULL);
	list_init(&output->added);
	list_init(&output->ended);
	list_init(&output->events);
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++) {
		strv_add_all(&output->filters[i], strv_argv(&config->filters[i]));
		console_init(&output->consoles[i],
			     i == OUTPUT_STDOUT ? STDOUT_FILENO : STDERR_FILENO);
	}
	output->epoll_fd = -1;
	output->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	output->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (output->wake_fd < 0 || output->notify_fd < 0) {
		int r = err_set(err, errno, "eventfd: %m");
		output_free(output);
		return r;
	}
	*ret_output = output;
	return 0;
}

/* The first worker or message that needs the thread starts it. With the lock. */
static int start_thread(struct output *output, struct err *err)
{
	if (output->started)
		return 0;
	AUTO(fd_close) int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event wake = { .events = EPOLLIN, .data.ptr = NULL };
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, output->wake_fd, &wake) < 0)
		return err_set(err, errno, "epoll: %m");
	output->epoll_fd = epoll_fd;
	int r = thread_start(&output->thread, output_pump_main, output);
	if (r < 0)
		return err_set(err, -r, "start the output thread: %m");
	fd_take(&epoll_fd);
	output->started = true;
	return 0;
}

/* With the lock: orders that are given before the thread looks share one wake-up. Whoever gets true
 * calls wake() after that. */
static bool must_wake(struct output *output)
{
	bool first = !output->woken;
	output->woken = true;
	return first;
}

static void wake(const struct output *output)
{
	eventfd_write(output->wake_fd, 1);
}

static void free_worker(struct worker *worker)
{
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++) {
		struct stream *stream = &worker->streams[i];
		if (!stream->worker)
			continue;
		fd_close(&stream->fd);
		line_split_done(&stream->split);
		tail_done(&stream->kept);
		free(stream->prefix);
		free(stream->filter_prefix);
		free(stream->file_path);
		free(stream->filter_path);
	}
	free(worker->names.role_name);
	free(worker->names.host);
	free(worker->page);
	free(worker);
}

void output_worker_release(struct worker *worker)
{
	if (!worker->with_loop && !worker->with_pump)
		free_worker(worker);
}

void output_free(struct output *output)
{
	if (!output)
		return;
	if (output->started && !output->finished)
		return; /* the thread still uses all of it */
	if (output->started)
		pthread_join(output->thread, NULL);
	disk_free(output->disk);
	map_foreach(it, &output->workers) free_worker(it->value);
	map_done(&output->workers);
	for (struct list *link; (link = list_shift(&output->events));)
		free(list_entry(link, struct event_node, link));
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++) {
		strv_done(&output->filters[i]);
		console_done(&output->consoles[i]);
	}
	buf_done(&output->messages);
	line_queue_done(&output->queue);
	fd_close(&output->epoll_fd);
	fd_close(&output->wake_fd);
	fd_close(&output->notify_fd);
	pthread_mutex_destroy(&output->lock);
	free(output->prefix_template);
	free(output);
}

void output_render_prefix(const struct output *output, const struct prefix_names *names,
			  const char *rank, const char *local_rank, struct buf *out)
{
	char group_rank[24];
	snprintf(group_rank, sizeof(group_rank), "%" PRId64, names->group_rank);
	const struct template_name known[] = {
		{ "role_name", names->role_name }, { "rank", rank },
		{ "local_rank", local_rank },	   { "group_rank", group_rank },
		{ "host", names->host },
	};
	template_render(output->prefix_template, known, ARRAY_LEN(known), out);
}

/* The prefix of one worker, in the colour of its rank if asked for. */
static char *render_prefix(const struct output *output, const struct worker *worker, bool colour)
{
	static const char *const colours[] = { "36", "33", "32", "35", "34", "31" };
	char rank[24], local_rank[24];
	snprintf(rank, sizeof(rank), "%" PRId64, worker->names.rank_base + worker->local_rank);
	snprintf(local_rank, sizeof(local_rank), "%u", worker->local_rank);
	struct buf text = BUF_INIT;
	if (colour)
		buf_printf(&text, "\033[%sm", colours[worker->local_rank % ARRAY_LEN(colours)]);
	output_render_prefix(output, &worker->names, rank, local_rank, &text);
	if (colour)
		buf_append_str(&text, "\033[m");
	return buf_take_str(&text);
}

static char *copy_or_null(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static bool has_file(const struct output_route *route)
{
	return route->file || route->filter_file;
}

/* Whether both streams go to the same place, unchanged. */
static bool can_share_pipe(const struct output *output, const struct output_worker *worker)
{
	const struct output_route *out = &worker->route[OUTPUT_STDOUT],
				  *error = &worker->route[OUTPUT_STDERR];
	return output->one_console && out->console && error->console &&
	       out->prefix == error->prefix && !has_file(out) && !has_file(error);
}

static bool needs_pipe(const struct output *output, const struct output_worker *worker,
		       enum output_stream kind)
{
	const struct output_route *route = &worker->route[kind];
	return worker->count || output->steps || output->queues || has_file(route) ||
	       (route->console && route->prefix) || worker->keep_tail[kind];
}

/* A thousand workers need two thousand pipes, more than the usual soft limit allows. The warden was
 * forked before, so the workers keep the old limit. */
static int make_pipe(int ret_fds[2])
{
	int r = pipe2(ret_fds, O_CLOEXEC);
	if (r < 0 && errno == EMFILE) {
		fd_limit_raise();
		r = pipe2(ret_fds, O_CLOEXEC);
	}
	if (r < 0)
		return -errno;
	fcntl(ret_fds[0], F_SETFL, O_NONBLOCK); /* a new pipe has no other flag */
	return 0;
}

/* Makes the pipe and the thread's data about it. */
static int add_stream(struct output *output, struct worker *worker,
		      const struct output_worker *spec, enum output_stream kind, bool keep_tail,
		      int *ret_fd, struct err *err)
{
	int fds[2];
	int r = make_pipe(fds);
	if (r < 0)
		return err_set(err, -r, "pipe for a worker's output: %m");

	const struct output_route *route = &spec->route[kind];
	bool colour = output_console(output, kind)->colour;
	worker->streams[kind] = (struct stream){
		.worker = worker,
		.fd = fds[0],
		.number = output->next_number++,
		.kind = kind,
		.console = route->console,
		.tail = keep_tail,
		.merge = output->merge && route->console && route->prefix,
		.prefix = route->prefix ? render_prefix(output, worker, colour) : mem_strdup(""),
		.filter_prefix = render_prefix(output, worker, false),
		.file_path = copy_or_null(route->file),
		.filter_path = copy_or_null(route->filter_file),
		.split = { .blocks = !route->prefix && !route->filter_file && !output->steps &&
				     !output->queues },
	};
	*ret_fd = fds[1];
	return 0;
}

static int inherit_or_discard(const struct output_route *route, int *ret_fd, struct err *err)
{
	*ret_fd = -1;
	if (route->console)
		return 0;
	*ret_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_set(err, errno, "/dev/null: %m") : 0;
}

static int add_streams(struct output *output, struct worker *worker,
		       const struct output_worker *spec, int ret_fds[OUTPUT_STREAM_COUNT],
		       struct err *err)
{
	bool pipes[] = { needs_pipe(output, spec, OUTPUT_STDOUT),
			 needs_pipe(output, spec, OUTPUT_STDERR) };
	if ((pipes[0] || pipes[1]) && can_share_pipe(output, spec)) {
		worker->shares_pipe = true;
		int r = add_stream(output, worker, spec, OUTPUT_STDERR,
				   spec->keep_tail[OUTPUT_STDOUT] || spec->keep_tail[OUTPUT_STDERR],
				   &ret_fds[OUTPUT_STDERR], err);
		if (r < 0)
			return r;
		ret_fds[OUTPUT_STDOUT] = fcntl(ret_fds[OUTPUT_STDERR], F_DUPFD_CLOEXEC, 0);
		return ret_fds[OUTPUT_STDOUT] < 0
			       ? err_set(err, errno, "pipe for a worker's output: %m")
			       : 0;
	}
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++) {
		int r = pipes[i] ? add_stream(output, worker, spec, (enum output_stream)i,
					      spec->keep_tail[i], &ret_fds[i], err)
				 : inherit_or_discard(&spec->route[i], &ret_fds[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void hand_over(struct output *output, struct worker *worker)
{
	map_put(&output->workers, &worker->id, sizeof(worker->id), worker);
	worker->with_loop = true;
	pthread_mutex_lock(&output->lock);
	worker->with_pump = true;
	output->undrained++;
	list_append(&output->added, &worker->added_link);
	bool asleep = must_wake(output);
	pthread_mutex_unlock(&output->lock);
	if (asleep)
		wake(output);
}

int output_add(struct output *output, const struct output_worker *spec,
	       int ret_fds[OUTPUT_STREAM_COUNT], struct err *err)
{
	struct worker *worker = NEW(struct worker);
	worker->id = spec->id;
	worker->local_rank = spec->local_rank;
	worker->names = (struct prefix_names){
		.role_name = mem_strdup(spec->role_name ? spec->role_name : ""),
		.host = mem_strdup(spec->host ? spec->host : ""),
		.rank_base = spec->rank - spec->local_rank,
		.group_rank = spec->group_rank,
	};
	worker->page = output->steps ? NEW(struct worker_page) : NULL;
	list_init(&worker->link);
	list_init(&worker->added_link);
	list_init(&worker->ended_link);
	int fds[OUTPUT_STREAM_COUNT] = { -1, -1 };
	int r = add_streams(output, worker, spec, fds, err);
	bool piped = worker->streams[OUTPUT_STDOUT].worker || worker->streams[OUTPUT_STDERR].worker;
	if (r == 0 && piped) {
		pthread_mutex_lock(&output->lock);
		r = start_thread(output, err);
		pthread_mutex_unlock(&output->lock);
	}
	if (r < 0) {
		fd_close(&fds[OUTPUT_STDOUT]);
		fd_close(&fds[OUTPUT_STDERR]);
	}
	if (r < 0 || !piped)
		free_worker(worker);
	else
		hand_over(output, worker);
	if (r == 0)
		memcpy(ret_fds, fds, sizeof(fds));
	return r;
}

static struct worker *find_worker(const struct output *output, uint64_t id)
{
	return map_get(&output->workers, &id, sizeof(id));
}

static void tell_ended(struct output *output, struct worker *worker)
{
	if (worker->ended)
		return;
	worker->ended = true;
	pthread_mutex_lock(&output->lock);
	worker->ended_ns = clock_now_ns();
	list_append(&output->ended, &worker->ended_link);
	bool asleep = must_wake(output);
	pthread_mutex_unlock(&output->lock);
	if (asleep)
		wake(output);
}

void output_worker_ended(struct output *output, uint64_t id)
{
	struct worker *worker = find_worker(output, id);
	if (worker)
		tell_ended(output, worker);
	else /* we read nothing of it */
		output_post(output, &(struct output_event){ .type = OUTPUT_DRAINED, .id = id });
}

bool output_shares_pipe(const struct output *output, uint64_t id)
{
	const struct worker *worker = find_worker(output, id);
	return worker && worker->shares_pipe;
}

int output_tail(struct output *output, uint64_t id, enum output_stream stream, struct buf *ret_tail)
{
	return output_tail_since(output, id, stream, &(uint64_t){ 0 }, ret_tail);
}

int output_tail_since(struct output *output, uint64_t id, enum output_stream stream, uint64_t *seen,
		      struct buf *ret_tail)
{
	const struct worker *worker = find_worker(output, id);
	if (!worker || !worker->streams[stream].tail)
		return -ENOENT;
	const struct tail *tail = &worker->streams[stream].kept;
	pthread_mutex_lock(&output->lock);
	tail_copy_since(tail, *seen, ret_tail);
	*seen = tail->total;
	pthread_mutex_unlock(&output->lock);
	return 0;
}

uint64_t output_bytes(const struct output *output, uint64_t id)
{
	const struct worker *worker = find_worker(output, id);
	return worker ? atomic_load_explicit(&worker->bytes, memory_order_relaxed) : 0;
}

void output_headway(const struct output *output, uint64_t id, struct step_progress *ret_headway)
{
	const struct worker *worker = find_worker(output, id);
	*ret_headway = (struct step_progress){ .told = 0 };
	if (worker && worker->page)
		worker_page_read(worker->page, ret_headway);
}

void output_forget(struct output *output, uint64_t id)
{
	struct worker *worker = map_remove(&output->workers, &id, sizeof(id));
	if (!worker)
		return;
	tell_ended(output, worker);
	pthread_mutex_lock(&output->lock);
	worker->with_loop = false;
	output_worker_release(worker);
	pthread_mutex_unlock(&output->lock);
}

static void add_message(struct output *output, const char *text, size_t len, size_t limit)
{
	pthread_mutex_lock(&output->lock);
	bool taken = !output->exited && start_thread(output, NULL) == 0;
	if (taken && buf_len(&output->messages) < limit)
		buf_append(&output->messages, text, len);
	else if (taken)
		output->dropped_messages++;
	bool asleep = taken && must_wake(output);
	pthread_mutex_unlock(&output->lock);
	if (asleep)
		wake(output);
	else if (!taken)
		fd_write_all(STDERR_FILENO, text, len);
}

void output_print(struct output *output, const char *text, size_t len)
{
	add_message(output, text, len, SIZE_MAX);
}

void output_log(void *arg, enum log_level level UNUSED, const char *line, size_t len)
{
	add_message(arg, line, len, MESSAGES_MAX);
}

void output_finish(struct output *output)
{
	map_foreach(it, &output->workers) tell_ended(output, it->value);
	pthread_mutex_lock(&output->lock);
	output->finishing = true;
	bool started = output->started;
	output->exited = !started;
	bool asleep = started && must_wake(output);
	pthread_mutex_unlock(&output->lock);
	if (asleep)
		wake(output);
	else if (!started)
		output_post(output, &(struct output_event){ .type = OUTPUT_FINISHED });
}

int output_fd(const struct output *output)
{
	return output->notify_fd;
}

bool output_next(struct output *output, struct output_event *ret_event)
{
	pthread_mutex_lock(&output->lock);
	struct list *link = list_shift(&output->events);
	if (!link) {
		eventfd_t ignored;
		eventfd_read(output->notify_fd, &ignored);
	}
	pthread_mutex_unlock(&output->lock);
	if (!link)
		return false;
	struct event_node *node = list_entry(link, struct event_node, link);
	*ret_event = node->event;
	free(node);
	if (ret_event->type == OUTPUT_FINISHED)
		output->finished = true;
	return true;
}

bool output_is_drained(struct output *output)
{
	pthread_mutex_lock(&output->lock);
	bool drained = output->undrained == 0 && line_queue_empty(&output->queue);
	pthread_mutex_unlock(&output->lock);
	return drained;
}

bool output_line(struct output *output, struct queued_line *ret_line, struct buf *text,
		 uint64_t *ret_next)
{
	pthread_mutex_lock(&output->lock);
	bool any = line_queue_first(&output->queue, ret_line);
	*ret_next = output->queue.next;
	if (any) {
		buf_append(text, ret_line->text, ret_line->len);
		line_queue_drop(&output->queue);
	}
	pthread_mutex_unlock(&output->lock);
	return any;
}

void output_missing(struct output *output, struct buf *out)
{
	pthread_mutex_lock(&output->lock);
	struct disk *disk = output->disk;
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++)
		if (output->console_error[i])
			buf_printf(out, "%s: %" PRIu64 " bytes are missing (%s)\n",
				   i == OUTPUT_STDOUT ? "stdout" : "stderr",
				   output->console_missing[i], strerror(output->console_error[i]));
	pthread_mutex_unlock(&output->lock);
	if (disk)
		disk_missing(disk, out);
}
