#include "run/entry.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "run/limits.h"

#define SHEBANG_MAX 256 /* the kernel reads this much of a "#!" line */

/* What --run-path does: the script runs as __main__ with its own sys.argv, and an uncaught
 * exception is recorded for the report, as torch's @record does. */
static const char run_path_bootstrap[] =
	"import os, runpy, sys\n"
	"sys.argv = sys.argv[1:]\n"
	"try:\n"
	"    runpy.run_path(sys.argv[0], run_name='__main__')\n"
	"except Exception as e:\n"
	"    path = os.environ.get('TORCHELASTIC_ERROR_FILE')\n"
	"    if path and not os.path.exists(path):\n"
	"        import json, time, traceback\n"
	"        info = {'py_callstack': traceback.format_exc(), 'timestamp': "
	"str(int(time.time()))}\n"
	"        text = '%s: %s' % (type(e).__name__, e)\n"
	"        with open(path, 'w') as file:\n"
	"            json.dump({'message': {'message': text, 'extraInfo': info}}, file)\n"
	"    raise\n";

static bool is_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static char *beside(const char *program, const char *name)
{
	const char *slash = strrchr(program, '/');
	if (!slash)
		return NULL;
	char *path = mem_printf("%.*s/%s", (int)(slash - program), program, name);
	if (path_is_program(path))
		return path;
	free(path);
	return NULL;
}

/* First where it was called (a link in a virtual environment), then where the file really is. */
static char *python_beside_muster(void)
{
	const char *called = (const char *)getauxval(AT_EXECFN);
	char *path = called ? beside(called, "python") : NULL;
	if (path)
		return path;
	char real[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", real, sizeof(real) - 1);
	if (len < 0)
		return NULL;
	real[len] = '\0';
	return beside(real, "python");
}

static int find_python(char **ret_path, struct err *err)
{
	const char *chosen = getenv("PYTHON_EXEC");
	if (chosen && *chosen) {
		char *path = strchr(chosen, '/') ? mem_strdup(chosen) : path_search(chosen, NULL);
		if (path && path_is_program(path)) {
			*ret_path = path;
			return 0;
		}
		int code = path && is_file(path) ? EACCES : ENOENT;
		free(path);
		return err_set(err, code, "PYTHON_EXEC: '%s': %m", chosen);
	}
	char *path = python_beside_muster();
	if (!path)
		path = path_search("python", NULL);
	if (!path)
		path = path_search("python3", NULL);
	if (!path)
		return err_set(err, ENOENT,
			       "no Python interpreter: neither python nor python3 is on PATH; name "
			       "one in PYTHON_EXEC");
	*ret_path = path;
	return 0;
}

static int begin_python(struct entry *entry, struct err *err)
{
	int r = find_python(&entry->path, err);
	if (r < 0)
		return r;
	entry->python = true;
	strv_add(&entry->argv, entry->path);
	strv_add(&entry->argv, "-u");
	entry->fixed = 2;
	return 0;
}

static int check_script(const char *word, struct err *err)
{
	struct stat st;
	if (stat(word, &st) < 0)
		return err_set(err, errno, "script '%s': %m", word);
	if (access(word, R_OK) < 0)
		return err_set(err, EACCES, "script '%s' cannot be read: check its permissions",
			       word);
	if (!S_ISDIR(st.st_mode))
		return 0;
	AUTO_FREE char *main_file = mem_printf("%s/__main__.py", word);
	if (is_file(main_file))
		return 0;
	return err_set(err, EISDIR,
		       "'%s' is a directory without a __main__.py; name a script in it, or a "
		       "module with -m",
		       word);
}

static int use_script(struct entry *entry, const char *word, struct err *err)
{
	int r = check_script(word, err);
	if (r < 0 || (r = begin_python(entry, err)) < 0)
		return r;
	strv_add(&entry->argv, word);
	return 0;
}

static int use_module(struct entry *entry, const char *word, struct err *err)
{
	int r = begin_python(entry, err);
	if (r < 0)
		return r;
	strv_add(&entry->argv, "-m");
	strv_add(&entry->argv, word);
	entry->fixed = 3;
	return 0;
}

static int use_run_path(struct entry *entry, const char *word, struct err *err)
{
	int r = check_script(word, err);
	if (r < 0 || (r = begin_python(entry, err)) < 0)
		return r;
	strv_add(&entry->argv, "-c");
	strv_add(&entry->argv, run_path_bootstrap);
	strv_add(&entry->argv, word);
	entry->fixed = 4;
	return 0;
}

static void take_program(struct entry *entry, const char *word, char *path)
{
	entry->path = path;
	strv_add(&entry->argv, word);
	entry->fixed = 1;
}

static int use_program(struct entry *entry, const char *word, struct err *err)
{
	char *path = strchr(word, '/') ? mem_strdup(word) : path_search(word, NULL);
	if (path && path_is_program(path)) {
		take_program(entry, word, path);
		return 0;
	}
	struct stat st;
	bool there = path && stat(path, &st) == 0;
	free(path);
	if (there && S_ISDIR(st.st_mode))
		return err_set(err, EISDIR, "'%s' is a directory, not a program", word);
	if (there)
		return err_set(err, EACCES, "'%s' is not executable: chmod +x it", word);
	if (!strchr(word, '/') && path_is_program(word))
		return err_set(err, ENOENT,
			       "program '%s' is not on PATH; for the one here write './%s'", word,
			       word);
	return err_set(err, ENOENT, "program '%s': no such file%s", word,
		       strchr(word, '/') ? "" : " on PATH");
}

/* The interpreter named in a script's "#!" line. */
static bool read_interpreter(const char *path, char *ret_name, size_t size)
{
	char head[SHEBANG_MAX];
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t len = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);
	head[MAX(len, 0)] = '\0';
	if (!str_starts(head, "#!"))
		return false;
	const char *name = head + 2 + strspn(head + 2, " \t");
	snprintf(ret_name, size, "%.*s", (int)MIN(strcspn(name, " \t\r\n"), size - 1), name);
	return true;
}

