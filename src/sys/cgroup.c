#include "sys/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/cgroup_find.h"

#define FILE_MAX ((size_t)1 << 22)

/* The root of the hierarchy, which alone has no cgroup.events, is mounted here. */
static bool is_root(const char *point)
{
	struct statfs fs;
	char events[64];
	snprintf(events, sizeof(events), "%s/cgroup.events", point);
	return statfs(point, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC &&
	       access(events, F_OK) < 0 && errno == ENOENT;
}

/* The mounts, as mountinfo has them. At the usual places the whole hierarchy can be told without
 * the list of all mounts, which is long on some hosts. */
static int read_mounts(struct buf *mountinfo)
{
	static const char *const usual[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (is_root(usual[i])) {
			buf_printf(mountinfo, "0 0 0:0 / %s rw - cgroup2 cgroup2 rw\n", usual[i]);
			return 0;
		}
	return file_read("/proc/self/mountinfo", FILE_MAX, mountinfo, NULL);
}

static char *own_directory(void)
{
	AUTO(buf_done) struct buf mountinfo = BUF_INIT;
	AUTO(buf_done) struct buf membership = BUF_INIT;
	if (read_mounts(&mountinfo) < 0 ||
	    file_read("/proc/self/cgroup", FILE_MAX, &membership, NULL) < 0)
		return NULL;
	struct cgroup_place place = CGROUP_PLACE_INIT;
	cgroup_find(CGROUP_V2, buf_str(&mountinfo), buf_str(&membership), &place);
	free(place.mount);
	return place.own;
}

static int open_leaf(char **path, struct cgroup *ret_cgroup, struct err *err)
{
	int fd = open(*path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "open cgroup %s: %m", *path);
	*ret_cgroup = (struct cgroup){ .path = *path, .fd = fd };
	*path = NULL;
	return 0;
}

int cgroup_make(const char *name, struct cgroup *ret_cgroup, struct err *err)
{
	AUTO_FREE char *own = own_directory();
	if (!own)
		return err_set(err, ENOENT, "no cgroup v2 hierarchy is mounted");
	AUTO_FREE char *path = mem_printf("%s/%s", own, name);
	if (mkdir(path, 0755) < 0)
		return err_set(err, errno, "make cgroup %s: %m", path);
	int r = open_leaf(&path, ret_cgroup, err);
	if (r < 0)
		rmdir(path);
	return r;
}

int cgroup_open(const char *name, struct cgroup *ret_cgroup, struct err *err)
{
	AUTO_FREE char *own = own_directory();
	if (!own)
		return err_set(err, ENOENT, "no cgroup v2 hierarchy is mounted");
	AUTO_FREE char *path = mem_printf("%s/%s", own, name);
	return open_leaf(&path, ret_cgroup, err);
}

/* The file changes, and reports it with POLLPRI, when "populated" does. */
int cgroup_wait_empty(const struct cgroup *cgroup, uint64_t deadline_ns)
{
	AUTO(fd_close) int fd = openat(cgroup->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		char text[256];
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		if (n < 0)
			return -errno;
		text[n] = '\0';
		if (!strstr(text, "populated 1"))
			return 0;
		int r = fd_wait(fd, POLLPRI, deadline_ns);
		if (r < 0)
			return r;
	}
}

void cgroup_remove(struct cgroup *cgroup)
{
	if (cgroup->path)
		rmdir(cgroup->path);
	cgroup_done(cgroup);
}

void cgroup_done(struct cgroup *cgroup)
{
	fd_close(&cgroup->fd);
	free(cgroup->path);
	*cgroup = CGROUP_INIT;
}

static int write_file(const struct cgroup *cgroup, const char *name, const char *text)
{
	AUTO(fd_close) int fd = openat(cgroup->fd, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

int cgroup_add(const struct cgroup *cgroup, pid_t pid)
{
	char text[16];
	snprintf(text, sizeof(text), "%d", (int)pid);
	return write_file(cgroup, "cgroup.procs", text);
}

int cgroup_kill(const struct cgroup *cgroup)
{
	return write_file(cgroup, "cgroup.kill", "1");
}
