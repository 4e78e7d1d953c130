#include "core/stacks/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static void thread_done(struct stack_thread *thread)
{
	for (size_t i = 0; i < thread->count; i++) {
		free(thread->frames[i].name);
		free(thread->frames[i].file);
	}
	free(thread->frames);
	free(thread->name);
}

void stack_process_done(struct stack_process *process)
{
	for (size_t i = 0; i < process->count; i++)
		thread_done(&process->threads[i]);
	free(process->threads);
	free(process->command);
	free(process->note);
	*process = STACK_PROCESS_INIT;
}

struct stack_process stack_process_take(struct stack_process *process)
{
	struct stack_process taken = *process;
	*process = STACK_PROCESS_INIT;
	return taken;
}

void stack_set_text(char **text, struct bytes value)
{
	free(*text);
	*text = mem_strndup(value.len ? (const char *)value.data : "",
			    MIN(value.len, (size_t)STACK_WORD_MAX));
	str_make_printable(*text);
}

struct stack_thread *stack_add_thread(struct stack_process *process, struct bytes name, pid_t tid)
{
	if (process->count == STACK_THREADS_MAX)
		return NULL;
	ARRAY_RESERVE(process->threads, process->count, process->cap);
	struct stack_thread *thread = &process->threads[process->count++];
	*thread = (struct stack_thread){ .tid = tid, .times = 1 };
	stack_set_text(&thread->name, name);
	return thread;
}

void stack_add_frame(struct stack_thread *thread, enum frame_kind kind, struct bytes name,
		     struct bytes file, uint32_t line, bool own)
{
	if (!thread || thread->count == STACK_FRAMES_MAX)
		return;
	ARRAY_RESERVE(thread->frames, thread->count, thread->cap);
	struct stack_frame *frame = &thread->frames[thread->count++];
	*frame = (struct stack_frame){ .line = line, .kind = kind, .own = own };
	stack_set_text(&frame->name, name);
	stack_set_text(&frame->file, file);
}

/* ---- settling ---- */

static bool same_frame(const struct stack_frame *a, const struct stack_frame *b)
{
	return a->line == b->line && a->kind == b->kind && a->own == b->own &&
	       str_eq(a->name, b->name) && str_eq(a->file, b->file);
}

static bool same_thread(const struct stack_thread *a, const struct stack_thread *b)
{
	if (a->count != b->count || a->main || b->main || !str_eq(a->name, b->name))
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!same_frame(&a->frames[i], &b->frames[i]))
			return false;
	return true;
}

