#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/stacks/access.h"
#include "core/stacks/stack_set.h"
#include "proto/stacks/stack_in.h"
#include "proto/stacks/stack_json.h"

static struct stack_process process;
static struct stack_set set;
static struct buf out;

/* Frames as "name file line own", from the innermost outwards; a name of '' stays empty. */
struct line {
	const char *name, *file;
	uint32_t line;
	enum frame_kind kind;
	bool own;
};

static struct stack_thread *thread(const char *name, pid_t tid)
{
	struct stack_thread *added = stack_add_thread(&process, bytes_str(name), tid);
	added->main = tid == 1;
	return added;
}

static void frames(struct stack_thread *to, const struct line *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		stack_add_frame(to, lines[i].kind, bytes_str(lines[i].name),
				bytes_str(lines[i].file), lines[i].line, lines[i].own);
}
#define FRAMES(to, ...) \
	do { \
		const struct line lines[] = { __VA_ARGS__ }; \
		frames((to), lines, ARRAY_LEN(lines)); \
	} while (0)

static void add(size_t rank, const char *host)
{
	stack_process_settle(&process);
	stack_set_text(&process.command, bytes_str("python"));
	struct stack_member member = { .rank = rank,
				       .host = host ? stack_set_host(&set, host) : 0 };
	stack_set_add(&set, &process, &member, 1);
}

static void add_at(size_t rank, const char *host, const char *callee, uint32_t line)
{
	FRAMES(thread("MainThread", 1), { "poll", "libc.so.6", 0, FRAME_NATIVE, false },
	       { callee, "torch/distributed/c10d.py", line * 7, FRAME_PYTHON, false },
	       { "wrapper", "torch/logger.py", 83, FRAME_PYTHON, false },
	       { "main", "src/train.py", line, FRAME_PYTHON, true });
	add(rank, host);
}

static const char *text_of(void (*print)(const struct stack_set *, struct buf *))
{
	buf_clear(&out);
	print(&set, &out);
	return buf_str(&out);
}

static const char *place(void)
{
	buf_clear(&out);
	stack_process_settle(&process);
	stack_place(&process, &out);
	stack_process_done(&process);
	return buf_str(&out);
}

TEST(a_place_is_the_line_of_the_user_with_what_it_called)
{
	FRAMES(thread("other", 2), { "elsewhere", "a.py", 1, FRAME_PYTHON, true });
	FRAMES(thread("MainThread", 1), { "poll", "libc.so.6", 0, FRAME_NATIVE, false },
	       { "all_reduce", "torch/distributed/c10d.py", 9, FRAME_PYTHON, false },
	       { "wrapper", "torch/logger.py", 83, FRAME_PYTHON, false },
	       { "step", "src/train.py", 88, FRAME_PYTHON, true },
	       { "<module>", "train.py", 1, FRAME_PYTHON, true });
	ck_assert_str_eq(place(), "all_reduce (train.py:88)");
	/* a builtin of Python is seen as native frames only */
	FRAMES(thread("MainThread", 1), { "os_read", "libpython3.so", 0, FRAME_NATIVE, false },
	       { "read", "data.py", 12, FRAME_PYTHON, true });
	ck_assert_str_eq(place(), "read (data.py:12)");
	FRAMES(thread("a", 1), { "__read", "libc.so.6", 0, FRAME_NATIVE, false },
	       { "main", "solver", 0, FRAME_NATIVE, true });
	ck_assert_str_eq(place(), "__read (solver)");
	FRAMES(thread("a", 1), { "pipe_read", "kernel", 0, FRAME_KERNEL, false },
	       { "read", "system call", 0, FRAME_KERNEL, true });
	ck_assert_str_eq(place(), "read (system call)");
	FRAMES(thread("a", 1), { "", "libx.so", 0, FRAME_NATIVE, false },
	       { "f", "libx.so", 0, FRAME_NATIVE, false });
	ck_assert_str_eq(place(), "f (libx.so)");
	FRAMES(thread("a", 1), { "", "", 0, FRAME_NATIVE, true });
	ck_assert_str_eq(place(), "??");
	ck_assert_str_eq(place(), "");
	buf_done(&out);
}

