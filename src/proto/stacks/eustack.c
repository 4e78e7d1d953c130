#include <errno.h>

#include "proto/stacks/native.h"

/* A frame may have its source in the line that follows: it is added when that is known. */
struct pending {
	bool open;
	struct bytes name, module;
};

static void flush(struct pending *frame, struct stack_thread *thread, struct bytes file,
		  uint32_t line, const char *exe)
{
	if (!frame->open)
		return;
	bool own = *exe && bytes_eq(frame->module, bytes_str(exe)) && native_own(frame->name);
	/* A library's sources are of no use to the user; its name is. */
	bool source = own && file.len;
	stack_add_frame(thread, FRAME_NATIVE, native_symbol(frame->name),
			native_basename(source ? file : frame->module), source ? line : 0, own);
	frame->open = false;
}

/* "name - /usr/lib/libc.so.6", both may be missing. */
static struct pending read_frame(struct bytes line)
{
	struct pending frame = { .open = true, .name = line };
	const unsigned char *dash = native_find_last(line, "- ");
	if (dash && (dash == line.data || dash[-1] == ' ')) {
		size_t name_len = (size_t)(dash - line.data);
		frame.module = bytes_of(dash + 2, line.len - name_len - 2);
		frame.name.len = name_len ? name_len - 1 : 0;
	}
	return frame;
}

/* "    /src/main.c:12:5" */
static bool read_source(struct bytes line, struct bytes *ret_file, uint32_t *ret_line)
{
	if (!native_takes(&line, "    "))
		return false;
	const unsigned char *colon = native_find(line, ":");
	*ret_file = line;
	*ret_line = 0;
	if (colon) {
		ret_file->len = (size_t)(colon - line.data);
		struct bytes rest = bytes_of(colon + 1, line.len - ret_file->len - 1);
		*ret_line = native_number(&rest);
	}
	return true;
}

int stack_read_eustack(const char *text, size_t len, const struct stack_target *target,
		       struct stack_process *process)
{
	struct bytes rest = bytes_of(text, len), line, file;
	struct stack_thread *thread = NULL;
	struct pending frame = { .open = false };
	const struct bytes none = bytes_of(NULL, 0);
	uint32_t number;
	size_t frames = 0;
	while (native_line(&rest, &line)) {
		if (frame.open && read_source(line, &file, &number)) {
			flush(&frame, thread, file, number, target->exe);
			continue;
		}
		flush(&frame, thread, none, 0, target->exe);
		if (native_takes(&line, "TID ")) {
			pid_t tid = (pid_t)native_number(&line);
			thread = stack_add_thread(process, none, tid);
			if (thread)
				thread->main = tid == target->pid;
		} else if (thread && native_frame(&line)) {
			frame = read_frame(line);
			frames++;
		}
	}
	flush(&frame, thread, none, 0, target->exe);
	return frames ? 0 : -EBADMSG;
}
