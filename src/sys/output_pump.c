#include "sys/output_pump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "proto/step_pattern.h"

#define CHUNK ((size_t)64 * 1024) /* a pipe's usual size */
#define BATCH 64
/* a line without an end by then is a prompt or a progress bar */
#define SHOW_AFTER_NS (100 * NS_PER_MS)
#define MESSAGES_WRITER 1 /* muster's own messages, as a writer of the screen */

/* Only the thread uses these. */
struct pump {
	struct output *output;
	struct list workers;
	struct heap drains; /* struct stream.drain */
	struct heap shows;  /* struct stream.show */
	unsigned char *chunk;
	struct shared_file {
		char *path; /* NULL: none yet */
		struct disk_file *file;
	} shared[OUTPUT_STREAM_COUNT]; /* see hold_shared() */

	/* With output->merge: */
	struct merge merges[OUTPUT_STREAM_COUNT]; /* waiting lines, by console */
	struct prefix_names names;		  /* of the workers that wrote it; owned */
};

static void post_trouble(void *arg, const char *text)
{
	struct output_event event = { .type = OUTPUT_TROUBLE };
	strncat(event.text, text, sizeof(event.text) - 1);
	output_post(arg, &event);
}

static void flush_console(struct pump *pump, struct console *console)
{
	struct output *output = pump->output;
	if (buf_len(&console->out) == 0)
		return;
	int r = console_flush(console);
	if (console->error == 0)
		return;

	int kind = (int)(console - output->consoles);
	pthread_mutex_lock(&output->lock);
	output->console_missing[kind] = console->missing;
	output->console_error[kind] = console->error;
	pthread_mutex_unlock(&output->lock);
	if (r < 0) {
		AUTO_FREE char *text =
			mem_printf("cannot write to %s: %s; the job goes on without it",
				   kind == OUTPUT_STDOUT ? "stdout" : "stderr", strerror(-r));
		post_trouble(output, text);
	}
}

static void flush_consoles(struct pump *pump)
{
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++)
		flush_console(pump, &pump->output->consoles[i]);
}

/* The lines in a filter file come from many workers, so each gets a newline. */
static void write_filtered(struct pump *pump, struct stream *stream, const struct line *line)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_str(&text, stream->filter_prefix);
	buf_append(&text, line->text, line->len - (line->end == LINE_RETURN));
	if (line->end != LINE_NEWLINE)
		buf_append_char(&text, '\n');
	disk_write(pump->output->disk, stream->filter_file, buf_data(&text), buf_len(&text));
}

static bool matches(const struct strv *filters, const struct line *line)
{
	for (size_t i = 0; i < filters->count; i++)
		if (memmem(line->text, line->len, filters->items[i], strlen(filters->items[i])))
			return true;
	return false;
}

/* Screen writers of merged lines count down from the top, those of streams up from 2. */
static void show_merged(struct pump *pump, struct console *console, struct merge_line *merged)
{
	const struct prefix_names *names = &pump->names;
	AUTO(buf_done) struct buf ranks = BUF_INIT, local_ranks = BUF_INIT, prefix = BUF_INIT;
	merge_line_writers(merged, names->rank_base, &ranks);
	merge_line_writers(merged, 0, &local_ranks);
	if (merged->count > 1)
		buf_printf(&prefix, "%ux ", merged->count);
	output_render_prefix(pump->output, names, buf_str(&ranks), buf_str(&local_ranks), &prefix);
	struct line line = { merged->text, merged->len, merged->end, .continues = false };
	screen_put(&console->screen, UINT64_MAX - merged->seq, buf_str(&prefix), &line,
		   &console->out);
	merge_line_free(merged);
}

static void show_due_merged(struct pump *pump, uint64_t now_ns)
{
	struct output *output = pump->output;
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++) {
		struct console *console = &output->consoles[i];
		for (struct merge_line *line;
		     (line = merge_next(&pump->merges[i], output->merge, now_ns));)
			show_merged(pump, console, line);
		if (buf_len(&console->out) >= CHUNK)
			flush_console(pump, console);
	}
}

/* A new round may have other ranks: waiting lines still belong to the old ones. */
static void learn_names(struct pump *pump, const struct prefix_names *names)
{
	if (pump->names.host && names->rank_base == pump->names.rank_base &&
	    names->group_rank == pump->names.group_rank)
		return;
	show_due_merged(pump, NS_NEVER);
	free(pump->names.role_name);
	free(pump->names.host);
	pump->names = *names;
	pump->names.role_name = mem_strdup(names->role_name);
	pump->names.host = mem_strdup(names->host);
}