TEST(files_of_python_and_of_installed_packages_are_not_the_users)
{
	ck_assert(stack_python_own("/home/me/train.py"));
	ck_assert(stack_python_own("data/loader.py"));
	ck_assert(!stack_python_own("/usr/lib/python3.11/threading.py"));
	ck_assert(!stack_python_own("/venv/lib/python3.11/site-packages/x/y.py"));
	ck_assert(!stack_python_own("torch/nn/module.py"));
	ck_assert(!stack_python_own("<frozen runpy>"));
}

TEST(ranks_in_one_place_are_one_line_and_the_odd_one_comes_first)
{
	for (size_t rank = 0; rank < 62; rank++)
		add_at(rank, NULL, rank == 17 ? "send" : "all_reduce", 88);
	ck_assert_str_eq(text_of(stack_set_lines),
			 "rank 17 in send (train.py:88)\n61 ranks in all_reduce (train.py:88)\n");
	ck_assert_str_eq(
		text_of(stack_set_print),
		"rank 17 in send (train.py:88)\n61 ranks in all_reduce (train.py:88)\n"
		"1 of 62 workers (rank 17):\n"
		"Thread \"MainThread\":\n    poll (libc.so.6)\n"
		"    send (torch/distributed/c10d.py:616)\n    wrapper (torch/logger.py:83)\n"
		"    main (src/train.py:88)\n"
		"61 of 62 workers (ranks 0-16,18-61):\n"
		"Thread \"MainThread\":\n    poll (libc.so.6)\n"
		"    all_reduce (torch/distributed/c10d.py:616)\n    wrapper (torch/logger.py:83)\n"
		"    main (src/train.py:88)\n");
	stack_set_done(&set);
	buf_done(&out);
}

TEST(the_host_is_named_where_all_of_a_group_are_on_it)
{
	add_at(0, "node1", "f", 1);
	add_at(1, "node2", "f", 1);
	add_at(2, "node2", "g", 2);
	ck_assert_str_eq(text_of(stack_set_lines),
			 "rank 2 on node2 in g (train.py:2)\nranks 0-1 in f (train.py:1)\n");
	stack_set_done(&set);
	buf_done(&out);
}

TEST(what_libraries_do_inside_keeps_no_two_workers_apart)
{
	static const char *const spins[] = { "poll", "spin", "poll" };
	for (size_t rank = 0; rank < 3; rank++) {
		FRAMES(thread("MainThread", 1),
		       { spins[rank], "libnccl.so", 0, FRAME_NATIVE, false },
		       { "f", "a.py", 3, FRAME_PYTHON, true });
		/* what reads a worker that is stopped shows no native frames */
		if (rank != 1)
			FRAMES(&process.threads[0], { "", "libc.so.6", 0, FRAME_NATIVE, false });
		/* a thread of a library, in one of them only */
		if (rank == 1)
			FRAMES(thread("pool", 2), { "wait", "libomp.so", 0, FRAME_NATIVE, false });
		add(rank, NULL);
	}
	ck_assert_str_eq(text_of(stack_set_print),
			 "ranks 0-2 in f (a.py:3)\n3 of 3 workers (ranks 0-2):\n"
			 "(as rank 0 has it; 1 other differs inside of libraries)\n"
			 "Thread \"MainThread\":\n    poll (libnccl.so)\n    f (a.py:3)\n"
			 "    ?? (libc.so.6)\n");
	ck_assert_uint_eq(set.count, 2); /* both are kept, for flame graphs and programs */
	ck_assert_str_eq(text_of(stack_set_folded),
			 "python;MainThread;?? (libc.so.6);f (a.py:3);poll (libnccl.so) 2\n"
			 "python;MainThread;f (a.py:3);spin (libnccl.so) 1\n"
			 "python;pool;wait (libomp.so) 1\n");
	stack_set_done(&set);
	buf_done(&out);
}

