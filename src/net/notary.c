#include "net/notary.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/notary_munge.h"

#define TRY_MS 5000 /* for a daemon that does not answer */

struct notary_request {
	struct list queue;
	struct notary *notary;
	struct notary_question question;
	notary_fn *on_answer;
	void *arg;
};

struct notary {
	struct event_base *base;
	pid_t pid;
	int fd;		      /* -1: there is no child */
	bool asked;	      /* the child works; on the first request unless that was cancelled */
	bool abandoned;	      /* it was */
	struct list requests; /* first come, first served */
	struct event readable, next;
};

int notary_try(struct err *err)
{
	pid_t pid;
	int fd;
	int r = notary_child_start(&pid, &fd, err);
	if (r < 0)
		return r;
	const struct notary_question question = { .check = false };
	struct notary_answer answer = { .ok = false };
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	if (send(fd, &question, sizeof(question), MSG_NOSIGNAL) < 0 ||
	    poll(&poll_fd, 1, TRY_MS) <= 0 ||
	    recv(fd, &answer, sizeof(answer), 0) != sizeof(answer))
		snprintf(answer.text, sizeof(answer.text), "munge does not answer");
	notary_child_stop(pid, &fd);
	return answer.ok ? 0 : err_set(err, ENOENT, "%s", answer.text);
}

static void drop_child(struct notary *notary)
{
	if (notary->fd < 0)
		return;
	event_del(&notary->readable);
	notary_child_stop(notary->pid, &notary->fd);
	notary->asked = notary->abandoned = false;
}

static void ask_next(struct notary *notary)
{
	const struct timeval now = { 0 };
	if (!notary->asked && !list_empty(&notary->requests))
		event_add(&notary->next, &now);
}

static void answer_first(struct notary *notary, const struct notary_answer *answer)
{
	struct notary_request *request =
		list_entry(notary->requests.next, struct notary_request, queue);
	notary_fn *on_answer = request->on_answer;
	void *arg = request->arg;
	list_unlink(&request->queue);
	free(request);
	ask_next(notary);
	on_answer(arg, answer);
}

static void on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct notary *notary = arg;
	struct notary_answer answer;
	bool abandoned = notary->abandoned;
	ssize_t n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	notary->asked = notary->abandoned = false;
	if (n != sizeof(answer)) {
		drop_child(notary);
		answer = (struct notary_answer){ .ok = false, .text = "munge: the child died" };
	}
	if (abandoned || list_empty(&notary->requests))
		ask_next(notary);
	else
		answer_first(notary, &answer);
}

static int need_child(struct notary *notary, struct err *err)
{
	if (notary->fd >= 0)
		return 0;
	int r = notary_child_start(&notary->pid, &notary->fd, err);
	if (r < 0)
		return r;
	event_assign(&notary->readable, notary->base, notary->fd, EV_READ | EV_PERSIST, on_readable,
		     notary);
	event_add(&notary->readable, NULL);
	return 0;
}

static void on_next(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct notary *notary = arg;
	struct err err = ERR_INIT;
	if (notary->asked || list_empty(&notary->requests))
		return;
	struct notary_request *request =
		list_entry(notary->requests.next, struct notary_request, queue);
	if (need_child(notary, &err) < 0) {
		struct notary_answer answer = { .ok = false };
		snprintf(answer.text, sizeof(answer.text), "munge: %s", err.msg);
		answer_first(notary, &answer);
		return;
	}
	notary->asked = true;
	/* Only a child that died takes no question; its end of file follows. */
	if (send(notary->fd, &request->question, sizeof(request->question),
		 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		event_active(&notary->readable, EV_READ, 0);
}

struct notary *notary_new(struct event_base *base)
{
	struct notary *notary = NEW(struct notary);
	notary->base = base;
	notary->fd = -1;
	list_init(&notary->requests);
	evtimer_assign(&notary->next, base, on_next, notary);
	return notary;
}

void notary_free(struct notary *notary)
{
	if (!notary)
		return;
	assert(list_empty(&notary->requests));
	drop_child(notary);
	event_del(&notary->next);
	free(notary);
}

static struct notary_request *add(struct notary *notary, const unsigned char *digest,
				  const char *credential, notary_fn *on_answer, void *arg)
{
	struct notary_request *request = NEW(struct notary_request);
	request->notary = notary;
	request->on_answer = on_answer;
	request->arg = arg;
	request->question.check = credential != NULL;
	memcpy(request->question.digest, digest, NOTARY_DIGEST_SIZE);
	if (credential)
		snprintf(request->question.credential, sizeof(request->question.credential), "%s",
			 credential);
	list_append(&notary->requests, &request->queue);
	ask_next(notary);
	return request;
}

struct notary_request *notary_sign(struct notary *notary,
				   const unsigned char digest[NOTARY_DIGEST_SIZE],
				   notary_fn *on_answer, void *arg)
{
	return add(notary, digest, NULL, on_answer, arg);
}

struct notary_request *notary_check(struct notary *notary,
				    const unsigned char digest[NOTARY_DIGEST_SIZE],
				    const char *credential, notary_fn *on_answer, void *arg)
{
	return add(notary, digest, credential, on_answer, arg);
}

void notary_cancel(struct notary_request *request)
{
	if (!request)
		return;
	struct notary *notary = request->notary;
	if (notary->asked && notary->requests.next == &request->queue)
		notary->abandoned = true;
	list_unlink(&request->queue);
	free(request);
}
