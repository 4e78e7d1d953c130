#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/worker/exit_code.h"
#include "run/entry.h"

static struct entry entry;
static struct err err;
static char directory[] = "/tmp/entry_test_XXXXXX";

static void touch(const char *name, mode_t mode, const char *text)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fchmod(fd, mode);
	close(fd);
}

/* A directory of its own with a stand-in interpreter, as the only thing on PATH. */
static void begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chdir(directory), 0);
	mkdir("bin", 0755);
	touch("bin/python3", 0755, "#!/bin/sh\n");
	touch("bin/tool", 0755, "#!/bin/sh\n");
	char path[128];
	snprintf(path, sizeof(path), "%s/bin", directory);
	setenv("PATH", path, 1);
	unsetenv("PYTHON_EXEC");
}

static void end(void)
{
	entry_done(&entry);
	char command[128];
	snprintf(command, sizeof(command), "/bin/rm -rf '%s'", directory);
	ck_assert_int_eq(system(command), 0);
}

static int resolve(enum entry_kind kind, const char *word)
{
	static char *const args[] = { "a", "b", NULL };
	entry_done(&entry);
	err = ERR_INIT;
	return entry_resolve(kind, word, args, &entry, &err);
}

static const char *joined(const struct strv *argv)
{
	static char text[2048];
	text[0] = '\0';
	for (size_t i = 0; i < argv->count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 argv->items[i]);
	return text;
}

TEST(entry_runs_scripts_by_python_and_programs_themselves)
{
	begin();
	touch("train.py", 0644, "");
	touch("tool.py", 0755, "");
	touch("script", 0644, "");
	touch("a.out", 0755, "");
	char expected[256];

	static const char *const scripts[] = { "train.py", "tool.py", "script", "./train.py" };
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		ck_assert_int_eq(resolve(ENTRY_AUTO, scripts[i]), 0);
		snprintf(expected, sizeof(expected), "%s/bin/python3 -u %s a b", directory,
			 scripts[i]);
		ck_assert_str_eq(joined(&entry.argv), expected);
		ck_assert(entry.python);
		ck_assert_str_eq(entry.title, scripts[i]);
	}
	ck_assert_int_eq(resolve(ENTRY_AUTO, "a.out"), 0);
	ck_assert_str_eq(entry.path, "./a.out");
	ck_assert_str_eq(joined(&entry.argv), "a.out a b");
	ck_assert(!entry.python);
	ck_assert_int_eq(resolve(ENTRY_AUTO, "tool"), 0);
	snprintf(expected, sizeof(expected), "%s/bin/tool", directory);
	ck_assert_str_eq(entry.path, expected);
	ck_assert_str_eq(joined(&entry.argv), "tool a b");
	end();
}

TEST(entry_knows_modules_programs_and_run_path)
{
	begin();
	touch("train.py", 0644, "");
	char expected[256];
	ck_assert_int_eq(resolve(ENTRY_MODULE, "pkg.mod"), 0);
	snprintf(expected, sizeof(expected), "%s/bin/python3 -u -m pkg.mod a b", directory);
	ck_assert_str_eq(joined(&entry.argv), expected);
	ck_assert_int_eq(resolve(ENTRY_NO_PYTHON, "tool"), 0);
	ck_assert_str_eq(joined(&entry.argv), "tool a b");
	ck_assert_int_eq(resolve(ENTRY_RUN_PATH, "train.py"), 0);
	ck_assert_str_eq(entry.title, "run_script_path");
	ck_assert_str_eq(entry.argv.items[2], "-c");
	ck_assert_str_eq(entry.argv.items[4], "train.py");
	mkdir("pkg", 0755);
	touch("pkg/__main__.py", 0644, "");
	ck_assert_int_eq(resolve(ENTRY_AUTO, "pkg"), 0);
	ck_assert(entry.python);
	end();
}

