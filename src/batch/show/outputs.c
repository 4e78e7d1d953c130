#include "batch/show/outputs.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "batch/printer.h"
#include "core/batch/reorder.h"

#define FROM_MEMORY ((uint64_t)64 << 10)

/* One that waits: a short text, or a file. */
struct held {
	struct list link;
	int stream, fd; /* fd -1: `text` has it */
	struct buf text;
	char *prefix;
	uint64_t from, end;
};

struct outputs {
	struct printer *printer;
	bool keep_order;
	struct reorder order;
	struct map waiting; /* number of an order -> list of what waits */
	size_t last;	    /* the highest number of those */
};

struct outputs *outputs_new(struct printer *printer, bool keep_order)
{
	struct outputs *outputs = NEW(struct outputs);
	outputs->printer = printer;
	outputs->keep_order = keep_order;
	return outputs;
}

static void held_free(struct held *held)
{
	list_unlink(&held->link);
	fd_close(&held->fd);
	buf_done(&held->text);
	free(held->prefix);
	free(held);
}

void outputs_free(struct outputs *outputs)
{
	if (!outputs)
		return;
	map_foreach(entry, &outputs->waiting)
	{
		list_foreach(link, (struct list *)entry->value)
			held_free(list_entry(link, struct held, link));
		free(entry->value);
	}
	reorder_done(&outputs->order);
	map_done(&outputs->waiting);
	free(outputs);
}

static void show(struct outputs *outputs, struct held *held)
{
	if (held->fd >= 0)
		printer_file(outputs->printer, held->stream, held->prefix, fd_take(&held->fd),
			     held->from, held->end);
	else
		printer_lines(outputs->printer, held->stream, held->prefix, buf_data(&held->text),
			      buf_len(&held->text));
	held_free(held);
}

static void show_order(struct outputs *outputs, size_t order)
{
	struct list *waiting = map_remove(&outputs->waiting, &order, sizeof(order));
	if (!waiting)
		return;
	list_foreach(link, waiting) show(outputs, list_entry(link, struct held, link));
	free(waiting);
}

static void wait_for_turn(struct outputs *outputs, size_t order, struct held *held)
{
	struct list *waiting = map_get(&outputs->waiting, &order, sizeof(order));
	if (!waiting) {
		waiting = NEW(struct list);
		list_init(waiting);
		map_put(&outputs->waiting, &order, sizeof(order), waiting);
		outputs->last = MAX(outputs->last, order);
	}
	list_append(waiting, &held->link);
}

/* A short text is read now, so that its file can go. */
static void load(struct held *held, int *fd)
{
	uint64_t size = held->end - held->from;
	if (size > FROM_MEMORY) {
		held->fd = fd_take(fd);
		return;
	}
	ssize_t n =
		pread(*fd, buf_reserve(&held->text, (size_t)size), (size_t)size, (off_t)held->from);
	buf_commit(&held->text, n > 0 ? (size_t)n : 0);
}

void outputs_add(struct outputs *outputs, size_t order, int stream, const char *tag, int *fd,
		 uint64_t from, uint64_t end)
{
	if (from >= end)
		return;
	struct held *held = NEW(struct held);
	*held = (struct held){ .stream = stream,
			       .fd = -1,
			       .prefix = tag ? mem_printf("%s\t", tag) : NULL,
			       .from = from,
			       .end = end };
	list_init(&held->link);
	load(held, fd);
	if (outputs->keep_order && order > outputs->order.next)
		wait_for_turn(outputs, order, held);
	else
		show(outputs, held);
}

void outputs_end(struct outputs *outputs, size_t order)
{
	if (!outputs->keep_order)
		return;
	size_t first = outputs->order.next, count = reorder_end(&outputs->order, order);
	for (size_t i = first; i < first + count; i++)
		show_order(outputs, i);
	/* What the one whose turn it is has written so far. */
	show_order(outputs, outputs->order.next);
}

void outputs_flush(struct outputs *outputs)
{
	for (size_t i = outputs->order.next; outputs->waiting.count > 0 && i <= outputs->last; i++)
		show_order(outputs, i);
}
