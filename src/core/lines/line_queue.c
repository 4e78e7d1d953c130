#include "core/lines/line_queue.h"

#include <string.h>

/* In front of each text in the buffer. */
struct head {
	uint64_t number;
	uint32_t rank;
	uint32_t len;
	uint8_t stream;
};

void line_queue_done(struct line_queue *queue)
{
	buf_done(&queue->bytes);
}

static void put_one(struct line_queue *queue, uint32_t rank, uint8_t stream, const void *text,
		    size_t len)
{
	struct head head = { queue->next++, rank, (uint32_t)len, stream };
	if (buf_len(&queue->bytes) + sizeof(head) + len > LINE_QUEUE_BYTES) {
		queue->dropped++;
		return;
	}
	buf_append(&queue->bytes, &head, sizeof(head));
	buf_append(&queue->bytes, text, len);
}

void line_queue_put(struct line_queue *queue, uint32_t rank, uint8_t stream, const void *text,
		    size_t len)
{
	const unsigned char *at = text;
	for (; len > LINE_QUEUE_LINE_MAX; len -= LINE_QUEUE_LINE_MAX, at += LINE_QUEUE_LINE_MAX)
		put_one(queue, rank, stream, at, LINE_QUEUE_LINE_MAX);
	put_one(queue, rank, stream, at, len);
}

bool line_queue_empty(const struct line_queue *queue)
{
	return buf_len(&queue->bytes) == 0;
}

bool line_queue_first(const struct line_queue *queue, struct queued_line *ret_line)
{
	struct head head;
	if (line_queue_empty(queue))
		return false;
	memcpy(&head, buf_data(&queue->bytes), sizeof(head));
	*ret_line = (struct queued_line){ head.number, head.rank, head.len, head.stream,
					  buf_data(&queue->bytes) + sizeof(head) };
	return true;
}

void line_queue_drop(struct line_queue *queue)
{
	struct queued_line line;
	if (line_queue_first(queue, &line))
		buf_consume(&queue->bytes, sizeof(struct head) + line.len);
}

/* ---- pace ---- */

uint64_t line_pace_rate(uint32_t nodes)
{
	return MAX(LINE_PACE_TOTAL / MAX(nodes, 1u), LINE_PACE_LEAST);
}

uint64_t line_pace_room(struct line_pace *pace, uint64_t rate, uint64_t now_ns)
{
	uint64_t paid_ns = now_ns - MIN(pace->since_ns, now_ns);
	uint64_t full_ns = LINE_PACE_BURST * NS_PER_S / rate + 1; /* then all of it is paid off */
	uint64_t paid = MIN(paid_ns, full_ns) * rate / NS_PER_S;
	pace->spent -= MIN(pace->spent, paid);
	pace->since_ns = now_ns;
	return LINE_PACE_BURST - MIN(pace->spent, LINE_PACE_BURST);
}

void line_pace_spend(struct line_pace *pace, uint64_t bytes)
{
	pace->spent += bytes;
}

uint64_t line_pace_due_ns(const struct line_pace *pace, uint64_t rate)
{
	uint64_t wanted = LINE_PACE_BURST * 3 / 4;
	uint64_t owed = pace->spent - MIN(pace->spent, wanted);
	return ns_add(pace->since_ns, owed * NS_PER_S / rate + 1);
}
