/* The CPU quota of our cgroups: cpu.max (v2) or cpu.cfs_quota_us (v1), the smallest one on the way
 * from our group to the mount. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/topology.h"

#define FILE_MAX ((size_t)1 << 20)
#define DEPTH_MAX 64
#define NO_QUOTA UINT64_MAX

/* A text file as lines; NULL when it cannot be read. */
static char *read_text(const char *root, const char *path)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	AUTO_FREE char *full = mem_printf("%s%s", root, path);
	if (file_read(full, FILE_MAX, &data, NULL) < 0)
		return NULL;
	return buf_take_str(&data);
}

static uint64_t milli(uint64_t quota_us, uint64_t period_us)
{
	uint64_t product;
	if (period_us == 0 || __builtin_mul_overflow(quota_us, (uint64_t)1000, &product))
		return NO_QUOTA;
	return MAX(product / period_us, (uint64_t)1);
}

static uint64_t quota_v2(const char *root, const char *dir)
{
	AUTO_FREE char *path = mem_printf("%s/cpu.max", dir);
	AUTO_FREE char *text = read_text(root, path);
	char quota[32], period[32];
	uint64_t quota_us, period_us;
	if (!text || sscanf(text, "%31s %31s", quota, period) != 2)
		return NO_QUOTA;
	if (str_to_u64(quota, &quota_us) < 0 || str_to_u64(period, &period_us) < 0)
		return NO_QUOTA; /* "max" */
	return milli(quota_us, period_us);
}

static int64_t number_file(const char *root, const char *dir, const char *name)
{
	AUTO_FREE char *path = mem_printf("%s/%s", dir, name);
	AUTO_FREE char *text = read_text(root, path);
	int64_t value;
	return text && str_to_i64_python(text, &value) == 0 ? value : -1;
}

static uint64_t quota_v1(const char *root, const char *dir)
{
	int64_t quota_us = number_file(root, dir, "cpu.cfs_quota_us");
	int64_t period_us = number_file(root, dir, "cpu.cfs_period_us");
	if (quota_us <= 0 || period_us <= 0) /* -1: none */
		return NO_QUOTA;
	return milli((uint64_t)quota_us, (uint64_t)period_us);
}

/* Is `word` one of the comma-separated words of `list`? */
static bool list_has(const char *list, const char *word)
{
	size_t len;
	for (const char *piece; (piece = str_split(&list, ',', &len));)
		if (strlen(word) == len && strncmp(piece, word, len) == 0)
			return true;
	return false;
}

/* Our path in the hierarchy: a line "N:controllers:/path" of /proc/self/cgroup; v2 is
 * "0::/path". */
static char *own_path(char *lines, bool v2)
{
	for (char *save, *line = strtok_r(lines, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		controllers++;
		if (v2 ? *controllers == '\0' : list_has(controllers, "cpu"))
			return path;
	}
	return NULL;
}

struct mount {
	char *root;  /* the part of the hierarchy that is mounted */
	char *point; /* where */
};

/* A line of mountinfo: "ID PARENT DEV ROOT POINT OPTIONS [TAGS] - TYPE SOURCE SUPER". */
static bool parse_mount(char *line, bool v2, struct mount *ret_mount)
{
	char *tail = strstr(line, " - ");
	if (!tail)
		return false;
	*tail = '\0';
	char type[64], super[512];
	if (sscanf(tail + 3, "%63s %*s %511s", type, super) != 2)
		return false;
	if (v2 ? !str_eq(type, "cgroup2") : !str_eq(type, "cgroup") || !list_has(super, "cpu"))
		return false;

	char *save = NULL, *word = strtok_r(line, " ", &save);
	for (int field = 0; word && field < 5; field++, word = strtok_r(NULL, " ", &save)) {
		if (field == 3)
			ret_mount->root = word;
		if (field == 4) {
			ret_mount->point = word;
			return true;
		}
	}
	return false;
}

static bool find_mount(char *lines, bool v2, struct mount *ret_mount)
{
	for (char *save, *line = strtok_r(lines, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (parse_mount(line, v2, ret_mount))
			return true;
	return false;
}

/* Our path below the mount point, without the part that the mount already includes. */
static const char *below_mount(const char *path, const char *mount_root)
{
	size_t len = strlen(mount_root);
	if (str_eq(mount_root, "/"))
		return path;
	if (strncmp(path, mount_root, len) == 0 && (path[len] == '/' || path[len] == '\0'))
		return path + len;
	return "";
}

static uint64_t smallest_upwards(const char *root, const struct mount *mount, const char *path,
				 bool v2)
{
	uint64_t smallest = NO_QUOTA;
	AUTO_FREE char *dir = mem_printf("%s%s", mount->point, below_mount(path, mount->root));
	size_t top = strlen(mount->point);
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		uint64_t quota = v2 ? quota_v2(root, dir) : quota_v1(root, dir);
		smallest = MIN(smallest, quota);
		char *slash = strrchr(dir, '/');
		if (!slash || strlen(dir) <= top)
			break;
		*slash = '\0';
	}
	return smallest;
}

static uint64_t quota_of(const char *root, bool v2)
{
	AUTO_FREE char *cgroups = read_text(root, "/proc/self/cgroup");
	AUTO_FREE char *mounts = read_text(root, "/proc/self/mountinfo");
	struct mount mount = { NULL, NULL };
	if (!cgroups || !mounts || !find_mount(mounts, v2, &mount))
		return NO_QUOTA;
	const char *path = own_path(cgroups, v2);
	return path ? smallest_upwards(root, &mount, path, v2) : NO_QUOTA;
}

uint64_t topology_quota_milli(const char *root)
{
	uint64_t quota = MIN(quota_of(root, true), quota_of(root, false));
	return quota == NO_QUOTA ? 0 : quota;
}
