/* Where the threads of one process are: a process, its threads, their frames from the innermost
 * outwards.
 *
 * Two questions matter in a job of many workers. What do people want to read first: the place, such
 * as "all_reduce (train.py:88)". And when are two workers in the same place: when their own code
 * is, whatever the libraries below it do just then. */
#ifndef CORE_STACKS_STACK_H
#define CORE_STACKS_STACK_H

#include "base/buf.h"
#include "base/bytes.h"

#define STACK_FRAMES_MAX 256 /* of a thread; more are left out */
#define STACK_THREADS_MAX 256
#define STACK_WORD_MAX 1024 /* bytes of a name, a file or a note */

enum frame_kind {
	FRAME_NATIVE,
	FRAME_PYTHON,
	FRAME_KERNEL,
	FRAME_KIND_COUNT,
};

struct stack_frame {
	char *name; /* "": not known */
	char *file; /* a source file, or the program or library; "": not known */
	uint32_t line;
	enum frame_kind kind;
	bool own; /* of the user's program, not of a library */
};

struct stack_thread {
	char *name; /* "": it has none */
	pid_t tid;  /* for those who read it; 0: not known */
	bool main;
	size_t times; /* threads of the process that are all the same */
	struct stack_frame *frames;
	size_t count, cap;
};

struct stack_process {
	char *command; /* its name */
	char *note;    /* for users: what is missing, why, and the remedy; "": nothing */
	bool child;    /* of a worker, at any depth, not the worker itself */
	struct stack_thread *threads;
	size_t count, cap;
};

#define STACK_PROCESS_INIT ((struct stack_process){ .threads = NULL })
void stack_process_done(struct stack_process *process);
struct stack_process stack_process_take(struct stack_process *process); /* hands it over */

/* Texts become printable, and are cut at their limits. Beyond STACK_THREADS_MAX or STACK_FRAMES_MAX
 * there is none: NULL, and the frame is left out. */
struct stack_thread *stack_add_thread(struct stack_process *process, struct bytes name, pid_t tid);
void stack_add_frame(struct stack_thread *thread, enum frame_kind kind, struct bytes name,
		     struct bytes file, uint32_t line, bool own);
void stack_set_text(char **text, struct bytes value); /* of the members above; NULL is replaced */

/* When all frames are there: puts the main thread first and joins equal threads. */
void stack_process_settle(struct stack_process *process);

/* Whether a Python file belongs to the user: not to Python, PyTorch or an installed package. */
bool stack_python_own(const char *path);

/* "read (data.py:88)\n", indented, for each frame under a line for its thread. */
void stack_print(const struct stack_process *process, struct buf *out);
/* "read (data.py:88)" */
void stack_frame_print(const struct stack_frame *frame, struct buf *out);

/* The innermost frame of the user's own code in the main thread; NULL: none. */
const struct stack_frame *stack_own_frame(const struct stack_process *process);

/* "all_reduce (train.py:88)": the line of the user's program, and what it called there. "": no
 * frame is known. */
void stack_place(const struct stack_process *process, struct buf *out);

/* Equal for two processes in the same place: the user's code in all threads, and what it called. */
void stack_key(const struct stack_process *process, struct buf *out);

#endif
