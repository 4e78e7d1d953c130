#include "proto/stacks/stack_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/json_value.h"

static const char *const kinds[] = {
	[FRAME_NATIVE] = "native",
	[FRAME_PYTHON] = "python",
	[FRAME_KERNEL] = "kernel",
};
static_assert(ARRAY_LEN(kinds) == FRAME_KIND_COUNT, "every kind needs a name");

static void write_thread(struct json_out *out, const struct stack_thread *thread)
{
	json_out_open(out, NULL, '{');
	json_out_text_if(out, "name", thread->name);
	json_out_bool(out, "main", thread->main);
	json_out_int(out, "count", (int64_t)thread->times);
	json_out_open(out, "frames", '[');
	for (size_t i = 0; i < thread->count; i++) {
		const struct stack_frame *frame = &thread->frames[i];
		json_out_open(out, NULL, '{');
		json_out_text_if(out, "name", frame->name);
		json_out_text_if(out, "file", frame->file);
		if (frame->line)
			json_out_int(out, "line", frame->line);
		json_out_text(out, "kind", kinds[frame->kind]);
		json_out_bool(out, "own", frame->own);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	json_out_close(out, '}');
}

static void write_members(struct json_out *out, const struct stack_set *set,
			  const struct stack_variant *variant)
{
	json_out_open(out, "workers", '[');
	for (size_t i = 0; i < variant->count; i++) {
		const struct stack_member *member = &variant->members[i];
		json_out_open(out, NULL, '{');
		json_out_int(out, "rank", (int64_t)member->rank);
		if (member->host)
			json_out_text(out, "host", set->hosts.items[member->host - 1]);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

void stack_json_write(struct json_out *out, const struct stack_set *set)
{
	json_out_open(out, NULL, '{');
	json_out_open(out, "stacks", '[');
	for (size_t i = 0; i < set->count; i++) {
		const struct stack_variant *variant = set->items[i];
		const struct stack_process *process = &variant->process;
		AUTO(buf_done) struct buf place = BUF_INIT;
		stack_place(process, &place);
		json_out_open(out, NULL, '{');
		write_members(out, set, variant);
		json_out_bool(out, "child", process->child);
		json_out_text_if(out, "command", process->command);
		json_out_text_if(out, "note", process->note);
		json_out_text_if(out, "place", buf_str(&place));
		json_out_open(out, "threads", '[');
		for (size_t j = 0; j < process->count; j++)
			write_thread(out, &process->threads[j]);
		json_out_close(out, ']');
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	json_out_close(out, '}');
}

static char *text_at(struct json_value object, const char *key)
{
	char *text = json_value_text(json_value_get(object, key));
	return text ? text : mem_strdup("");
}

static int64_t number_at(struct json_value object, const char *key, int64_t max)
{
	int64_t number;
	if (!json_value_int(json_value_get(object, key), &number) || number < 0 || number > max)
		return -1;
	return number;
}

static void read_frame(struct json_value item, struct stack_thread *thread)
{
	AUTO_FREE char *name = text_at(item, "name"), *file = text_at(item, "file"),
		       *kind = text_at(item, "kind");
	enum frame_kind which = FRAME_NATIVE;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kind, kinds[i]))
			which = (enum frame_kind)i;
	stack_add_frame(thread, which, bytes_str(name), bytes_str(file),
			(uint32_t)MAX(number_at(item, "line", UINT32_MAX), 0),
			json_value_is_true(json_value_get(item, "own")));
}

static void read_threads(struct json_value list, struct stack_process *process)
{
	struct json_value item, frame;
	struct json_in threads, frames;
	for (json_value_enter(list, &threads); json_value_next(&threads, &item);) {
		AUTO_FREE char *name = text_at(item, "name");
		struct stack_thread *thread = stack_add_thread(process, bytes_str(name), 0);
		if (!thread)
			return;
		thread->main = json_value_is_true(json_value_get(item, "main"));
		thread->times = (size_t)MAX(number_at(item, "count", INT32_MAX), 1);
		for (json_value_enter(json_value_get(item, "frames"), &frames);
		     json_value_next(&frames, &frame);)
			read_frame(frame, thread);
	}
}

struct members {
	struct stack_member *items;
	size_t count, cap;
};

static void members_done(struct members *members)
{
	free(members->items);
}

static int read_members(struct json_value list, const char *host, struct stack_set *set,
			struct members *members, struct err *err)
{
	struct json_value item;
	struct json_in in;
	for (json_value_enter(list, &in); json_value_next(&in, &item);) {
		int64_t rank = number_at(item, "rank", INT32_MAX);
		AUTO_FREE char *own_host = text_at(item, "host");
		const char *name = *own_host ? own_host : host;
		if (rank < 0)
			return err_set(err, EPROTO, "a stack without a rank");
		ARRAY_RESERVE(members->items, members->count, members->cap);
		members->items[members->count++] =
			(struct stack_member){ .rank = (size_t)rank,
					       .host = name ? stack_set_host(set, name) : 0 };
	}
	return 0;
}

static int read_stack(struct json_value item, const char *host, struct stack_set *set,
		      struct err *err)
{
	AUTO(stack_process_done) struct stack_process process = STACK_PROCESS_INIT;
	AUTO(members_done) struct members members = { .items = NULL };
	AUTO_FREE char *command = text_at(item, "command"), *note = text_at(item, "note");
	process.child = json_value_is_true(json_value_get(item, "child"));
	stack_set_text(&process.command, bytes_str(command));
	stack_set_text(&process.note, bytes_str(note));
	read_threads(json_value_get(item, "threads"), &process);
	int r = read_members(json_value_get(item, "workers"), host, set, &members, err);
	if (r == 0 && members.count)
		stack_set_add(set, &process, members.items, members.count);
	return r;
}

int stack_json_read(const char *text, size_t len, const char *host, struct stack_set *set,
		    struct err *err)
{
	struct json_value all, list, item;
	struct json_in in;
	int r = 0;
	if (json_value_parse(text, len, &all) < 0 ||
	    (list = json_value_get(all, "stacks")).kind != JSON_ARRAY)
		return err_set(err, EPROTO, "not a list of stacks");
	for (json_value_enter(list, &in); r == 0 && json_value_next(&in, &item);)
		r = read_stack(item, host, set, err);
	return r;
}
