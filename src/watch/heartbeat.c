#include "watch/heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

struct heartbeat_page {
	int fd;
	_Atomic uint64_t *counter;
};

static void page_done(struct heartbeat_page *page)
{
	if (page->counter)
		munmap((void *)page->counter, HEARTBEAT_PAGE_SIZE);
	fd_close(&page->fd);
	page->counter = NULL;
}

void heartbeat_done(struct heartbeat *heartbeat)
{
	for (size_t i = 0; i < heartbeat->count; i++)
		page_done(&heartbeat->pages[i]);
	free(heartbeat->pages);
	*heartbeat = HEARTBEAT_INIT;
}

void heartbeat_reset(struct heartbeat *heartbeat, size_t count)
{
	heartbeat_done(heartbeat);
	heartbeat->pages = NEW_ARRAY(struct heartbeat_page, count);
	heartbeat->count = count;
	for (size_t i = 0; i < count; i++)
		heartbeat->pages[i] = (struct heartbeat_page){ .fd = -1 };
}

int heartbeat_fd(struct heartbeat *heartbeat, size_t rank, struct err *err)
{
	if (rank >= heartbeat->count)
		return err_set(err, EINVAL, "no worker with local rank %zu", rank);
	struct heartbeat_page *page = &heartbeat->pages[rank];
	if (page->fd >= 0)
		return page->fd;
	AUTO(fd_close) int fd = memfd_create("heartbeat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Sealed: if a worker could shrink it, our next read would be a SIGBUS. */
	if (fd < 0 || ftruncate(fd, HEARTBEAT_PAGE_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_set(err, errno, "heartbeat page: %m");
	void *mem = mmap(NULL, HEARTBEAT_PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		return err_set(err, errno, "map heartbeat page: %m");
	page->counter = mem;
	page->fd = fd_take(&fd);
	return page->fd;
}

uint64_t heartbeat_read(const struct heartbeat *heartbeat, size_t rank)
{
	if (rank >= heartbeat->count || !heartbeat->pages[rank].counter)
		return 0;
	return atomic_load_explicit(heartbeat->pages[rank].counter, memory_order_relaxed);
}