/* A line may say how far the worker has got. */
static void look_for_step(const struct output *output, const struct stream *stream,
			  const struct line *line)
{
	struct worker_page *page = stream->worker->page;
	uint64_t step, total;
	size_t len = line->len;
	while (len > 0 && (line->text[len - 1] == '\n' || line->text[len - 1] == '\r'))
		len--;
	if (line->continues ||
	    !step_pattern_find(output->steps, (const char *)line->text, len, &step, &total))
		return;
	if (total)
		atomic_store_explicit(&page->total, total, memory_order_relaxed);
	worker_page_tell(page, step, clock_now_ns());
}

/* For the job's one log. */
static void queue_line(struct output *output, const struct stream *stream, const struct line *line)
{
	const struct worker *worker = stream->worker;
	size_t len = line->len - (line->end != LINE_OPEN);
	pthread_mutex_lock(&output->lock);
	bool first = line_queue_empty(&output->queue);
	line_queue_put(&output->queue, (uint32_t)(worker->names.rank_base + worker->local_rank),
		       worker->shares_pipe ? OUTPUT_STREAM_COUNT : (uint8_t)stream->kind,
		       line->text, len);
	pthread_mutex_unlock(&output->lock);
	if (first)
		output_post(output, &(struct output_event){ .type = OUTPUT_LINES });
}

static void handle_line(struct pump *pump, struct stream *stream, const struct line *line)
{
	struct output *output = pump->output;
	if (output->queues)
		queue_line(output, stream, line);
	if (output->steps)
		look_for_step(output, stream, line);
	if (stream->filter_file && matches(&output->filters[stream->kind], line))
		write_filtered(pump, stream, line);
	if (!stream->console)
		return;
	struct console *console = output_console(output, stream->kind);
	if (stream->merge) {
		merge_add(&pump->merges[console - output->consoles], stream->worker->local_rank,
			  line, clock_now_ns());
		return;
	}
	screen_put(&console->screen, stream->number, stream->prefix, line, &console->out);
	if (buf_len(&console->out) >= CHUNK)
		flush_console(pump, console);
}

/* After a while show an unfinished line, if the console is a terminal (screen_show() knows). */
static void plan_show(struct pump *pump, struct stream *stream)
{
	bool wanted = stream->console &&
		      output_console(pump->output, stream->kind)->screen.terminal &&
		      buf_len(line_split_partial(&stream->split)) > 0;
	if (wanted)
		heap_update(&pump->shows, &stream->show, clock_now_ns() + SHOW_AFTER_NS);
	else
		heap_remove(&pump->shows, &stream->show);
}

static void handle_bytes(struct pump *pump, struct stream *stream, const unsigned char *data,
			 size_t len)
{
	struct output *output = pump->output;
	if (stream->tail) {
		pthread_mutex_lock(&output->lock);
		tail_write(&stream->kept, data, len);
		pthread_mutex_unlock(&output->lock);
	}
	if (stream->file)
		disk_write(output->disk, stream->file, data, len);
	if (!stream->console && !stream->filter_file && !output->steps && !output->queues)
		return;

	struct line line;
	line_split_push(&stream->split, data, len);
	while (line_split_next(&stream->split, &line))
		handle_line(pump, stream, &line);
	if (stream->merge)
		show_due_merged(pump, clock_now_ns());
	plan_show(pump, stream);
}

static void end_worker_if_drained(struct pump *pump, struct worker *worker)
{
	if (worker->open_streams > 0 || !worker->draining)
		return;
	const struct output_event drained = { .type = OUTPUT_DRAINED, .id = worker->id };
	list_unlink(&worker->link);
	pthread_mutex_lock(&pump->output->lock);
	worker->with_pump = false;
	pump->output->undrained--;
	output_worker_release(worker);
	pthread_mutex_unlock(&pump->output->lock);
	output_post(pump->output, &drained); /* who reads it may ask output_is_drained() */
}

static void end_stream(struct pump *pump, struct stream *stream)
{
	struct disk *disk = pump->output->disk;
	struct line line;
	if (line_split_finish(&stream->split, &line))
		handle_line(pump, stream, &line);
	if (stream->file)
		disk_close(disk, stream->file);
	if (stream->filter_file)
		disk_close(disk, stream->filter_file);
	heap_remove(&pump->drains, &stream->drain);
	heap_remove(&pump->shows, &stream->show);
	/* close() would leave it in the set while a forked process holds a copy. */
	epoll_ctl(pump->output->epoll_fd, EPOLL_CTL_DEL, stream->fd, NULL);
	fd_close(&stream->fd);
	stream->worker->open_streams--;
	end_worker_if_drained(pump, stream->worker);
}

