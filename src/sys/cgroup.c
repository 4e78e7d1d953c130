#include "sys/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define FILE_MAX ((size_t)1 << 22)
#define OCTAL_LEN 3

/* Mount points have blanks, tabs, newlines and backslashes as three octal digits. */
static void append_unescaped(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool escaped = text[i] == '\\' && len - i > OCTAL_LEN && text[i + 1] >= '0' &&
			       text[i + 1] <= '3';
		if (!escaped) {
			buf_append_char(out, text[i]);
			continue;
		}
		int value = 0;
		for (size_t digit = 1; digit <= OCTAL_LEN; digit++)
			value = value * 8 + (text[i + digit] - '0');
		buf_append_char(out, (char)value);
		i += OCTAL_LEN;
	}
}

struct mount {
	const char *root, *point;
	size_t root_len, point_len;
};

/* "41 31 0:38 ROOT POINT rw,relatime - cgroup2 cgroup2 rw" */
static bool parse_mount(const char *line, size_t len, struct mount *ret_mount)
{
	AUTO_FREE char *copy = mem_strndup(line, len);
	const char *type = strstr(copy, " - ");
	if (!type || !str_starts(type + 3, "cgroup2 "))
		return false;
	const char *rest = copy, *word;
	size_t word_len;
	struct mount mount = { NULL };
	for (int i = 0; i < 5 && (word = str_split(&rest, ' ', &word_len)); i++) {
		const char *there = line + (word - copy);
		if (i == 3)
			mount.root = there, mount.root_len = word_len;
		if (i == 4)
			mount.point = there, mount.point_len = word_len;
	}
	*ret_mount = mount;
	return mount.point && mount.point[0] == '/';
}

static bool find_mount(const char *mountinfo, struct mount *ret_mount)
{
	const char *rest = mountinfo, *line;
	size_t len;
	while ((line = str_split(&rest, '\n', &len)))
		if (parse_mount(line, len, ret_mount))
			return true;
	return false;
}

/* The line "0::/path" is the v2 one. */
static bool find_own(const char *membership, const char **ret_path, size_t *ret_len)
{
	const char *rest = membership, *line;
	size_t len;
	while ((line = str_split(&rest, '\n', &len)))
		if (len > 3 && strncmp(line, "0::", 3) == 0) {
			*ret_path = line + 3;
			*ret_len = len - 3;
			return true;
		}
	return false;
}

char *cgroup_find(const char *mountinfo, const char *membership)
{
	struct mount mount;
	const char *own;
	size_t own_len;
	if (!find_mount(mountinfo, &mount) || !find_own(membership, &own, &own_len))
		return NULL;
	/* In a container the mount may begin at a group below the root. */
	bool below = mount.root_len > 1 && own_len >= mount.root_len &&
		     strncmp(own, mount.root, mount.root_len) == 0;
	if (below) {
		own += mount.root_len;
		own_len -= mount.root_len;
	}
	struct buf path = BUF_INIT;
	append_unescaped(&path, mount.point, mount.point_len);
	if (own_len > 0 && !(own_len == 1 && own[0] == '/'))
		buf_append(&path, own, own_len);
	return buf_take_str(&path);
}

static char *own_directory(void)
{
	AUTO(buf_done) struct buf mountinfo = BUF_INIT;
	AUTO(buf_done) struct buf membership = BUF_INIT;
	if (file_read("/proc/self/mountinfo", FILE_MAX, &mountinfo, NULL) < 0 ||
	    file_read("/proc/self/cgroup", FILE_MAX, &membership, NULL) < 0)
		return NULL;
	return cgroup_find(buf_str(&mountinfo), buf_str(&membership));
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
		uint64_t now_ns = clock_now_ns();
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		uint64_t left_ms = (deadline_ns - now_ns) / NS_PER_MS + 1;
		poll(&(struct pollfd){ .fd = fd, .events = POLLPRI }, 1,
		     (int)MIN(left_ms, (uint64_t)INT32_MAX));
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