TEST(another_thread_of_the_user_makes_a_worker_odd)
{
	for (size_t rank = 0; rank < 3; rank++) {
		FRAMES(thread("MainThread", 1), { "f", "a.py", 3, FRAME_PYTHON, true });
		FRAMES(thread("loader", 2),
		       { rank == 2 ? "g" : "h", "b.py", 9, FRAME_PYTHON, true });
		add(rank, NULL);
	}
	const char *text = text_of(stack_set_print);
	ck_assert_ptr_nonnull(strstr(text, "ranks 0-2 in f (a.py:3)\n1 of 3 workers (rank 2):\n"));
	ck_assert_ptr_nonnull(strstr(text, "2 of 3 workers (ranks 0-1):\n"));
	stack_set_done(&set);
	buf_done(&out);
}

TEST(equal_threads_are_shown_once_and_children_after_the_workers)
{
	for (pid_t tid = 1; tid <= 5; tid++)
		FRAMES(thread("pool", tid), { "wait", "libomp.so", 0, FRAME_NATIVE, false });
	add(0, NULL);
	for (size_t child = 0; child < 3; child++) {
		process.child = true;
		FRAMES(thread("MainThread", 1), { "get", "queue.py", 3, FRAME_PYTHON, true });
		add(0, NULL);
	}
	ck_assert_str_eq(text_of(stack_set_print),
			 "rank 0 in wait (libomp.so)\n1 of 1 workers (rank 0):\n"
			 "Thread \"pool\":\n    wait (libomp.so)\n"
			 "Thread \"pool\" and 3 like it:\n    wait (libomp.so)\n"
			 "3 of 3 child processes (python, of rank 0):\n"
			 "Thread \"MainThread\":\n    get (queue.py:3)\n");
	stack_set_done(&set);
	buf_done(&out);
}

TEST(a_worker_without_a_stack_is_named_with_the_reason)
{
	stack_set_text(&process.note, bytes_str("only what the kernel tells: no\x1b[31m"));
	add(4, NULL);
	ck_assert_str_eq(text_of(stack_set_print),
			 "rank 4 without a stack\n1 of 1 workers (rank 4):\n"
			 "only what the kernel tells: no?[31m\n");
	stack_set_done(&set);
	buf_done(&out);
}

TEST(an_empty_set_prints_nothing)
{
	ck_assert_str_eq(text_of(stack_set_print), "");
	ck_assert_str_eq(text_of(stack_set_folded), "");
	buf_done(&out);
}

/* ---- readers ---- */

static int reads(stack_reader_fn *read, const char *text)
{
	struct stack_target target = { .pid = 12, .exe = "/opt/solver" };
	stack_process_done(&process);
	int r = read(text, strlen(text), &target, &process);
	stack_process_settle(&process);
	buf_clear(&out);
	stack_print(&process, &out);
	return r;
}

TEST(py_spys_json_is_read_with_native_frames_and_the_main_thread_first)
{
	ck_assert_int_eq(
		reads(stack_read_pyspy,
		      "[{\"pid\":12,\"thread_name\":\"Thread-1\",\"os_thread_id\":13,\"frames\":["
		      "{\"name\":\"run\",\"filename\":\"/usr/lib/python3.11/threading.py\","
		      "\"module\":null,\"short_filename\":\"threading.py\",\"line\":982}]},"
		      "{\"pid\":12,\"thread_name\":null,\"os_thread_id\":12,\"frames\":["
		      "{\"name\":\"0x7f3ad8c4524a\",\"filename\":\"/lib/libc.so.6\","
		      "\"module\":\"/lib/libc.so.6\",\"short_filename\":\"libc.so.6\",\"line\":0},"
		      "{\"name\":\"read\",\"filename\":\"/home/me/data.py\",\"module\":null,"
		      "\"short_filename\":\"data.py\",\"line\":88}]}]"),
		0);
	ck_assert_str_eq(buf_str(&out), "Thread:\n    ?? (libc.so.6)\n    read (data.py:88)\n"
					"Thread \"Thread-1\":\n    run (threading.py:982)\n");
	ck_assert(process.threads[0].main && process.threads[0].frames[1].own);
	ck_assert(!process.threads[1].frames[0].own);
	ck_assert_int_eq(reads(stack_read_pyspy, "[]"), -EBADMSG);
	ck_assert_int_eq(reads(stack_read_pyspy, "Error: no"), -EBADMSG);
	ck_assert_int_eq(reads(stack_read_pyspy, "[{\"frames\":[1,{}]},3]"), 0);
	stack_process_done(&process);
	buf_done(&out);
}

