#include "watch/worker_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

struct shared_page {
	int fd;
	struct worker_page *page;
};

static void page_done(struct shared_page *shared)
{
	if (shared->page)
		munmap(shared->page, WORKER_PAGE_SIZE);
	fd_close(&shared->fd);
	shared->page = NULL;
}

void worker_pages_done(struct worker_pages *pages)
{
	for (size_t i = 0; i < pages->count; i++)
		page_done(&pages->pages[i]);
	free(pages->pages);
	*pages = (struct worker_pages){ .on_made = pages->on_made, .arg = pages->arg };
}

void worker_pages_reset(struct worker_pages *pages, size_t count)
{
	worker_pages_done(pages);
	pages->pages = NEW_ARRAY(struct shared_page, count);
	pages->count = count;
	for (size_t i = 0; i < count; i++)
		pages->pages[i] = (struct shared_page){ .fd = -1 };
}

int worker_pages_fd(struct worker_pages *pages, size_t rank, struct err *err)
{
	if (rank >= pages->count)
		return err_set(err, EINVAL, "no worker with local rank %zu", rank);
	struct shared_page *shared = &pages->pages[rank];
	if (shared->fd >= 0)
		return shared->fd;
	AUTO(fd_close) int fd = memfd_create("muster-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Sealed: if a worker could shrink it, our next read would be a SIGBUS. */
	if (fd < 0 || ftruncate(fd, WORKER_PAGE_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_set(err, errno, "page of a worker: %m");
	void *mem = mmap(NULL, WORKER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		return err_set(err, errno, "map the page of a worker: %m");
	shared->page = mem;
	atomic_store(&shared->page->version, WORKER_PAGE_VERSION);
	atomic_store(&shared->page->plan, pages->plan);
	shared->fd = fd_take(&fd);
	if (pages->on_made)
		pages->on_made(pages->arg);
	return shared->fd;
}

struct worker_page *worker_pages_get(const struct worker_pages *pages, size_t rank)
{
	return rank < pages->count ? pages->pages[rank].page : NULL;
}

/* Workers wait for a change of the lower half of the word. */
static void wake(struct worker_page *page)
{
	bool low_first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
	syscall(SYS_futex, (uint32_t *)&page->plan + (low_first ? 0 : 1), FUTEX_WAKE, INT_MAX, NULL,
		NULL, 0);
}

void worker_pages_show(struct worker_pages *pages, uint64_t plan)
{
	pages->plan = plan;
	for (size_t i = 0; i < pages->count; i++) {
		if (!pages->pages[i].page)
			continue;
		atomic_store(&pages->pages[i].page->plan, plan);
		wake(pages->pages[i].page);
	}
}

uint64_t worker_pages_beats(const struct worker_pages *pages, size_t rank)
{
	const struct worker_page *page = worker_pages_get(pages, rank);
	return page ? atomic_load_explicit(&page->beats, memory_order_relaxed) : 0;
}
