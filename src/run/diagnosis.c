#include "run/diagnosis.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sys/thread.h"

struct diagnosis {
	struct forensics_question question;
	struct stacks_worker *workers; /* of the question, as is the next */
	char *flight_dir, *dumps;
	char *path;
	diagnosis_fn *on_done;
	void *arg;

	pthread_t thread;
	int done_fd, cancel_fd;
	struct event *on_thread;
	struct forensics found; /* belongs to the thread until done_fd is readable */
};

static void save(struct diagnosis *diagnosis)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (!diagnosis->path)
		return;
	AUTO(fd_close)
	int fd = dir_open(diagnosis->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	stack_set_print(&diagnosis->found.stacks, &text);
	if (fd >= 0)
		fd_write_all(fd, buf_data(&text), buf_len(&text));
}

static void *collect(void *arg)
{
	struct diagnosis *diagnosis = arg;
	forensics_collect(&diagnosis->question, &diagnosis->found);
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
	forensics_done(&diagnosis->found);
	free(diagnosis->workers);
	free(diagnosis->flight_dir);
	free(diagnosis->dumps);
	free(diagnosis->path);
	free(diagnosis);
}

static void on_thread(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct diagnosis *diagnosis = arg;
	pthread_join(diagnosis->thread, NULL);
	diagnosis->on_done(diagnosis->arg, &diagnosis->found);
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

int diagnosis_start(struct event_base *base, const struct forensics_question *question,
		    uint64_t timeout_ns, const char *path, diagnosis_fn *on_done, void *arg,
		    struct diagnosis **ret)
{
	struct diagnosis *diagnosis = NEW(struct diagnosis);
	*diagnosis = (struct diagnosis){
		.question = *question,
		.workers = mem_alloc((question->count + 1) * sizeof(*question->workers)),
		.flight_dir = question->flight.dir ? mem_strdup(question->flight.dir) : NULL,
		.dumps = question->flight.dumps ? mem_strdup(question->flight.dumps) : NULL,
		.path = path ? mem_strdup(path) : NULL,
		.on_done = on_done,
		.arg = arg,
		.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	memcpy(diagnosis->workers, question->workers, question->count * sizeof(*question->workers));
	diagnosis->question.workers = diagnosis->workers;
	diagnosis->question.flight.dir = diagnosis->flight_dir;
	diagnosis->question.flight.dumps = diagnosis->dumps;
	diagnosis->question.deadline_ns = ns_add(clock_now_ns(), timeout_ns);
	diagnosis->question.cancel_fd = diagnosis->cancel_fd;
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