TEST(eu_stacks_text_is_read_with_the_sources_of_the_program)
{
	ck_assert_int_eq(reads(stack_read_eustack,
			       "PID 12 - process\nTID 12:\n"
			       "#0  0x00007f8178aec2ec read@GLIBC_2.2 - /usr/lib/libc.so.6\n"
			       "    ../sysdeps/unix/sysv/linux/read.c:26:10\n"
			       "#1  0x00005593074921b7 main - /opt/solver\n"
			       "    /src/solver.c:5:68\n"
			       "#2  0x0000559307492091 _start - /opt/solver\n"
			       "TID 14:\n#0  0x00007f8178afd8ec\n"),
			 0);
	ck_assert_str_eq(buf_str(&out), "Thread:\n    read (libc.so.6)\n    main (solver.c:5)\n"
					"    _start (solver)\nThread:\n    ??\n");
	ck_assert(process.threads[0].frames[1].own && !process.threads[0].frames[2].own);
	ck_assert_str_eq(place(), "read (solver.c:5)");
	ck_assert_int_eq(reads(stack_read_eustack, "eu-stack: dwfl_linux_proc_attach\n"), -EBADMSG);
	ck_assert_int_eq(reads(stack_read_eustack, "#0  0x1 f\n"), -EBADMSG);
	stack_process_done(&process);
	buf_done(&out);
}

TEST(gdbs_text_is_read_with_names_sources_and_libraries)
{
	ck_assert_int_eq(
		reads(stack_read_gdb,
		      "[New LWP 14]\n26\t../sysdeps/read.c: No such file\n\n"
		      "Thread 2 (Thread 0x7f81789f06c0 (LWP 14) \"io\"):\n"
		      "#0  0x00007f8178ac7df2 in poll () from /lib/libc.so.6\n"
		      "#1  0x0000559307492162 in ns::work<int>::operator() (this=...) at c.cc:3\n\n"
		      "Thread 1 (Thread 0x7f81789f1740 (LWP 12) \"solver\"):\n"
		      "#0  __libc_read (nbytes=..., buf=...) at "
		      "../sysdeps/unix/sysv/linux/read.c:26\n"
		      "#1  0x00005593074921b7 in main () at /src/c.cc:5\n"
		      "#2  0x000055930749 in ?? ()\n[Inferior 1 (process 12) detached]\n"),
		0);
	ck_assert_str_eq(buf_str(&out), "Thread \"solver\":\n    __libc_read (read.c:26)\n"
					"    main (c.cc:5)\n    ?? (solver)\n"
					"Thread \"io\":\n    poll (libc.so.6)\n"
					"    ns::work<int>::operator() (c.cc:3)\n");
	ck_assert_str_eq(place(), "__libc_read (c.cc:5)");
	ck_assert_int_eq(reads(stack_read_gdb, "Could not attach to process.\n"), -EBADMSG);
	stack_process_done(&process);
	buf_done(&out);
}

/* ---- between hosts ---- */

