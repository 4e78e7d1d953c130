#include "net/munge_client.h"

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
#include "net/munge_client_child.h"

#define TRY_MS 5000 /* for a daemon that does not answer */

struct munge_client_request {
	struct list queue;
	struct munge_client *munge;
	struct munge_client_question question;
	munge_client_fn *on_answer;
	void *arg;
};

struct munge_client {
	struct event_base *base;
	pid_t pid;
	int fd;		      /* -1: there is no child */
	bool asked;	      /* the child works; on the first request unless that was cancelled */
	bool abandoned;	      /* it was */
	struct list requests; /* first come, first served */
	struct event readable, next;
};

int munge_client_try(struct err *err)
{
	pid_t pid;
	int fd;
	int r = munge_client_child_start(&pid, &fd, err);
	if (r < 0)
		return r;
	const struct munge_client_question question = { .check = false };
	struct munge_client_answer answer = { .ok = false };
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	if (send(fd, &question, sizeof(question), MSG_NOSIGNAL) < 0 ||
	    poll(&poll_fd, 1, TRY_MS) <= 0 ||
	    recv(fd, &answer, sizeof(answer), 0) != sizeof(answer))
		snprintf(answer.text, sizeof(answer.text), "munge does not answer");
	munge_client_child_stop(pid, &fd);
	return answer.ok ? 0 : err_set(err, ENOENT, "%s", answer.text);
}

static void drop_child(struct munge_client *munge)
{
	if (munge->fd < 0)
		return;
	event_del(&munge->readable);
	munge_client_child_stop(munge->pid, &munge->fd);
	munge->asked = munge->abandoned = false;
}

static void ask_next(struct munge_client *munge)
{
	const struct timeval now = { 0 };
	if (!munge->asked && !list_empty(&munge->requests))
		event_add(&munge->next, &now);
}

static void answer_first(struct munge_client *munge, const struct munge_client_answer *answer)
{
	struct munge_client_request *request =
		list_entry(munge->requests.next, struct munge_client_request, queue);
	munge_client_fn *on_answer = request->on_answer;
	void *arg = request->arg;
	list_unlink(&request->queue);
	free(request);
	ask_next(munge);
	on_answer(arg, answer);
}

static void on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct munge_client *munge = arg;
	struct munge_client_answer answer;
	bool abandoned = munge->abandoned;
	ssize_t n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	munge->asked = munge->abandoned = false;
	if (n != sizeof(answer)) {
		drop_child(munge);
		answer = (struct munge_client_answer){ .ok = false,
						       .text = "munge: the child died" };
	}
	if (abandoned || list_empty(&munge->requests))
		ask_next(munge);
	else
		answer_first(munge, &answer);
}

static int need_child(struct munge_client *munge, struct err *err)
{
	if (munge->fd >= 0)
		return 0;
	int r = munge_client_child_start(&munge->pid, &munge->fd, err);
	if (r < 0)
		return r;
	event_assign(&munge->readable, munge->base, munge->fd, EV_READ | EV_PERSIST, on_readable,
		     munge);
	event_add(&munge->readable, NULL);
	return 0;
}

static void on_next(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct munge_client *munge = arg;
	struct err err = ERR_INIT;
	if (munge->asked || list_empty(&munge->requests))
		return;
	struct munge_client_request *request =
		list_entry(munge->requests.next, struct munge_client_request, queue);
	if (need_child(munge, &err) < 0) {
		struct munge_client_answer answer = { .ok = false };
		snprintf(answer.text, sizeof(answer.text), "munge: %s", err.msg);
		answer_first(munge, &answer);
		return;
	}
	munge->asked = true;
	/* Only a child that died takes no question; its end of file follows. */
	if (send(munge->fd, &request->question, sizeof(request->question),
		 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		event_active(&munge->readable, EV_READ, 0);
}

struct munge_client *munge_client_new(struct event_base *base)
{
	struct munge_client *munge = NEW(struct munge_client);
	munge->base = base;
	munge->fd = -1;
	list_init(&munge->requests);
	evtimer_assign(&munge->next, base, on_next, munge);
	return munge;
}

void munge_client_free(struct munge_client *munge)
{
	if (!munge)
		return;
	assert(list_empty(&munge->requests));
	drop_child(munge);
	event_del(&munge->next);
	free(munge);
}

static struct munge_client_request *add(struct munge_client *munge, const unsigned char *digest,
					const char *credential, munge_client_fn *on_answer,
					void *arg)
{
	struct munge_client_request *request = NEW(struct munge_client_request);
	request->munge = munge;
	request->on_answer = on_answer;
	request->arg = arg;
	request->question.check = credential != NULL;
	memcpy(request->question.digest, digest, MUNGE_CLIENT_DIGEST_SIZE);
	if (credential)
		snprintf(request->question.credential, sizeof(request->question.credential), "%s",
			 credential);
	list_append(&munge->requests, &request->queue);
	ask_next(munge);
	return request;
}

struct munge_client_request *munge_client_sign(struct munge_client *munge,
					       const unsigned char digest[MUNGE_CLIENT_DIGEST_SIZE],
					       munge_client_fn *on_answer, void *arg)
{
	return add(munge, digest, NULL, on_answer, arg);
}

struct munge_client_request *munge_client_check(
	struct munge_client *munge, const unsigned char digest[MUNGE_CLIENT_DIGEST_SIZE],
	const char *credential, munge_client_fn *on_answer, void *arg)
{
	return add(munge, digest, credential, on_answer, arg);
}

void munge_client_cancel(struct munge_client_request *request)
{
	if (!request)
		return;
	struct munge_client *munge = request->munge;
	if (munge->asked && munge->requests.next == &request->queue)
		munge->abandoned = true;
	list_unlink(&request->queue);
	free(request);
}
