/* The CPU quota of our cgroups: cpu.max (v2) or cpu.cfs_quota_us (v1), the smallest one on the way
 * from our group to the mount. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/cgroup_find.h"
#include "sys/hwloc_topology.h"

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

static uint64_t smallest_upwards(const char *root, const struct cgroup_place *place, bool v2)
{
	uint64_t smallest = NO_QUOTA;
	AUTO_FREE char *dir = mem_strdup(place->own ? place->own : place->mount);
	size_t top = strlen(place->mount);
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

static uint64_t quota_of(const char *root, enum cgroup_kind kind)
{
	AUTO_FREE char *membership = read_text(root, "/proc/self/cgroup");
	AUTO_FREE char *mounts = read_text(root, "/proc/self/mountinfo");
	AUTO(cgroup_place_done) struct cgroup_place place = CGROUP_PLACE_INIT;
	if (!membership || !mounts || !cgroup_find(kind, mounts, membership, &place))
		return NO_QUOTA;
	return smallest_upwards(root, &place, kind == CGROUP_V2);
}

uint64_t topology_quota_milli(const char *root)
{
	uint64_t quota = MIN(quota_of(root, CGROUP_V2), quota_of(root, CGROUP_V1_CPU));
	return quota == NO_QUOTA ? 0 : quota;
}
