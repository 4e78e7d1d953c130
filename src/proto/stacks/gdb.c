#include <errno.h>

#include "proto/stacks/native.h"

/* Thread 2 (Thread 0x7f81789f06c0 (LWP 16542) "cprog"):
 * Thread 1 (process 16542):
 */
static struct stack_thread *read_thread(struct bytes line, const struct stack_target *target,
					struct stack_process *process)
{
	static const char *const words[] = { "(LWP ", "(process " };
	pid_t tid = 0;
	for (size_t i = 0; i < ARRAY_LEN(words) && tid == 0; i++) {
		const unsigned char *at = native_find(line, words[i]);
		struct bytes rest = line;
		if (!at)
			continue;
		rest = bytes_of(at, line.len - (size_t)(at - line.data));
		native_takes(&rest, words[i]);
		tid = (pid_t)native_number(&rest);
	}
	struct bytes name = bytes_of(NULL, 0);
	const unsigned char *open = native_find(line, " \""), *close = native_find_last(line, "\"");
	if (open && close > open + 2)
		name = bytes_of(open + 2, (size_t)(close - open) - 2);
	struct stack_thread *thread = stack_add_thread(process, name, tid);
	if (thread)
		thread->main = tid == target->pid;
	return thread;
}

/* Where the name of the function ends: before its arguments in brackets. */
static size_t name_length(struct bytes line)
{
	static const char *const ends[] = { ") at ", ") from " };
	struct bytes head = line;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const unsigned char *at = native_find(head, ends[i]);
		if (at)
			head.len = (size_t)(at - head.data);
	}
	const unsigned char *arguments = native_find_last(head, " (");
	return arguments ? (size_t)(arguments - line.data) : line.len;
}

/* "inner (a=...) at c.c:3", "poll () from /lib/libc.so.6", "?? ()" */
static void read_frame(struct bytes line, const struct stack_target *target,
		       struct stack_thread *thread)
{
	native_takes(&line, "in ");
	struct bytes name = bytes_of(line.data, name_length(line)), file = bytes_of(NULL, 0);
	struct bytes rest = bytes_of(line.data + name.len, line.len - name.len);
	const unsigned char *at = native_find_last(rest, ") at "),
			    *from = native_find_last(rest, ") from ");
	uint32_t number = 0;
	bool own = *target->exe && !from && native_own(name);
	if (from) {
		file = bytes_of(from + 7, rest.len - (size_t)(from + 7 - rest.data));
	} else if (at) {
		file = bytes_of(at + 5, rest.len - (size_t)(at + 5 - rest.data));
		const unsigned char *colon = native_find_last(file, ":");
		if (colon) {
			struct bytes digits =
				bytes_of(colon + 1, file.len - (size_t)(colon + 1 - file.data));
			number = native_number(&digits);
			file.len = (size_t)(colon - file.data);
		}
		/* The sources of the C library, if it has them */
		own = own && !native_find(file, "../sysdeps/") && !native_find(file, "./nptl/") &&
		      !native_find(file, "../csu/");
	} else {
		file = bytes_str(target->exe);
	}
	if (name.len == 2 && name.data[0] == '?')
		name.len = 0;
	stack_add_frame(thread, FRAME_NATIVE, name, native_basename(file), number, own);
}

int stack_read_gdb(const char *text, size_t len, const struct stack_target *target,
		   struct stack_process *process)
{
	struct bytes rest = bytes_of(text, len), line;
	struct stack_thread *thread = NULL;
	size_t frames = 0;
	while (native_line(&rest, &line)) {
		struct bytes head = line;
		if (native_takes(&head, "Thread ")) {
			thread = read_thread(line, target, process);
		} else if (thread && native_frame(&line)) {
			read_frame(line, target, thread);
			frames++;
		}
	}
	return frames ? 0 : -EBADMSG;
}
