/* Commands on this host ask the job over its socket. */
#include "run/ask/answers.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/unix_socket.h"
#include "loop.h"
#include "net/link.h"
#include "unit.h"

struct job {
	struct event_base *base;
	struct node node;
	struct routes routes;
	struct pages pages;
	struct answers *answers;
	char dir[32];
	int asked, stopped;
	struct link *command;
	bool up, down;
	struct link_self self;
};

static void on_event(void *arg, const struct node_event *event)
{
	struct job *job = arg;
	job->asked += event->type == NODE_EV_MSG && event->msg->type == MSG_ASK;
}

static void on_stop(void *arg)
{
	struct job *job = arg;
	job->stopped++;
}

static void on_up(void *arg, struct link *link)
{
	struct job *job = arg;
	job->up = true;
	link_send(link,
		  &(struct msg){ .type = MSG_ASK,
				 .ask = { .id = 1,
					  .ask = { .kind = ASK_STOP, .timeout_ns = NS_PER_S } } });
}

static void on_msg(void *arg UNUSED, struct link *link UNUSED, const struct msg *msg UNUSED)
{
}

static void on_down(void *arg, struct link *link UNUSED, const struct link_end *end UNUSED)
{
	struct job *job = arg;
	job->down = true;
}

static void open_job(struct job *job)
{
	static const struct answers_hooks hooks = { .on_event = on_event, .on_stop = on_stop };
	struct answers_hooks mine = hooks;
	*job = (struct job){ .base = event_base_new(),
			     .routes = ROUTES_INIT,
			     .dir = "/tmp/answers.XXXXXX" };
	mine.arg = job;
	ck_assert_ptr_nonnull(mkdtemp(job->dir));
	node_init(&job->node, &(struct node_config){ .kind = NODE_ALONE,
						     .agent.node = { .min_nodes = 1,
								     .max_nodes = 1,
								     .nproc = 1,
								     .period_ns = NS_PER_S } });
	job->answers = answers_new(job->base, &job->node, &job->pages, &mine);
	AUTO_FREE char *path = mem_printf("%s/" ANSWERS_SOCKET, job->dir);
	ck_assert_int_eq(answers_listen(job->answers, path, "a-job", &job->routes, NULL), 0);
}

static void call(struct job *job, const char *run_id)
{
	static const struct link_handler handler = { .on_up = on_up,
						     .on_msg = on_msg,
						     .on_down = on_down };
	AUTO_FREE char *path = mem_printf("%s/" ANSWERS_SOCKET, job->dir);
	int fd = unix_connect(path, NS_PER_S, NULL);
	ck_assert_int_ge(fd, 0);
	fd_set_nonblock(fd, true);
	job->self = (struct link_self){ .run_id = run_id };
	job->command = link_greet_asker(job->base, fd, &job->self, "the job", &handler, job);
}

static void close_job(struct job *job)
{
	AUTO_FREE char *path = mem_printf("%s/" ANSWERS_SOCKET, job->dir);
	if (!job->down && job->command)
		link_drop(job->command);
	answers_free(job->answers);
	link_drop_lingering(job->base);
	routes_done(&job->routes);
	node_done(&job->node);
	event_base_free(job->base);
	unlink(path);
	rmdir(job->dir);
}

TEST(a_command_on_this_host_is_heard_by_the_node)
{
	struct job job;
	open_job(&job);
	call(&job, "a-job");
	WAIT_FOR(&job, job.asked);
	ck_assert(job.up);
	close_job(&job);
}

TEST(a_command_that_means_another_job_is_not_heard)
{
	struct job job;
	open_job(&job);
	call(&job, "another-job");
	WAIT_FOR(&job, job.down);
	ck_assert_int_eq(job.asked, 0);
	close_job(&job);
}

TEST(a_question_is_carried_out_from_the_loop)
{
	struct job job;
	open_job(&job);
	answers_take(job.answers,
		     &(struct msg){ .type = MSG_QUESTION,
				    .question = { .question = 1,
						  .pieces = 0, /* no answer is wanted */
						  .ask = { .kind = ASK_STOP } } });
	ck_assert_int_eq(job.stopped, 0);
	WAIT_FOR(&job, job.stopped);
	ck_assert_int_eq(job.stopped, 1);
	close_job(&job);
}
