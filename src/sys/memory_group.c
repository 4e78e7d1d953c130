#include "sys/memory_group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "sys/cgroup_find.h"

#define TEXT_MAX ((size_t)1 << 22)

/* Names of the files, which differ. */
struct memory_kind {
	enum cgroup_kind where;
	const char *limit, *swap, *peak, *kills; /* `kills` has a line "oom_kill N" */
	bool swap_is_sum;			 /* of memory and swap, else swap alone */
	bool kills_together;			 /* has memory.oom.group and cgroup.kill */
};

static const struct memory_kind kinds[] = {
	{ CGROUP_V2, "memory.max", "memory.swap.max", "memory.peak", "memory.events", false, true },
	{ CGROUP_V1_MEMORY, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
	  "memory.max_usage_in_bytes", "memory.oom_control", true, false },
};

/* ---- files ---- */

static int write_text(const char *folder, const char *name, const char *text)
{
	AUTO_FREE char *path = mem_printf("%s/%s", folder, name);
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int read_text(const char *folder, const char *name, struct buf *ret_text)
{
	AUTO_FREE char *path = mem_printf("%s/%s", folder, name);
	return file_read(path, TEXT_MAX, ret_text, NULL);
}

static bool has_word(struct buf *text, const char *word)
{
	const char *rest = buf_str(text), *piece;
	for (size_t len; (piece = str_split(&rest, ' ', &len));)
		if (strncmp(piece, word, strlen(word)) == 0 &&
		    (len == strlen(word) || piece[strlen(word)] == '\n'))
			return true;
	return false;
}

static char *own_group(enum cgroup_kind kind)
{
	AUTO(buf_done) struct buf mountinfo = BUF_INIT;
	AUTO(buf_done) struct buf membership = BUF_INIT;
	struct cgroup_place place = CGROUP_PLACE_INIT;
	if (file_read("/proc/self/mountinfo", TEXT_MAX, &mountinfo, NULL) < 0 ||
	    file_read("/proc/self/cgroup", TEXT_MAX, &membership, NULL) < 0 ||
	    !cgroup_find(kind, buf_str(&mountinfo), buf_str(&membership), &place))
		return NULL;
	free(place.mount);
	return place.own;
}

/* A directory of a name that nothing else has. */
static int make_folder(const char *parent, char **ret_path, struct err *err)
{
	AUTO_FREE char *path = mem_printf("%s/muster-%016" PRIx64, parent, random_u64());
	if (mkdir(path, 0755) < 0)
		return err_set(err, errno, "make a cgroup in %s: %m", parent);
	*ret_path = path;
	path = NULL;
	return 0;
}

/* ---- where ---- */

/* v2: hands the controller down, which works only while no process is in `own` itself. */
static int hand_down(struct memory_base *base, const char *own, struct err *err)
{
	AUTO_FREE char *leaf = NULL;
	int r = make_folder(own, &leaf, err);
	if (r < 0)
		return r;
	r = write_text(leaf, "cgroup.procs", "0");
	if (r >= 0)
		r = write_text(own, "cgroup.subtree_control", "+memory");
	if (r < 0) {
		write_text(own, "cgroup.procs", "0");
		rmdir(leaf);
		return err_set(err, -r, "the cgroup %s is not ours alone: %m", own);
	}
	base->own_leaf = leaf;
	leaf = NULL;
	return 0;
}

static int try_v2(struct memory_base *base, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *own = own_group(CGROUP_V2);
	if (!own)
		return err_set(err, ENOENT, "no cgroup v2 hierarchy is mounted");
	if (read_text(own, "cgroup.controllers", &text) < 0 || !has_word(&text, "memory"))
		return err_set(err, EOPNOTSUPP, "the cgroup %s has no memory controller", own);
	buf_clear(&text);
	bool handed =
		read_text(own, "cgroup.subtree_control", &text) >= 0 && has_word(&text, "memory");
	int r = handed ? 0 : hand_down(base, own, err);
	if (r < 0)
		return r;
	base->path = own;
	base->kind = &kinds[0];
	own = NULL;
	return 0;
}

static int try_v1(struct memory_base *base)
{
	AUTO_FREE char *own = own_group(CGROUP_V1_MEMORY), *probe = NULL;
	if (!own || make_folder(own, &probe, NULL) < 0)
		return -ENOENT;
	rmdir(probe);
	base->path = own;
	base->kind = &kinds[1];
	own = NULL;
	return 0;
}

int memory_base_init(struct memory_base *ret_base, struct err *err)
{
	struct memory_base base = MEMORY_BASE_INIT;
	int r = try_v2(&base, err);
	if (r < 0 && try_v1(&base) < 0)
		return r;
	*ret_base = base;
	return 0;
}

void memory_base_done(struct memory_base *base)
{
	if (base->own_leaf) {
		write_text(base->path, "cgroup.subtree_control", "-memory");
		write_text(base->path, "cgroup.procs", "0");
		rmdir(base->own_leaf);
	}
	free(base->own_leaf);
	free(base->path);
	*base = MEMORY_BASE_INIT;
}

bool memory_base_kills_all(const struct memory_base *base)
{
	return base->kind && base->kind->kills_together;
}

/* ---- groups ---- */

static int set_limit(const struct memory_group *group, uint64_t limit)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRIu64, limit);
	int r = write_text(group->path, group->kind->limit, text);
	/* Kernels without swap accounting have no such file. */
	if (r >= 0)
		write_text(group->path, group->kind->swap, group->kind->swap_is_sum ? text : "0");
	if (r >= 0 && group->kind->kills_together)
		write_text(group->path, "memory.oom.group", "1");
	return r;
}

int memory_group_make(const struct memory_base *base, uint64_t limit,
		      struct memory_group *ret_group, struct err *err)
{
	AUTO(memory_group_remove) struct memory_group group = MEMORY_GROUP_INIT;
	int r = make_folder(base->path, &group.path, err);
	if (r < 0)
		return r;
	group.kind = base->kind;
	r = limit ? set_limit(&group, limit) : 0;
	if (r < 0)
		return err_set(err, -r, "%s/%s: %m", group.path, group.kind->limit);
	group.fd = open(group.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group.fd < 0)
		return err_set(err, errno, "%s: %m", group.path);
	*ret_group = group;
	group = MEMORY_GROUP_INIT;
	return 0;
}

uint64_t memory_group_peak(const struct memory_group *group)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	unsigned long long bytes;
	if (!group->path || read_text(group->path, group->kind->peak, &text) < 0 ||
	    sscanf(buf_str(&text), "%llu", &bytes) != 1)
		return 0;
	return bytes;
}

uint64_t memory_group_kills(const struct memory_group *group)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	unsigned long long count;
	if (!group->path || read_text(group->path, group->kind->kills, &text) < 0)
		return 0;
	const char *line = strstr(buf_str(&text), "oom_kill ");
	return line && sscanf(line, "oom_kill %llu", &count) == 1 ? count : 0;
}

void memory_group_kill(const struct memory_group *group)
{
	if (group->path && group->kind->kills_together)
		write_text(group->path, "cgroup.kill", "1");
}

void memory_group_remove(struct memory_group *group)
{
	fd_close(&group->fd);
	if (group->path)
		rmdir(group->path);
	free(group->path);
	*group = MEMORY_GROUP_INIT;
}
