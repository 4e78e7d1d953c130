#include "net/munge_client_child.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"

#define LIBRARY "libmunge.so.2"
#define QUESTIONS_FD 3

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
} munge;

PRINTF_LIKE(2, 3)
static void refuse(struct munge_client_answer *answer, const char *fmt, ...)
{
	va_list args;
	answer->ok = false;
	va_start(args, fmt);
	vsnprintf(answer->text, sizeof(answer->text), fmt, args);
	va_end(args);
}

/* ---- in the child ---- */

/* False: the answer says why. */
static bool load(struct munge_client_answer *answer)
{
	if (munge.ctx)
		return true;
	void *library = dlopen(LIBRARY, RTLD_NOW);
	if (!library) {
		refuse(answer, "%s", dlerror());
		return false;
	}
	*(void **)&munge.ctx_create = dlsym(library, "munge_ctx_create");
	*(void **)&munge.ctx_set = dlsym(library, "munge_ctx_set");
	*(void **)&munge.encode = dlsym(library, "munge_encode");
	*(void **)&munge.decode = dlsym(library, "munge_decode");
	*(void **)&munge.ctx_strerror = dlsym(library, "munge_ctx_strerror");
	if (!munge.ctx_create || !munge.ctx_set || !munge.encode || !munge.decode ||
	    !munge.ctx_strerror) {
		refuse(answer, LIBRARY " is not the library of munge");
		return false;
	}
	munge.ctx = munge.ctx_create();
	if (!munge.ctx ||
	    munge.ctx_set(munge.ctx, MUNGE_UID_RESTRICTION, geteuid()) != MUNGE_SUCCESS) {
		refuse(answer, "munge: cannot restrict credentials to this user");
		munge.ctx = NULL;
	}
	return munge.ctx != NULL;
}

static void refuse_as_munge(struct munge_client_answer *answer)
{
	const char *why = munge.ctx_strerror(munge.ctx);
	refuse(answer, "munge: %s", why ? why : "it failed");
}

static void sign(const struct munge_client_question *question, struct munge_client_answer *answer)
{
	char *credential = NULL;
	if (munge.encode(&credential, munge.ctx, question->digest, MUNGE_CLIENT_DIGEST_SIZE) !=
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
	if (munge.decode(question->credential, munge.ctx, &data, &len, &uid, &gid) != MUNGE_SUCCESS)
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

/* ---- in muster ---- */

int munge_client_child_start(pid_t *ret_pid, int *ret_fd, struct err *err)
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

void munge_client_child_stop(pid_t pid, int *fd)
{
	kill(pid, SIGKILL);
	child_wait(pid);
	fd_close(fd);
}
