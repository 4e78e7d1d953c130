#include "watch/jobdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/strv.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define LOCK_NAME "lock"
#define BIRTH_MAX_NS (60 * NS_PER_S) /* a directory without a lock; that takes microseconds */

/* A place is what the paths of job directories begin with; their own names, "PID-RANDOM", follow.
 * One that ends with '/' is a private directory of this user. The others are for the time when
 * another user has taken that name: their job directories are in a folder for everyone. */
static void add_place(struct strv *places, char *place)
{
	if (strlen(place) + JOBDIR_NAME_MAX < JOBDIR_PATH_MAX) /* else too long for a socket */
		strv_take(places, place);
	else
		free(place);
}

static void list_places(struct strv *places)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	if (runtime && runtime[0] == '/')
		add_place(places, mem_printf("%s/muster/", runtime));
	for (const char *end = "/-"; *end; end++) {
		if (tmp && tmp[0] == '/')
			add_place(places, mem_printf("%s/muster-%u%c", tmp, getuid(), *end));
		add_place(places, mem_printf("/tmp/muster-%u%c", getuid(), *end));
	}
}

/* The folder that a place is in, or is; `ret_prefix`: how the names begin there. */
static char *place_folder(const char *place, const char **ret_prefix)
{
	const char *slash = strrchr(place, '/');
	*ret_prefix = slash + 1;
	return mem_printf("%.*s", (int)(slash - place), place);
}

/* Must be a directory of this user and closed to others: else another user could replace our
 * FIFO. */
static int check_private(const char *path, struct err *err)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return err_set(err, errno, "%s: %m", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, EPERM, "%s is not a private directory of this user", path);
	return 0;
}

static int make_place(const char *place, struct err *err)
{
	const char *prefix;
	AUTO_FREE char *folder = place_folder(place, &prefix);
	if (*prefix || check_private(folder, NULL) == 0)
		return 0;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return err_set(err, errno, "mkdir %s: %m", folder);
	return check_private(folder, err);
}

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static void remove_flat(const char *path)
{
	AUTO(close_dir) DIR *dir = opendir(path);
	if (dir)
		for (const struct dirent *entry; (entry = readdir(dir));)
			if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
				unlinkat(dirfd(dir), entry->d_name, 0);
	rmdir(path);
}

/* Was the job killed before it had a lock? Then the directory has not changed for long. */
static bool is_stillborn(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 &&
	       (uint64_t)st.st_mtime * NS_PER_S + BIRTH_MAX_NS < clock_wall_ns();
}

/* Takes the job's lock; -EWOULDBLOCK while the job runs. -ENOENT: it is just being made or
 * removed. */
static int take_lock(const char *dir_path)
{
	AUTO_FREE char *path = mem_printf("%s/" LOCK_NAME, dir_path);
	AUTO(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return fd_take(&fd);
}

struct walk {
	jobdir_fn *on_job; /* NULL: remove the dead ones instead */
	void *arg;
};

static void visit(const struct walk *walk, const char *place, const char *name)
{
	char number[JOBDIR_NAME_MAX];
	uint64_t pid;
	size_t len = strcspn(name, "-");
	if (name[len] != '-' || len >= sizeof(number))
		return;
	memcpy(number, name, len);
	number[len] = '\0';
	if (str_to_u64(number, &pid) < 0)
		return;
	AUTO_FREE char *path = mem_printf("%s%s", place, name);
	if (check_private(path, NULL) < 0)
		return;
	AUTO(fd_close) int lock = take_lock(path);
	if (lock == -EWOULDBLOCK && walk->on_job)
		walk->on_job(walk->arg, path, (pid_t)pid);
	bool dead = lock >= 0 || (lock == -ENOENT && is_stillborn(path));
	if (dead && !walk->on_job)
		remove_flat(path);
}

static void walk_place(const struct walk *walk, const char *place)
{
	const char *prefix;
	AUTO_FREE char *folder = place_folder(place, &prefix);
	if (!*prefix && check_private(folder, NULL) < 0)
		return;
	AUTO(close_dir) DIR *dir = opendir(folder);
	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (str_starts(entry->d_name, prefix))
			visit(walk, place, entry->d_name + strlen(prefix));
}

void jobdir_foreach(jobdir_fn *on_job, void *arg)
{
	AUTO(strv_done) struct strv places = STRV_INIT;
	struct walk walk = { .on_job = on_job, .arg = arg };
	list_places(&places);
	for (size_t i = 0; i < places.count; i++)
		if (i == 0 || !str_eq(places.items[i], places.items[i - 1]))
			walk_place(&walk, places.items[i]);
}

/* Makes the lock under another name and renames it when locked, so that it is never seen free. */
static int make_lock(const char *dir_path, struct err *err)
{
	AUTO_FREE char *path = mem_printf("%s/" LOCK_NAME, dir_path);
	AUTO_FREE char *fresh = mem_printf("%s/" LOCK_NAME ".new", dir_path);
	AUTO(fd_close)
	int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || rename(fresh, path) < 0)
		return err_set(err, errno, "lock %s: %m", path);
	return fd_take(&fd);
}

static int make_in(struct jobdir *jobdir, const char *place, struct err *err)
{
	int r = make_place(place, err);
	if (r < 0)
		return r;
	walk_place(&(struct walk){ .on_job = NULL }, place);
	snprintf(jobdir->path, sizeof(jobdir->path), "%s%d-%08x", place, (int)getpid(),
		 (uint32_t)random_u64());
	if (mkdir(jobdir->path, 0700) < 0)
		return err_set(err, errno, "mkdir %s: %m", jobdir->path);
	r = make_lock(jobdir->path, err);
	if (r < 0) {
		remove_flat(jobdir->path);
		return r;
	}
	jobdir->lock_fd = r;
	return 0;
}

int jobdir_init(struct jobdir *jobdir, struct err *err)
{
	AUTO(strv_done) struct strv places = STRV_INIT;
	int r = -ENOENT;
	*jobdir = JOBDIR_INIT;
	list_places(&places);
	for (size_t i = 0; i < places.count; i++)
		if ((r = make_in(jobdir, places.items[i], err)) == 0)
			return 0;
	jobdir->path[0] = '\0';
	return r;
}

void jobdir_done(struct jobdir *jobdir)
{
	if (jobdir->path[0])
		remove_flat(jobdir->path);
	jobdir->path[0] = '\0';
	fd_close(&jobdir->lock_fd);
}

char *jobdir_file(const struct jobdir *jobdir, const char *name)
{
	return mem_printf("%s/%s", jobdir->path, name);
}