/* A script that is not executable is run by Python, unless it says that it is for a shell. */
static int use_script_of_python(struct entry *entry, const char *word, struct err *err)
{
	char interpreter[SHEBANG_MAX];
	bool named = read_interpreter(word, interpreter, sizeof(interpreter));
	if (!str_ends(word, ".py") && named && str_ends(interpreter, "sh"))
		return err_set(err, EACCES,
			       "'%s' is a script for %s and not executable: chmod +x it", word,
			       interpreter);
	if (!named && str_ends(word, ".sh"))
		return err_set(err, EACCES,
			       "'%s' is not executable and does not name its shell: start it as "
			       "'bash %s', or chmod +x it and begin it with #!/bin/sh",
			       word, word);
	return use_script(entry, word, err);
}

/* Whether a program and its arguments were given as one word. */
static bool quoted_command(const char *word)
{
	size_t len = strcspn(word, " ");
	if (!len || !word[len])
		return false;
	AUTO_FREE char *first = mem_strndup(word, len);
	AUTO_FREE char *found = strchr(first, '/') ? NULL : path_search(first, NULL);
	return found || is_file(first);
}

static int use_word(struct entry *entry, const char *word, struct err *err)
{
	struct stat st;
	bool there = stat(word, &st) == 0;
	if (there && !S_ISDIR(st.st_mode)) {
		if (str_ends(word, ".py") || access(word, X_OK) < 0)
			return use_script_of_python(entry, word, err);
		take_program(entry, word,
			     strchr(word, '/') ? mem_strdup(word) : mem_printf("./%s", word));
		return 0;
	}
	char *path = strchr(word, '/') || str_ends(word, ".py") ? NULL : path_search(word, NULL);
	if (path) {
		take_program(entry, word, path);
		return 0;
	}
	if (there)
		return use_script(entry, word, err);
	if (quoted_command(word))
		return err_set(err, ENOENT,
			       "'%s': no such script or program: leave the quotes out, so that "
			       "the program and its arguments are words of their own",
			       word);
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	return err_set(err, ENOENT, "'%s': no such script or program (in %s%s); check the name",
		       word, cwd ? cwd : "this directory",
		       strchr(word, '/') || str_ends(word, ".py") ? "" : " or on PATH");
}

