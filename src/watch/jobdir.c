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
#include "base/dir.h"
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

/* The folder of a place, which nobody else can replace; a private one is made with `make`. */
static int open_folder(const char *place, bool make, const char **ret_prefix, struct err *err)
{
	AUTO_FREE char *folder = place_folder(place, ret_prefix);
	AUTO_FREE char *above = mem_strndup(folder, (size_t)(strrchr(folder, '/') - folder) + 1);
	bool private = !**ret_prefix;
	int r = dir_check(private ? above : folder, err);
	if (r == 0 && private && make && mkdir(folder, 0700) < 0 && errno != EEXIST)
		return err_set(err, errno, "mkdir %s: %m", folder);
	if (r < 0 || private)
		return r < 0 ? r : dir_open_private(AT_FDCWD, folder, err);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_set(err, errno, "%s: %m", folder) : fd;
}

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Was the job killed before it had a lock? Then the directory has not changed for long. */
static bool is_stillborn(int dir)
{
	struct stat st;
	return fstat(dir, &st) == 0 &&
	       (uint64_t)st.st_mtime * NS_PER_S + BIRTH_MAX_NS < clock_wall_ns();
}

/* Takes the job's lock; -EWOULDBLOCK while the job runs. -ENOENT: it is just being made or
 * removed. */
static int take_lock(int dir)
{
	AUTO(fd_close) int fd = openat(dir, LOCK_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return fd_take(&fd);
}

struct walk {
	jobdir_fn *on_job; /* NULL: remove the dead ones instead */
	void *arg;
	const char *place;
	int folder;
};

/* `name` in the folder: the place's prefix and PID-RANDOM, which is `own`. */
static void visit(const struct walk *walk, const char *name, const char *own)
{
	char number[JOBDIR_NAME_MAX];
	uint64_t pid;
	size_t len = strcspn(own, "-");
	if (own[len] != '-' || len >= sizeof(number))
		return;
	memcpy(number, own, len);
	number[len] = '\0';
	if (str_to_u64(number, &pid) < 0)
		return;
	AUTO(fd_close) int dir = dir_open_private(walk->folder, name, NULL);
	if (dir < 0)
		return;
	AUTO_FREE char *path = mem_printf("%s%s", walk->place, own);
	AUTO(fd_close) int lock = take_lock(dir);
	if (lock == -EWOULDBLOCK && walk->on_job)
		walk->on_job(walk->arg, path, (pid_t)pid);
	bool dead = lock >= 0 || (lock == -ENOENT && is_stillborn(dir));
	if (dead && !walk->on_job)
		dir_remove_flat(walk->folder, name);
}

static void walk_folder(const struct walk *walk, const char *prefix)
{
	int copy = openat(walk->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(close_dir) DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (str_starts(entry->d_name, prefix))
			visit(walk, entry->d_name, entry->d_name + strlen(prefix));
}

static void walk_all(jobdir_fn *on_job, void *arg)
{
	AUTO(strv_done) struct strv places = STRV_INIT;
	struct walk walk = { .on_job = on_job, .arg = arg };
	list_places(&places);
	for (size_t i = 0; i < places.count; i++) {
		const char *prefix;
		if (i > 0 && str_eq(places.items[i], places.items[i - 1]))
			continue;
		walk.place = places.items[i];
		AUTO(fd_close) int folder = open_folder(walk.place, false, &prefix, NULL);
		walk.folder = folder;
		if (folder >= 0)
			walk_folder(&walk, prefix);
	}
}

void jobdir_foreach(jobdir_fn *on_job, void *arg)
{
	walk_all(on_job, arg);
}

void jobdir_clear_dead(void)
{
	walk_all(NULL, NULL);
}

/* Makes the lock under another name and renames it when locked, so that it is never seen free. */
static int make_lock(int dir, struct err *err)
{
	static const char fresh[] = LOCK_NAME ".new";
	AUTO(fd_close)
	int fd = openat(dir, fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || renameat(dir, fresh, dir, LOCK_NAME) < 0)
		return err_set(err, errno, "lock: %m");
	return fd_take(&fd);
}

static int make_in(struct jobdir *jobdir, const char *place, struct err *err)
{
	const char *prefix;
	AUTO(fd_close) int folder = open_folder(place, true, &prefix, err);
	if (folder < 0)
		return folder;
	walk_folder(&(struct walk){ .place = place, .folder = folder }, prefix);
	snprintf(jobdir->path, sizeof(jobdir->path), "%s%d-%08x", place, (int)getpid(),
		 (uint32_t)random_u64());
	const char *name = strrchr(jobdir->path, '/') + 1;
	AUTO(fd_close) int dir = dir_make_private(folder, name, err);
	int r = dir < 0 ? dir : make_lock(dir, err);
	if (r < 0) {
		dir_remove_flat(folder, name);
		return err_wrap(err, "%.*s", (int)(name - jobdir->path), jobdir->path);
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

/* Not held meanwhile: a job has few descriptors where `ulimit -n` is low. */
static void remove_own(const char *path)
{
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *folder = mem_strndup(path, (size_t)(slash - path));
	AUTO(fd_close) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && dir_check(folder, NULL) == 0)
		dir_remove_flat(fd, slash + 1);
}

void jobdir_done(struct jobdir *jobdir)
{
	if (jobdir->path[0])
		remove_own(jobdir->path);
	jobdir->path[0] = '\0';
	fd_close(&jobdir->lock_fd);
}

char *jobdir_file(const struct jobdir *jobdir, const char *name)
{
	return mem_printf("%s/%s", jobdir->path, name);
}
