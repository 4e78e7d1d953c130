/* The FIFO through which torch's timers come. */
#include "watch/fifo.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "unit.h"

/* The descriptor that this process has of a file. */
static int descriptor_of(const char *path)
{
	struct stat wanted, st;
	ck_assert_int_eq(stat(path, &wanted), 0);
	for (int fd = 3; fd < 100; fd++)
		if (fstat(fd, &st) == 0 && st.st_ino == wanted.st_ino && st.st_dev == wanted.st_dev)
			return fd;
	ck_abort_msg("%s is not open", path);
	return -1;
}

TEST(a_turn_takes_no_more_than_the_pipe_holds_however_fast_it_is_written)
{
	char directory[] = "/tmp/fifo-test-XXXXXX", path[64];
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/fifo", directory);
	struct event_base *base = event_base_new();
	struct watchdog *watchdog = watchdog_new(base, &(struct watchdog_hooks){ .arg = NULL });
	struct fifo *fifo;
	ck_assert_int_eq(fifo_new(base, watchdog, path, &fifo, NULL), 0);

	/* A file stands for writers that fill the pipe again before every read. */
	enum { FLOOD = 8 * FIFO_PIPE_SIZE };
	int flood = memfd_create("flood", MFD_CLOEXEC);
	AUTO_FREE char *lines = memset(NEW_ARRAY(char, FLOOD), '\n', FLOOD);
	ck_assert_int_eq(write(flood, lines, FLOOD), FLOOD);
	ck_assert_int_eq(lseek(flood, 0, SEEK_SET), 0);
	ck_assert_int_ge(dup2(flood, descriptor_of(path)), 0);

	for (uint64_t turn = 1; turn <= 3; turn++) {
		watchdog_drain(watchdog);
		ck_assert_int_eq(lseek(flood, 0, SEEK_CUR), turn * FIFO_PIPE_SIZE);
		ck_assert_uint_eq(watchdog_stats(watchdog).rejected[REJECT_LINE],
				  turn * FIFO_PIPE_SIZE);
	}
	close(flood);
	fifo_free(fifo);
	watchdog_free(watchdog);
	event_base_free(base);
	ck_assert_int_eq(rmdir(directory), 0);
}