TEST(entry_prefers_the_interpreter_it_is_told)
{
	begin();
	touch("train.py", 0644, "");
	setenv("PYTHON_EXEC", "tool", 1);
	ck_assert_int_eq(resolve(ENTRY_AUTO, "train.py"), 0);
	ck_assert_ptr_nonnull(strstr(entry.path, "/bin/tool"));
	setenv("PYTHON_EXEC", "/no/such", 1);
	ck_assert_int_eq(resolve(ENTRY_AUTO, "train.py"), -ENOENT);
	ck_assert_str_eq(err.msg, "PYTHON_EXEC: '/no/such': No such file or directory");
	unsetenv("PYTHON_EXEC");
	touch("bin/python", 0755, "");
	ck_assert_int_eq(resolve(ENTRY_AUTO, "train.py"), 0);
	ck_assert_ptr_nonnull(strstr(entry.path, "/bin/python"));
	ck_assert_ptr_null(strstr(entry.path, "python3"));
	setenv("PATH", "/nowhere", 1);
	ck_assert_int_eq(resolve(ENTRY_AUTO, "train.py"), -ENOENT);
	end();
}

TEST(entry_refuses_what_cannot_be_run)
{
	begin();
	mkdir("dir", 0755);
	touch("plain", 0644, "");
	ck_assert_int_eq(resolve(ENTRY_AUTO, "missing.py"), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "'missing.py': no such script or program"));
	ck_assert_int_eq(resolve(ENTRY_AUTO, "missing"), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "or on PATH"));
	ck_assert_int_eq(resolve(ENTRY_AUTO, "dir"), -EISDIR);
	ck_assert_int_eq(resolve(ENTRY_NO_PYTHON, "./dir"), -EISDIR);
	ck_assert_int_eq(resolve(ENTRY_NO_PYTHON, "./plain"), -EACCES);
	ck_assert_str_eq(err.msg, "'./plain' is not executable: chmod +x it");
	touch("here", 0755, "");
	ck_assert_int_eq(resolve(ENTRY_NO_PYTHON, "here"), -ENOENT);
	ck_assert_str_eq(err.msg, "program 'here' is not on PATH; for the one here write './here'");
	end();
}

TEST(macros_are_replaced_and_every_other_dollar_stays)
{
	static const char *const cases[][2] = {
		{ "$local_rank", "3" },
		{ "x${local_rank}y", "x3y" },
		{ "$local_rankx", "$local_rankx" },
		{ "$local_rank-$local_rank", "3-3" },
		{ "echo $$", "echo $$" },
		{ "$$local_rank", "$$local_rank" },
		{ "$$$local_rank", "$$3" },
		{ "$5 ${ $ ${rank}", "$5 ${ $ ${rank}" },
		{ "$LOCAL_RANK", "$LOCAL_RANK" },
		{ "${local_rank", "${local_rank" },
		{ "$", "$" },
		{ "", "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(strv_done) struct strv argv = STRV_INIT;
		struct entry e = { .argv = STRV_INIT, .fixed = 1 };
		strv_add(&e.argv, "$local_rank");
		strv_add(&e.argv, cases[i][0]);
		entry_argv(&e, 3, &argv);
		ck_assert_str_eq(argv.items[0], "$local_rank");
		ck_assert_str_eq(argv.items[1], cases[i][1]);
		entry_done(&e);
	}
}

TEST(spawn_errors_name_the_cause)
{
	begin();
	touch("bad", 0755, "#!/no/such/interpreter -x\n");
	ck_assert_int_eq(resolve(ENTRY_AUTO, "bad"), 0);
	entry_explain_spawn(&entry, ENOENT, &err);
	ck_assert_str_eq(err.msg, "'./bad': its interpreter '/no/such/interpreter' does not exist");
	entry_explain_spawn(&entry, EAGAIN, &err);
	ck_assert_ptr_nonnull(strstr(err.msg, "ulimit -u"));
	end();
}
