#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/json_value.h"
#include "proto/stacks/stack_in.h"

static char *text_at(struct json_value object, const char *key)
{
	char *text = json_value_text(json_value_get(object, key));
	return text ? text : mem_strdup("");
}

static void read_frame(struct json_value item, struct stack_thread *thread)
{
	AUTO_FREE char *name = text_at(item, "name"), *path = text_at(item, "filename"),
		       *file = text_at(item, "short_filename");
	int64_t line = 0;
	json_value_int(json_value_get(item, "line"), &line);
	/* Native frames name their library and have no line. */
	bool native = json_value_get(item, "module").kind == JSON_STRING;
	bool address = native && str_starts(name, "0x");
	stack_add_frame(thread, native ? FRAME_NATIVE : FRAME_PYTHON,
			bytes_str(address ? "" : name), bytes_str(*file ? file : path),
			line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0,
			!native && stack_python_own(path));
}

static size_t read_thread(struct json_value item, const struct stack_target *target,
			  struct stack_process *process)
{
	AUTO_FREE char *name = text_at(item, "thread_name");
	int64_t tid = 0;
	json_value_int(json_value_get(item, "os_thread_id"), &tid);
	struct stack_thread *thread = stack_add_thread(
		process, bytes_str(name), tid > 0 && tid <= INT32_MAX ? (pid_t)tid : 0);
	if (!thread)
		return 0;
	thread->main = thread->tid ? thread->tid == target->pid : str_eq(name, "MainThread");
	struct json_value frame;
	struct json_in in;
	for (json_value_enter(json_value_get(item, "frames"), &in); json_value_next(&in, &frame);)
		read_frame(frame, thread);
	return thread->count;
}

int stack_read_pyspy(const char *text, size_t len, const struct stack_target *target,
		     struct stack_process *process)
{
	struct json_value all, item;
	struct json_in in;
	size_t frames = 0;
	if (json_value_parse(text, len, &all) < 0 || all.kind != JSON_ARRAY)
		return -EBADMSG;
	for (json_value_enter(all, &in); json_value_next(&in, &item);)
		frames += read_thread(item, target, process);
	return frames ? 0 : -EBADMSG;
}
