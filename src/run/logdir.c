#include "run/logdir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "sys/thread.h"

#define SUFFIX_LEN 8
#define MKDIR_TRIES \
	100 /* random names to try: the first is free unless another process interferes */
#define REMEDY "choose a directory you can write to with --log-dir, or /dev/null for none"

/* Makes PREFIXxxxxxxxx in `base`, readable by the owner only; returns a descriptor. */
static int make_random(struct logdir *logdir, const char *base, const char *prefix)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	AUTO(fd_close) int parent = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = parent < 0 ? -errno : -EEXIST;
	for (int i = 0; r == -EEXIST && i < MKDIR_TRIES; i++) {
		unsigned char random[SUFFIX_LEN];
		char suffix[SUFFIX_LEN + 1] = "";
		random_bytes(random, sizeof(random));
		for (int k = 0; k < SUFFIX_LEN; k++)
			suffix[k] = letters[random[k] % (sizeof(letters) - 1)];
		AUTO_FREE char *name = mem_printf("%s%s", prefix, suffix);
		r = dir_make_private(parent, name, NULL);
		if (r < 0)
			continue;
		logdir->run = mem_printf("%s/%s", base, name);
	}
	return r;
}

/* One in which nobody else can replace what muster and the workers write. */
static const char *temporary_base(void)
{
	static const char *const variables[] = { "TMPDIR", "TEMP", "TMP" };
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i]);
		if (value && *value && access(value, W_OK | X_OK) == 0 &&
		    dir_check(value, NULL) == 0)
			return value;
	}
	return "/tmp";
}

/* A run id may hold a slash; a directory name may not. */
static char *run_prefix(const char *run_id)
{
	char *prefix = mem_printf("%.64s_", run_id);
	for (char *p = prefix; *p; p++)
		if (*p == '/')
			*p = '_';
	return prefix;
}

/* Root could be made to write elsewhere by the worker that leaves an error.json, which goes by its
 * path. What muster itself writes goes through the descriptor, for everyone. */
static int open_named(struct logdir *logdir, const char *log_dir, const char *run_id, bool shared,
		      struct err *err)
{
	AUTO_FREE char *prefix = run_prefix(run_id);
	struct err why = ERR_INIT;
	int r = dir_make_all(log_dir);
	if (r < 0)
		return err_set(err, -r, "--log-dir: '%s': %m; " REMEDY, log_dir);
	if (geteuid() == 0 && !shared && dir_check(log_dir, &why) < 0)
		return err_set(
			err, why.code,
			"--log-dir: %s; as root choose a directory that only root can change, or "
			"say --shared-log-dir",
			why.msg);
	r = make_random(logdir, log_dir, prefix);
	if (r < 0)
		return err_set(err, -r, "--log-dir: '%s': %m; " REMEDY, log_dir);
	dir_hold(logdir->run, r);
	return 0;
}

/* Nobody can replace it, so its path will do. */
static int open_temporary(struct logdir *logdir, struct err *err)
{
	const char *parent = temporary_base();
	struct err why = ERR_INIT;
	int r = dir_check(parent, &why);
	if (r == 0)
		r = make_random(logdir, parent, "torchelastic_");
	logdir->temporary = r >= 0;
	if (r >= 0)
		close(r);
	else
		err_set(err, -r,
			"no log directory under '%s': %s; workers cannot leave an "
			"error.json; " REMEDY,
			parent, why.code ? why.msg : strerror(-r));
	return 0;
}

int logdir_open(struct logdir *logdir, const char *log_dir, const char *run_id, bool shared,
		struct err *err)
{
	*logdir = LOGDIR_INIT;
	if (!log_dir)
		return open_temporary(logdir, err);
	return str_eq(log_dir, "/dev/null") ? 0 : open_named(logdir, log_dir, run_id, shared, err);
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
	int r = dir_make(making->attempt);
	for (uint32_t rank = 0; (r == 0 || errno == EEXIST) && rank < making->nproc; rank++) {
		AUTO_FREE char *path = mem_printf("%s/%u", making->attempt, rank);
		r = dir_make(path);
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
	dir_release();
	free(logdir->run);
	free(logdir->attempt);
	*logdir = LOGDIR_INIT;
}
