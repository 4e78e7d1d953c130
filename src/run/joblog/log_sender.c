#include "run/joblog/log_sender.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "core/lines/line_queue.h"
#include "proto/joblog/line_block.h"

struct log_sender {
	struct output *output;
	struct event *timer; /* the pace allows more */
	uint64_t id;
	uint64_t next; /* the number of the line that the last stream did not get */
	struct line_pace pace;
	bool open;  /* there is a stream */
	bool begun; /* and it says who we are */
	bool hurry, empty;
	uint32_t nodes;
	void (*on_more)(void *arg);
	void *arg;
};

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	log_sender_wake(arg);
}

void log_sender_wake(struct log_sender *sender)
{
	sender->empty = false;
	if (sender->open)
		sender->on_more(sender->arg);
}

void log_sender_begin(struct log_sender *sender, uint32_t nodes, void (*on_more)(void *arg),
		      void *arg)
{
	sender->open = true;
	sender->begun = sender->empty = false;
	sender->nodes = nodes;
	sender->on_more = on_more;
	sender->arg = arg;
}

void log_sender_end(struct log_sender *sender)
{
	sender->open = false;
	event_del(sender->timer);
}

static void put(enum line_kind kind, uint64_t number, struct buf *out)
{
	line_block_put(&(struct line_block){ .kind = kind, .number = number }, out);
}

/* False: there is none, and all numbers have been told. */
static bool put_line(struct log_sender *sender, struct buf *out)
{
	static const enum line_kind kinds[] = { [OUTPUT_STDOUT] = LINE_STDOUT,
						[OUTPUT_STDERR] = LINE_STDERR,
						[OUTPUT_STREAM_COUNT] = LINE_BOTH };
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct queued_line line;
	uint64_t next;
	static_assert(LINE_QUEUE_LINE_MAX <= LINE_BLOCK_MAX, "a line fits into a block");
	if (output_line(sender->output, &line, &text, &next)) {
		line_block_put(&(struct line_block){ kinds[line.stream], line.rank, line.number,
						     bytes_of(buf_data(&text), buf_len(&text)) },
			       out);
		sender->next = line.number + 1;
		return true;
	}
	if (sender->next < next)
		put(LINE_NEXT, next, out);
	sender->next = next;
	return false;
}

void log_sender_take(struct log_sender *sender, size_t max, struct buf *out)
{
	uint64_t now_ns = clock_now_ns(), rate = line_pace_rate(sender->nodes);
	size_t room = sender->hurry ? max : MIN(max, line_pace_room(&sender->pace, rate, now_ns));
	size_t before = buf_len(out);
	if (!sender->begun) {
		put(LINE_BEGIN, sender->id, out);
		put(LINE_FROM, sender->next, out);
		sender->begun = true;
	}
	while (!sender->empty && buf_len(out) - before < room)
		sender->empty = !put_line(sender, out);
	line_pace_spend(&sender->pace, buf_len(out) - before);
	if (sender->empty || room == max)
		return;
	struct timeval left = clock_left(line_pace_due_ns(&sender->pace, rate), now_ns);
	event_add(sender->timer, &left);
}

void log_sender_hurry(struct log_sender *sender, bool hurry)
{
	sender->hurry = hurry;
	if (hurry)
		log_sender_wake(sender);
}

bool log_sender_is_empty(const struct log_sender *sender)
{
	return sender->empty;
}

uint64_t log_sender_left(struct log_sender *sender)
{
	struct queued_line line;
	AUTO(buf_done) struct buf text = BUF_INIT;
	uint64_t next;
	while (output_line(sender->output, &line, &text, &next))
		buf_clear(&text);
	return next - sender->next;
}

struct log_sender *log_sender_new(struct event_base *base, struct output *output)
{
	struct log_sender *sender = NEW(struct log_sender);
	*sender = (struct log_sender){ .output = output, .id = random_u64() };
	sender->timer = evtimer_new(base, on_timer, sender);
	return sender;
}

void log_sender_free(struct log_sender *sender)
{
	if (!sender)
		return;
	event_free(sender->timer);
	free(sender);
}
