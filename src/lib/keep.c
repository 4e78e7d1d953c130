/* State that outlives the worker: memory that the launcher holds and hands to the next worker of
 * this rank (core/worker/keep_page.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <muster/muster.h>
#include "base/fd.h"
#include "base/mem.h"
#include "core/worker/keep_page.h"
#include "lib/last_error.h"
#include "watch/client.h"

struct muster_kept {
	struct keep_head *head;
	size_t bytes;
	int slot; /* that is being written; -1: none */
};

static int explain(int r, const char *name, size_t size)
{
	struct err err = ERR_INIT;
	switch (-r) {
	case EINVAL:
		err_set(&err, EINVAL,
			"keep: '%.64s' is not a name of 1 to %d bytes, or %zu not a size", name,
			KEEP_NAME_MAX, size);
		break;
	case EEXIST:
		err_set(&err, EEXIST,
			"keep '%.64s': there is a state of another size than %zu bytes", name,
			size);
		break;
	case ENOSPC:
		err_set(&err, ENOSPC, "keep '%.64s': this worker keeps %d others", name,
			KEEP_NAMES_MAX);
		break;
	case EDQUOT:
		err_set(&err, EDQUOT,
			"keep '%.64s': twice %zu bytes is more than --keep-limit leaves", name,
			size);
		break;
	default:
		err_set(&err, -r, "keep '%.64s': %s", name, strerror(-r));
	}
	return last_error(r, &err);
}

/* The launcher's memory of that name; -ENOTCONN: there is no launcher. */
static int ask(const char *path, const char *name, size_t size, int *ret_fd)
{
	struct watch_msg msg;
	int len = watch_client_fill(&msg, WATCH_OP_KEEP, 0, name, 0, 0);
	if (len < 0)
		return -EINVAL;
	msg.duration_ns = size;
	AUTO(fd_close) int fd = watch_client_connect(path);
	if (fd < 0)
		return fd;
	int r = watch_client_send(fd, &msg, (size_t)len);
	return r < 0 ? r : watch_client_receive(fd, ret_fd);
}

static int map(int fd, size_t size, struct muster_kept *kept)
{
	size_t bytes = keep_bytes(size);
	int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	*kept = (struct muster_kept){ .head = memory, .bytes = bytes, .slot = -1 };
	return 0;
}

int muster_keep(const char *name, size_t size, struct muster_kept **ret_kept)
{
	const char *path = getenv("MUSTER_WATCHDOG");
	AUTO(fd_close) int fd = -1;
	size_t len = strlen(name);
	int r = len > 0 && len <= KEEP_NAME_MAX && size > 0 && size <= KEEP_SIZE_MAX ? 0 : -EINVAL;
	if (r == 0 && path && *path)
		r = ask(path, name, size, &fd);
	struct muster_kept kept;
	if (r == 0)
		r = map(fd, size, &kept);
	if (r < 0)
		return explain(r, name, size);
	if (fd < 0) { /* no launcher: memory of our own, which ends with us */
		kept.head->size = size;
		kept.head->stride = keep_stride(size);
	}
	*ret_kept = NEW(struct muster_kept);
	**ret_kept = kept;
	return 0;
}

static void *slot_at(const struct muster_kept *kept, size_t slot)
{
	/* Not the stride that is in the memory: who else writes there should not be trusted. */
	uint64_t stride = (kept->bytes - KEEP_HEAD_SIZE) / KEEP_SLOTS;
	return (char *)kept->head + KEEP_HEAD_SIZE + slot * stride;
}

const void *muster_kept_state(const struct muster_kept *kept, uint64_t *ret_step)
{
	int slot = keep_newest(kept->head);
	if (slot < 0)
		return NULL;
	if (ret_step)
		*ret_step = keep_mark(kept->head, (size_t)slot).step;
	return slot_at(kept, (size_t)slot);
}

void *muster_kept_begin(struct muster_kept *kept)
{
	kept->slot = (int)keep_begin(kept->head);
	return slot_at(kept, (size_t)kept->slot);
}

int muster_kept_commit(struct muster_kept *kept, uint64_t step)
{
	struct err err = ERR_INIT;
	if (kept->slot < 0) {
		err_set(&err, EINVAL, "commit of step %llu: no state was begun",
			(unsigned long long)step);
		return last_error(-EINVAL, &err);
	}
	int r = keep_commit(kept->head, (size_t)kept->slot, step);
	if (r < 0) {
		err_set(&err, -r, "commit of step %llu: a later one is committed",
			(unsigned long long)step);
		return last_error(r, &err);
	}
	kept->slot = -1;
	return 0;
}

void muster_kept_free(struct muster_kept *kept)
{
	if (!kept)
		return;
	munmap(kept->head, kept->bytes);
	free(kept);
}
