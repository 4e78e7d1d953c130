#include "net/munge_client.h"

#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"

#define LIBRARY "libmunge.so.2"
#define QUESTIONS_FD 3
#define TRY_MS 5000 /* for a daemon that does not answer */

/* A question to the child, one packet. */
struct munge_client_question {
	bool check; /* else sign */
	unsigned char digest[MUNGE_CLIENT_DIGEST_SIZE];
	char credential[FRAME_CREDENTIAL_MAX]; /* to check */
};

/* ---- the child, which calls the library ---- */

/* From munge.h, so that muster is built without it: these are part of the library's interface. */
#define MUNGE_SUCCESS 0
#define MUNGE_UID_RESTRICTION 9 /* who may decode a credential */
typedef void munge_ctx;

static struct {
	munge_ctx *(*ctx_create)(void);
	int (*ctx_set)(munge_ctx *ctx, int option, ...);
	int (*encode)(char **credential, munge_ctx *ctx, const void *data, int len);
	int (*decode)(const char *credential, munge_ctx *ctx, void **data, int *len, uid_t *uid,
		      gid_t *gid);
	const char *(*ctx_strerror)(munge_ctx *ctx);
	munge_ctx *ctx;
} lib;

PRINTF_LIKE(2, 3)
static void refuse(struct munge_client_answer *answer, const char *fmt, ...)
{
	va_list args;
	answer->ok = false;
	va_start(args, fmt);
	vsnprintf(answer->text, sizeof(answer->text), fmt, args);
	va_end(args);
}

/* False: the answer says why. */
static bool load(struct munge_client_answer *answer)
{
	if (lib.ctx)
		return true;
	void *library = dlopen(LIBRARY, RTLD_NOW);
	if (!library) {
		refuse(answer, "%s", dlerror());
		return false;
	}
	*(void **)&lib.ctx_create = dlsym(library, "munge_ctx_create");
	*(void **)&lib.ctx_set = dlsym(library, "munge_ctx_set");
	*(void **)&lib.encode = dlsym(library, "munge_encode");
	*(void **)&lib.decode = dlsym(library, "munge_decode");
	*(void **)&lib.ctx_strerror = dlsym(library, "munge_ctx_strerror");
	if (!lib.ctx_create || !lib.ctx_set || !lib.encode || !lib.decode || !lib.ctx_strerror) {
		refuse(answer, LIBRARY " is not the library of munge");
		return false;
	}
	lib.ctx = lib.ctx_create();
	if (!lib.ctx || lib.ctx_set(lib.ctx, MUNGE_UID_RESTRICTION, geteuid()) != MUNGE_SUCCESS) {
		refuse(answer, "munge: cannot restrict credentials to this user");
		lib.ctx = NULL;
	}
	return lib.ctx != NULL;
}

static void refuse_as_munge(struct munge_client_answer *answer)
{
	const char *why = lib.ctx_strerror(lib.ctx);
	refuse(answer, "munge: %s", why ? why : "it failed");
}

static void sign(const struct munge_client_question *question, struct munge_client_answer *answer)
{
	char *credential = NULL;
	if (lib.encode(&credential, lib.ctx, question->digest, MUNGE_CLIENT_DIGEST_SIZE) !=
	    MUNGE_SUCCESS)
		refuse_as_munge(answer);
	else if (strlen(credential) >= sizeof(answer->text))
		refuse(answer, "munge: the credential is too long");
	else
		strcpy(answer->text, credential);
	free(credential);
}

static void check(const struct munge_client_question *question, struct munge_client_answer *answer)
{
	void *data = NULL;
	int len = 0;
	uid_t uid;
	gid_t gid;
	if (lib.decode(question->credential, lib.ctx, &data, &len, &uid, &gid) != MUNGE_SUCCESS)
		refuse_as_munge(answer);
	else if (uid != geteuid())
		refuse(answer, "it belongs to user %u, not to %u", uid, geteuid());
	else if (len != MUNGE_CLIENT_DIGEST_SIZE ||
		 memcmp(data, question->digest, MUNGE_CLIENT_DIGEST_SIZE) != 0)
		refuse(answer, "its credential is for another connection");
	free(data);
}

static _Noreturn void answer_all(pid_t parent, int fd)
{
	struct munge_client_question question;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before the line above */
		_exit(1);
	dup2(fd, QUESTIONS_FD);
	close_range(QUESTIONS_FD + 1, ~0U, 0);
	while (recv(QUESTIONS_FD, &question, sizeof(question), 0) == sizeof(question)) {
		struct munge_client_answer answer = { .ok = true };
		if (load(&answer)) {
			if (question.check)
				check(&question, &answer);
			else
				sign(&question, &answer);
		}
		if (send(QUESTIONS_FD, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

/* Starts it: our end of a socket that keeps packets apart, on which each question gets one
 * munge_client_answer. It ends when the socket is closed, and with us. */
static int start_child(pid_t *ret_pid, int *ret_fd, struct err *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "socketpair: %m");
	AUTO(fd_close) int ours = pair[0];
	AUTO(fd_close) int theirs = pair[1];
	pid_t parent = getpid(), pid = child_fork();
	if (pid < 0)
		return err_set(err, errno, "fork: %m");
	if (pid == 0)
		answer_all(parent, theirs);
	*ret_pid = pid;
	*ret_fd = fd_take(&ours);
	return 0;
}

static void stop_child(pid_t pid, int *fd)
{
	kill(pid, SIGKILL);
	child_wait(pid);
	fd_close(fd);
}

/* ---- in muster ---- */

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
	int r = start_child(&pid, &fd, err);
	if (r < 0)
		return r;
	const struct munge_client_question question = { .check = false };
	struct munge_client_answer answer = { .ok = false };
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	if (send(fd, &question, sizeof(question), MSG_NOSIGNAL) < 0 ||
	    poll(&poll_fd, 1, TRY_MS) <= 0 ||
	    recv(fd, &answer, sizeof(answer), 0) != sizeof(answer))
		snprintf(answer.text, sizeof(answer.text), "munge does not answer");
	stop_child(pid, &fd);
	return answer.ok ? 0 : err_set(err, ENOENT, "%s", answer.text);
}

static void drop_child(struct munge_client *munge)
{
	if (munge->fd < 0)
		return;
	event_del(&munge->readable);
	stop_child(munge->pid, &munge->fd);
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
	int r = start_child(&munge->pid, &munge->fd, err);
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