/* Reads once, `limit` bytes at most; returns how many. The stream may be gone after 0. */
static size_t read_stream(struct pump *pump, struct stream *stream, size_t limit)
{
	ssize_t n;
	do
		n = read(stream->fd, pump->chunk, MIN(limit, CHUNK));
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		atomic_fetch_add_explicit(&stream->worker->bytes, (uint64_t)n,
					  memory_order_relaxed);
		handle_bytes(pump, stream, pump->chunk, (size_t)n);
	} else if (n == 0 || errno != EAGAIN) {
		end_stream(pump, stream);
	}
	return n > 0 ? (size_t)n : 0;
}

/* A process that the worker left behind holds its pipe open. What was written until now counts;
 * what comes later does not, or a process that never stops writing would hold us for ever. */
static void stop_waiting(struct pump *pump, struct stream *stream)
{
	int left = 0;
	ioctl(stream->fd, FIONREAD, &left);
	size_t rest = (size_t)MAX(left, 0);
	while (rest > 0) {
		size_t n = read_stream(pump, stream, rest);
		if (n == 0)
			return; /* it has ended normally */
		rest -= n;
	}
	end_stream(pump, stream);
}

/* Workers of an attempt share the file of filtered lines, and opening a file empties it. So it
 * stays open, whichever of them comes and goes, until an attempt with another file begins. */
static void hold_shared(struct pump *pump, const struct stream *stream)
{
	struct shared_file *shared = &pump->shared[stream->kind];
	if (shared->path && strcmp(shared->path, stream->filter_path) == 0)
		return;
	struct disk *disk = pump->output->disk;
	if (shared->path)
		disk_close(disk, shared->file);
	free(shared->path);
	shared->path = mem_strdup(stream->filter_path);
	shared->file = disk_open(disk, shared->path);
}

/* Opening happens in the background, so its order with the worker's start does not matter. */
static void open_files(struct pump *pump, struct stream *stream)
{
	struct output *output = pump->output;
	if (!stream->file_path && !stream->filter_path)
		return;
	if (!output->disk) {
		struct disk *disk =
			disk_new(output->log_max_size, DISK_HANG_NS, post_trouble, output);
		pthread_mutex_lock(&output->lock);
		output->disk = disk;
		pthread_mutex_unlock(&output->lock);
	}
	if (stream->file_path)
		stream->file = disk_open(output->disk, stream->file_path);
	if (stream->filter_path) {
		hold_shared(pump, stream);
		stream->filter_file = disk_open(output->disk, stream->filter_path);
	}
}

static void begin_stream(struct pump *pump, struct stream *stream)
{
	open_files(pump, stream);
	stream->worker->open_streams++;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = stream };
	if (epoll_ctl(pump->output->epoll_fd, EPOLL_CTL_ADD, stream->fd, &event) < 0)
		end_stream(pump, stream);
}

static void begin_worker(struct pump *pump, struct worker *worker)
{
	list_append(&pump->workers, &worker->link);
	if (pump->output->merge)
		learn_names(pump, &worker->names);
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++)
		if (worker->streams[i].worker)
			begin_stream(pump, &worker->streams[i]);
}

static void begin_draining(struct pump *pump, struct worker *worker)
{
	worker->draining = true;
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++)
		if (worker->streams[i].worker && worker->streams[i].fd >= 0)
			heap_update(&pump->drains, &worker->streams[i].drain,
				    ns_add(worker->ended_ns, OUTPUT_DRAIN_NS));
	end_worker_if_drained(pump, worker);
}

static void print_messages(struct pump *pump, const struct buf *messages, uint64_t dropped)
{
	struct console *console = output_console(pump->output, OUTPUT_STDERR);
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append(&text, buf_data(messages), buf_len(messages));
	if (dropped > 0)
		buf_printf(&text,
			   "muster: %" PRIu64
			   " messages were dropped while the terminal did not take them\n",
			   dropped);
	if (buf_len(&text) == 0)
		return;
	struct line line = { buf_data(&text), buf_len(&text), LINE_NEWLINE, .continues = false };
	screen_put(&console->screen, MESSAGES_WRITER, "", &line, &console->out);
}

static void list_move(struct list *from, struct list *to)
{
	list_init(to);
	for (struct list *link; (link = list_shift(from));)
		list_append(to, link);
}

