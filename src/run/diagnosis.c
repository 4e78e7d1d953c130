#include "run/diagnosis.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sys/thread.h"

struct diagnosis {
	struct stacks_worker *workers;
	size_t count;
	uint64_t deadline_ns;
	char *path;
	diagnosis_fn *on_done;
	void *arg;

	pthread_t thread;
	int done_fd, cancel_fd;
	struct event *on_thread;
	struct buf text; /* belongs to the thread until done_fd is readable */
};

static void save(const struct diagnosis *diagnosis)
{
	if (!diagnosis->path)
		return;
	AUTO(fd_close)
	int fd = open(diagnosis->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd >= 0)
		fd_write_all(fd, buf_data(&diagnosis->text), buf_len(&diagnosis->text));
}

static void *collect(void *arg)
{
	struct diagnosis *diagnosis = arg;
	struct err err = ERR_INIT;
	if (stacks_collect(diagnosis->workers, diagnosis->count, diagnosis->deadline_ns,
			   diagnosis->cancel_fd, &diagnosis->text, &err) < 0)
		buf_printf(&diagnosis->text, "%s\n", err.msg);
	else
		save(diagnosis);
	eventfd_write(diagnosis->done_fd, 1);
	return NULL;
}

static void diagnosis_free(struct diagnosis *diagnosis)
{
	if (diagnosis->on_thread)
		event_free(diagnosis->on_thread);
	fd_close(&diagnosis->done_fd);
	fd_close(&diagnosis->cancel_fd);
	buf_done(&diagnosis->text);
	free(diagnosis->workers);
	free(diagnosis->path);
	free(diagnosis);
}

static void on_thread(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct diagnosis *diagnosis = arg;
	pthread_join(diagnosis->thread, NULL);
	diagnosis->on_done(diagnosis->arg, buf_str(&diagnosis->text));
	diagnosis_free(diagnosis);
}

static int begin(struct diagnosis *diagnosis, struct event_base *base)
{
	if (diagnosis->done_fd < 0 || diagnosis->cancel_fd < 0)
		return -EMFILE;
	diagnosis->on_thread = event_new(base, diagnosis->done_fd, EV_READ, on_thread, diagnosis);
	if (!diagnosis->on_thread || event_add(diagnosis->on_thread, NULL) < 0)
		return -ENOMEM;
	return thread_start(&diagnosis->thread, collect, diagnosis);
}

int diagnosis_start(struct event_base *base, const struct stacks_worker *workers, size_t count,
		    uint64_t timeout_ns, const char *path, diagnosis_fn *on_done, void *arg,
		    struct diagnosis **ret)
{
	struct diagnosis *diagnosis = NEW(struct diagnosis);
	*diagnosis = (struct diagnosis){
		.workers = mem_alloc((count + 1) * sizeof(*workers)),
		.count = count,
		.deadline_ns = ns_add(clock_now_ns(), timeout_ns),
		.path = path ? mem_strdup(path) : NULL,
		.on_done = on_done,
		.arg = arg,
		.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.text = BUF_INIT,
	};
	memcpy(diagnosis->workers, workers, count * sizeof(*workers));
	int r = begin(diagnosis, base);
	if (r < 0) {
		diagnosis_free(diagnosis);
		return r;
	}
	*ret = diagnosis;
	return 0;
}

void diagnosis_cancel(struct diagnosis *diagnosis)
{
	if (!diagnosis)
		return;
	eventfd_write(diagnosis->cancel_fd, 1);
	pthread_join(diagnosis->thread, NULL);
	diagnosis_free(diagnosis);
}