static int by_thread(const void *a, const void *b)
{
	const struct stack_thread *x = a, *y = b;
	if (x->main != y->main)
		return x->main ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static bool joins_another(struct stack_process *process, size_t count,
			  const struct stack_thread *thread)
{
	for (size_t i = 0; i < count; i++)
		if (same_thread(&process->threads[i], thread)) {
			process->threads[i].times += thread->times;
			return true;
		}
	return false;
}

void stack_process_settle(struct stack_process *process)
{
	size_t kept = 0;
	if (process->count > 1)
		qsort(process->threads, process->count, sizeof(process->threads[0]), by_thread);
	for (size_t i = 0; i < process->count; i++) {
		struct stack_thread *thread = &process->threads[i];
		if (joins_another(process, kept, thread))
			thread_done(thread);
		else
			process->threads[kept++] = *thread;
	}
	process->count = kept;
}

/* ---- places ---- */

bool stack_python_own(const char *path)
{
	static const char *const parts[] = { "torch/",	     "site-packages/", "dist-packages/",
					     "/lib/python3", "/lib64/python3", "<frozen ",
					     "<string>" };
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (strstr(path, parts[i]))
			return false;
	return true;
}

/* Decorators of Python that say nothing about what was called. */
static bool says_nothing(const char *name)
{
	static const char *const names[] = { "wrapper",	   "wrapped", "inner",
					     "_call_impl", "_fn",     "_wrapped_call_impl",
					     "__call__",   "",	      "decorate_context" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

/* The innermost frame of the user's code; the number of frames: there is none. */
static size_t own_index(const struct stack_thread *thread)
{
	size_t i = 0;
	while (i < thread->count && !thread->frames[i].own)
		i++;
	return i;
}

/* What the user's frame called: a function of the same language in a library. NULL: none, or only
 * ones that say nothing. */
static const struct stack_frame *callee_of(const struct stack_thread *thread, size_t own)
{
	for (size_t i = own; i-- > 0;) {
		const struct stack_frame *frame = &thread->frames[i];
		if (frame->kind != thread->frames[own].kind || frame->kind == FRAME_KERNEL)
			return NULL;
		if (!says_nothing(frame->name))
			return frame;
	}
	return NULL;
}

static const struct stack_thread *main_thread(const struct stack_process *process)
{
	return process->count ? &process->threads[0] : NULL;
}

const struct stack_frame *stack_own_frame(const struct stack_process *process)
{
	const struct stack_thread *thread = main_thread(process);
	size_t own = thread ? own_index(thread) : 0;
	return thread && own < thread->count ? &thread->frames[own] : NULL;
}

/* A thread without code of the user: its innermost Python frame, else the innermost with a name. */
static const struct stack_frame *best_frame(const struct stack_thread *thread)
{
	for (size_t i = 0; i < thread->count; i++)
		if (thread->frames[i].kind == FRAME_PYTHON)
			return &thread->frames[i];
	for (size_t i = 0; i < thread->count; i++)
		if (thread->frames[i].name[0])
			return &thread->frames[i];
	return thread->count ? &thread->frames[0] : NULL;
}

static void put_place(const char *name, const struct stack_frame *frame, struct buf *out)
{
	const char *slash = strrchr(frame->file, '/');
	buf_append_str(out, name[0] ? name : "??");
	if (frame->file[0])
		buf_printf(out, " (%s", slash ? slash + 1 : frame->file);
	if (frame->file[0] && frame->line)
		buf_printf(out, ":%u", frame->line);
	if (frame->file[0])
		buf_append_char(out, ')');
}

static void thread_place(const struct stack_thread *thread, struct buf *out)
{
	size_t own = own_index(thread);
	if (own < thread->count) {
		const struct stack_frame *callee = callee_of(thread, own);
		put_place(callee ? callee->name : thread->frames[own].name, &thread->frames[own],
			  out);
		return;
	}
	const struct stack_frame *frame = best_frame(thread);
	if (frame)
		put_place(frame->name, frame, out);
}

void stack_place(const struct stack_process *process, struct buf *out)
{
	const struct stack_thread *thread = main_thread(process);
	if (thread)
		thread_place(thread, out);
}

void stack_key(const struct stack_process *process, struct buf *out)
{
	stack_place(process, out);
	buf_append_char(out, '\n');
	for (size_t i = 0; i < process->count; i++) {
		const struct stack_thread *thread = &process->threads[i];
		size_t own = own_index(thread);
		if (own == thread->count)
			continue;
		thread_place(thread, out);
		/* Frames of one language: not every reader shows the native ones around Python. */
		for (size_t j = own; j < thread->count; j++) {
			if (thread->frames[j].kind != thread->frames[own].kind)
				continue;
			buf_append_char(out, '\n');
			stack_frame_print(&thread->frames[j], out);
		}
		buf_append_char(out, '\n');
	}
	if (process->count == 0 && process->note)
		buf_append_str(out, process->note);
}

/* ---- text ---- */

void stack_frame_print(const struct stack_frame *frame, struct buf *out)
{
	buf_append_str(out, frame->name[0] ? frame->name : "??");
	if (!frame->file[0])
		return;
	buf_printf(out, frame->line ? " (%s:%u)" : " (%s)", frame->file, frame->line);
}

void stack_print(const struct stack_process *process, struct buf *out)
{
	if (process->note && process->note[0])
		buf_printf(out, "%s\n", process->note);
	for (size_t i = 0; i < process->count; i++) {
		const struct stack_thread *thread = &process->threads[i];
		buf_append_str(out, "Thread");
		if (thread->name[0])
			buf_printf(out, " \"%s\"", thread->name);
		if (thread->times > 1)
			buf_printf(out, " and %zu like it", thread->times - 1);
		buf_append_str(out, ":\n");
		for (size_t j = 0; j < thread->count; j++) {
			buf_append_str(out, "    ");
			stack_frame_print(&thread->frames[j], out);
			buf_append_char(out, '\n');
		}
	}
}
