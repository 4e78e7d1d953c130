#include "run/logdir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "sys/thread.h"

#define SUFFIX_LEN 8
#define MKDIR_TRIES \
	100 /* random names to try: the first is free unless another process interferes */
#define REMEDY "choose a directory you can write to with --log-dir, or /dev/null for none"

/* Makes PREFIXxxxxxxxx, readable by the owner only, and returns its name in *ret_path. */
static int make_random(const char *prefix, char **ret_path)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	for (int i = 0; i < MKDIR_TRIES; i++) {
		unsigned char random[SUFFIX_LEN];
		char suffix[SUFFIX_LEN + 1] = "";
		random_bytes(random, sizeof(random));
		for (int k = 0; k < SUFFIX_LEN; k++)
			suffix[k] = letters[random[k] % (sizeof(letters) - 1)];
		char *path = mem_printf("%s%s", prefix, suffix);
		if (mkdir(path, 0700) == 0) {
			*ret_path = path;
			return 0;
		}
		free(path);
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int make_parents(const char *path)
{
	AUTO_FREE char *part = mem_strdup(path);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(part, 0777) < 0 && errno != EEXIST)
		return -errno;
	struct stat st;
	if (stat(part, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static const char *temporary_base(void)
{
	static const char *const variables[] = { "TMPDIR", "TEMP", "TMP" };
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i]);
		if (value && *value && access(value, W_OK | X_OK) == 0)
			return value;
	}
	return "/tmp";
}

/* A run id may hold a slash; a directory name may not. */
static char *run_prefix(const char *base, const char *run_id)
{
	char *prefix = mem_printf("%s/%.64s_", base, run_id);
	for (char *p = prefix + strlen(base) + 1; *p; p++)
		if (*p == '/')
			*p = '_';
	return prefix;
}

static int open_named(struct logdir *logdir, const char *log_dir, const char *run_id,
		      struct err *err)
{
	AUTO_FREE char *prefix = run_prefix(log_dir, run_id);
	int r = make_parents(log_dir);
	if (r == 0)
		r = make_random(prefix, &logdir->run);
	return r < 0 ? err_set(err, -r, "--log-dir: '%s': %m; " REMEDY, log_dir) : 0;
}

static int open_temporary(struct logdir *logdir, struct err *err)
{
	const char *parent = temporary_base();
	AUTO_FREE char *prefix = mem_printf("%s/torchelastic_", parent);
	int r = make_random(prefix, &logdir->run);
	logdir->temporary = r == 0;
	if (r < 0)
		err_set(err, -r,
			"no log directory under '%s': %m; workers cannot leave an "
			"error.json; " REMEDY,
			parent);
	return 0;
}

int logdir_open(struct logdir *logdir, const char *log_dir, const char *run_id, struct err *err)
{
	*logdir = LOGDIR_INIT;
	if (!log_dir)
		return open_temporary(logdir, err);
	return str_eq(log_dir, "/dev/null") ? 0 : open_named(logdir, log_dir, run_id, err);
}

struct making {
	char *attempt;
	uint32_t nproc;
	int error;
};

static void making_free(void *arg)
{
	struct making *making = arg;
	free(making->attempt);
	free(making);
}

/* The thread that writes logs may have made one of them already: it makes missing directories. */
static void make_attempt(void *arg)
{
	struct making *making = arg;
	int r = mkdir(making->attempt, 0777);
	for (uint32_t rank = 0; (r == 0 || errno == EEXIST) && rank < making->nproc; rank++) {
		AUTO_FREE char *path = mem_printf("%s/%u", making->attempt, rank);
		r = mkdir(path, 0777);
	}
	making->error = r < 0 && errno != EEXIST ? errno : 0;
}

int logdir_begin(struct logdir *logdir, uint32_t nproc, struct err *err)
{
	if (!logdir->run)
		return 0;
	free(logdir->attempt);
	logdir->attempt = mem_printf("%s/attempt_%u", logdir->run, logdir->starts++);
	if (logdir->temporary)
		return 0;
	struct making *making = NEW(struct making);
	*making = (struct making){ .attempt = mem_strdup(logdir->attempt), .nproc = nproc };
	/* The first time we have just made the tree itself: the file system answers. */
	if (logdir->starts == 1)
		make_attempt(making);
	else if (!thread_call_until(make_attempt, making, making_free,
				    clock_now_ns() + LOGDIR_WAIT_NS))
		return 0;

	int error = making->error;
	making_free(making);
	if (error == 0)
		return 0;
	err_set(err, error, "log directory '%s': %m; " REMEDY, logdir->attempt);
	free(logdir->attempt);
	logdir->attempt = NULL;
	return -error;
}

char *logdir_error_file(const struct logdir *logdir, uint32_t local_rank)
{
	if (!logdir->attempt)
		return mem_strdup("");
	return mem_printf("%s%s%u%serror.json", logdir->attempt, logdir->temporary ? "_" : "/",
			  local_rank, logdir->temporary ? "_" : "/");
}

/* rmdir() fails if it is not empty, and then it must stay. */
static int remove_if_empty(const char *path, const struct stat *st UNUSED, int type,
			   struct FTW *where UNUSED)
{
	if (type == FTW_DP)
		rmdir(path);
	return 0;
}

void logdir_drop_empty(struct logdir *logdir)
{
	if (logdir->temporary && rmdir(logdir->run) == 0)
		logdir->temporary = false;
}

void logdir_done(struct logdir *logdir)
{
	enum { DESCRIPTORS = 4 };
	if (logdir->temporary && rmdir(logdir->run) < 0)
		nftw(logdir->run, remove_if_empty, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
	free(logdir->run);
	free(logdir->attempt);
	*logdir = LOGDIR_INIT;
}