int entry_resolve(enum entry_kind kind, const char *word, char *const *args,
		  struct entry *ret_entry, struct err *err)
{
	static int (*const uses[])(struct entry *, const char *, struct err *) = {
		[ENTRY_AUTO] = use_word,
		[ENTRY_MODULE] = use_module,
		[ENTRY_NO_PYTHON] = use_program,
		[ENTRY_RUN_PATH] = use_run_path,
	};
	AUTO(entry_done) struct entry entry = ENTRY_INIT;
	int r = uses[kind](&entry, word, err);
	if (r < 0)
		return r;
	entry.title = mem_strdup(kind == ENTRY_RUN_PATH ? "run_script_path" : word);
	strv_add_all(&entry.argv, args);
	*ret_entry = entry;
	entry = ENTRY_INIT;
	return 0;
}

void entry_done(struct entry *entry)
{
	free(entry->path);
	free(entry->title);
	strv_done(&entry->argv);
	*entry = ENTRY_INIT;
}

/* The length of the macro at `text`, which begins with '$'; 0 if there is none. */
static size_t macro_len(const char *text)
{
	static const char braced[] = "${local_rank}", plain[] = "$local_rank";
	if (str_starts(text, braced))
		return strlen(braced);
	unsigned char after = str_starts(text, plain) ? (unsigned char)text[strlen(plain)] : '_';
	return isalnum(after) || after == '_' ? 0 : strlen(plain);
}

static char *expand(const char *text, uint32_t local_rank)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	while (*text) {
		size_t len = strcspn(text, "$");
		buf_append(&out, text, len);
		text += len;
		if (*text && (len = macro_len(text))) {
			buf_printf(&out, "%u", local_rank);
			text += len;
		} else if (*text) {
			/* "$$" belongs to the user's shell, even in front of our name. */
			len = text[1] == '$' ? 2 : 1;
			buf_append(&out, text, len);
			text += len;
		}
	}
	return buf_take_str(&out);
}

void entry_argv(const struct entry *entry, uint32_t local_rank, struct strv *ret_argv)
{
	for (size_t i = 0; i < entry->argv.count; i++) {
		const char *word = entry->argv.items[i];
		if (i < entry->fixed || !strchr(word, '$'))
			strv_add(ret_argv, word);
		else
			strv_take(ret_argv, expand(word, local_rank));
	}
}

void entry_explain_spawn(const struct entry *entry, int error, struct err *err)
{
	char interpreter[SHEBANG_MAX];
	switch (error) {
	case ENOENT:
		if (read_interpreter(entry->path, interpreter, sizeof(interpreter)))
			err_set(err, error, "'%s': its interpreter '%s' does not exist",
				entry->path, interpreter);
		else
			err_set(err, error, "'%s': %m", entry->path);
		break;
	case EACCES:
	case EPERM:
		err_set(err, error,
			"'%s': %m: check its permissions and the mount options (noexec)",
			entry->path);
		break;
	case ENOEXEC:
		err_set(err, error,
			"'%s': neither a program for this machine nor a script with a #! line",
			entry->path);
		break;
	case E2BIG:
		err_set(err, error,
			"'%s': arguments and environment together are longer than the system "
			"allows (a quarter of "
			"'ulimit -s'); pass them in a file",
			entry->path);
		break;
	default:
		err_set(err, error, "cannot start '%s': %m", entry->path);
		limits_explain(error, err);
		break;
	}
}