TEST(a_set_crosses_hosts_as_json_and_is_merged)
{
	AUTO(buf_done) struct buf json = BUF_INIT, before = BUF_INIT;
	for (size_t rank = 0; rank < 4; rank++)
		add_at(rank, NULL, rank == 3 ? "g" : "f", 5);
	process.child = true;
	FRAMES(thread("sleep", 1), { "nanosleep", "system call", 0, FRAME_KERNEL, true });
	stack_set_text(&process.note, bytes_str("why"));
	add(3, NULL);
	struct json_out writer = JSON_OUT(&json);
	stack_json_write(&writer, &set);
	stack_set_print(&set, &before);
	stack_set_done(&set);
	struct err err = ERR_INIT;
	ck_assert_int_eq(stack_json_read(buf_str(&json), buf_len(&json), NULL, &set, &err), 0);
	ck_assert_str_eq(text_of(stack_set_print), buf_str(&before));
	ck_assert_int_eq(stack_json_read(buf_str(&json), buf_len(&json), "node2", &set, &err), 0);
	ck_assert_uint_eq(set.count, 3);
	stack_set_done(&set);
	ck_assert_int_eq(stack_json_read("[]", 2, NULL, &set, &err), -EPROTO);
	ck_assert_int_eq(stack_json_read("no", 2, NULL, &set, &err), -EPROTO);
	static const char odd[] = "{\"stacks\":[{\"workers\":[{\"rank\":-1}]}]}";
	ck_assert_int_eq(stack_json_read(odd, strlen(odd), NULL, &set, &err), -EPROTO);
	stack_set_done(&set);
	buf_done(&out);
}

TEST(a_refusal_of_the_kernel_comes_with_its_remedy)
{
	static const struct {
		struct stack_access access;
		const char *part;
	} cases[] = {
		{ { true, true, 1 }, "another user" },
		{ { true, false, 1 }, "ptrace_scope is 1" },
		{ { true, false, 2 }, "ptrace_scope is 2" },
		{ { true, false, 3 }, "until the next boot" },
		{ { true, false, 0 }, "--cap-add=SYS_PTRACE" },
		{ { true, false, -1 }, "--cap-add=SYS_PTRACE" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_ptr_nonnull(strstr(stack_access_remedy(&cases[i].access), cases[i].part));
	ck_assert_str_eq(stack_access_remedy(&(struct stack_access){ .denied = false }), "");
}

static struct bytes word(const char *text)
{
	return bytes_str(text);
}

/* Where a process with one thread of one frame is. */
static const char *placed(const char *name, const char *file, uint32_t line)
{
	static struct buf text;
	AUTO(stack_process_done) struct stack_process one_process = STACK_PROCESS_INIT;
	struct stack_thread *thread = stack_add_thread(&one_process, word("main"), 1);
	stack_add_frame(thread, FRAME_NATIVE, word(name), word(file), line, false);
	buf_clear(&text);
	stack_place(&one_process, &text);
	return buf_str(&text);
}

TEST(a_place_has_what_is_known_of_it)
{
	ck_assert_str_eq(placed("f", "/x/a.c", 7), "f (a.c:7)");
	ck_assert_str_eq(placed("f", "a", 7), "f (a:7)"); /* a name of one byte is one */
	ck_assert_str_eq(placed("f", "a.c", 0), "f (a.c)");
	ck_assert_str_eq(placed("f", "", 7), "f");
	ck_assert_str_eq(placed("", "a.c", 7), "?? (a.c:7)");
}

TEST(a_process_has_a_limited_number_of_threads)
{
	AUTO(stack_process_done) struct stack_process one_process = STACK_PROCESS_INIT;
	for (int i = 0; i < STACK_THREADS_MAX; i++)
		ck_assert_ptr_nonnull(stack_add_thread(&one_process, word("t"), i));
	ck_assert_ptr_null(stack_add_thread(&one_process, word("t"), 1));
	ck_assert_uint_eq(one_process.count, STACK_THREADS_MAX);
}

TEST(processes_without_a_stack_are_told_apart_by_the_reason)
{
	AUTO(stack_process_done)
	struct stack_process a = STACK_PROCESS_INIT, b = STACK_PROCESS_INIT;
	AUTO(buf_done) struct buf one = BUF_INIT, other = BUF_INIT;
	a.note = mem_strdup("not permitted");
	b.note = mem_strdup("gone");
	stack_key(&a, &one);
	stack_key(&b, &other);
	ck_assert_str_ne(buf_str(&one), buf_str(&other));
}