/* Takes what the loop has left for us. True once nothing more will come. */
static bool take_orders(struct pump *pump)
{
	struct output *output = pump->output;
	eventfd_t ignored;
	eventfd_read(output->wake_fd, &ignored);

	struct list added, ended;
	pthread_mutex_lock(&output->lock);
	output->woken = false;
	list_move(&output->added, &added);
	list_move(&output->ended, &ended);
	AUTO(buf_done) struct buf messages = output->messages;
	uint64_t dropped = output->dropped_messages;
	output->messages = BUF_INIT;
	output->dropped_messages = 0;
	bool finishing = output->finishing;
	pthread_mutex_unlock(&output->lock);

	for (struct list *link; (link = list_shift(&added));)
		begin_worker(pump, list_entry(link, struct worker, added_link));
	for (struct list *link; (link = list_shift(&ended));)
		begin_draining(pump, list_entry(link, struct worker, ended_link));
	print_messages(pump, &messages, dropped);
	return finishing;
}

static struct stream *due_stream(struct heap *heap, uint64_t now_ns, size_t offset)
{
	struct heap_node *node = heap_top(heap);
	if (!node || node->key > now_ns)
		return NULL;
	heap_pop(heap);
	return (struct stream *)((char *)node - offset);
}

static uint64_t next_timer_ns(const struct pump *pump)
{
	uint64_t next_ns = MIN(merge_due_ns(&pump->merges[0]), merge_due_ns(&pump->merges[1]));
	if (heap_top(&pump->drains))
		next_ns = MIN(next_ns, heap_top(&pump->drains)->key);
	if (heap_top(&pump->shows))
		next_ns = MIN(next_ns, heap_top(&pump->shows)->key);
	return next_ns;
}

static void run_timers(struct pump *pump)
{
	if (next_timer_ns(pump) == NS_NEVER)
		return;
	uint64_t now_ns = clock_now_ns();
	show_due_merged(pump, now_ns);
	struct stream *stream;
	while ((stream = due_stream(&pump->shows, now_ns, offsetof(struct stream, show)))) {
		struct console *console = output_console(pump->output, stream->kind);
		screen_show(&console->screen, stream->number, stream->prefix,
			    line_split_partial(&stream->split), &console->out);
	}
	while ((stream = due_stream(&pump->drains, now_ns, offsetof(struct stream, drain))))
		stop_waiting(pump, stream);
}

static int epoll_timeout_ms(const struct pump *pump)
{
	uint64_t next_ns = next_timer_ns(pump);
	if (next_ns == NS_NEVER)
		return -1;
	return clock_left_ms(next_ns, clock_now_ns());
}

static void pump_until_finished(struct pump *pump)
{
	bool finishing = false;
	while (!finishing || !list_empty(&pump->workers)) {
		struct epoll_event events[BATCH];
		int n = epoll_wait(pump->output->epoll_fd, events, BATCH, epoll_timeout_ms(pump));
		bool orders = false;
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				read_stream(pump, events[i].data.ptr, CHUNK);
			else
				orders = true;
		}
		run_timers(pump);
		/* After the streams: this may free the workers of streams seen above. */
		if (orders)
			finishing = take_orders(pump) || finishing;
		flush_consoles(pump);
	}
}

static void print_last_messages(struct pump *pump)
{
	struct output *output = pump->output;
	for (bool last = false; !last;) {
		take_orders(pump);
		flush_consoles(pump);
		pthread_mutex_lock(&output->lock);
		last = output->exited = buf_len(&output->messages) == 0;
		pthread_mutex_unlock(&output->lock);
	}
}

static void pump_init(struct pump *pump, struct output *output)
{
	/* Not zeroed: most jobs never touch most of its pages. */
	*pump = (struct pump){ .output = output, .chunk = mem_grow(NULL, CHUNK, 1) };
	list_init(&pump->workers);
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++)
		merge_init(&pump->merges[i]);
}

static void pump_done(struct pump *pump)
{
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++) {
		merge_done(&pump->merges[i]);
		free(pump->shared[i].path); /* the files end with the disk */
	}
	heap_done(&pump->drains);
	heap_done(&pump->shows);
	free(pump->names.role_name);
	free(pump->names.host);
	free(pump->chunk);
}

void *output_pump_main(void *arg)
{
	struct output *output = arg;
	AUTO(pump_done) struct pump pump;
	pump_init(&pump, output);
	pump_until_finished(&pump);
	show_due_merged(&pump, NS_NEVER);
	if (output->disk)
		disk_flush(output->disk);
	print_last_messages(&pump);
	output_post(output, &(struct output_event){ .type = OUTPUT_FINISHED });
	return NULL;
}
