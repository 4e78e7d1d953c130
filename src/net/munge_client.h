/* Vouches for bytes in the name of this user, through munge, and checks what munge on another host
 * has vouched for. Every node of a Slurm cluster runs munge.
 *
 * A credential proves that a process of the same user, on a host with the same munge key, vouched
 * for these bytes a moment ago. It can be checked once.
 *
 * The library talks to a daemon and may block, so a child process calls it; only the child loads
 * it. Requests wait in a queue. A child that dies fails the request under way, and the next request
 * starts another one. */
#ifndef NET_MUNGE_CLIENT_H
#define NET_MUNGE_CLIENT_H

#include "base/err.h"
#include "proto/frame.h"

struct event_base;
struct munge_client;
struct munge_client_request;

#define MUNGE_CLIENT_DIGEST_SIZE 32

struct munge_client_answer {
	bool ok;
	char text[FRAME_CREDENTIAL_MAX]; /* the credential that was asked for, or why not */
};

typedef void munge_client_fn(void *arg, const struct munge_client_answer *answer);

/* Whether a credential can be made here, by making one: 0, or -errno with the reason. Blocks, but
 * not for long. */
int munge_client_try(struct err *err);

struct munge_client *munge_client_new(struct event_base *base);
void munge_client_free(struct munge_client *munge); /* no request may be left; NULL is fine */

/* One answer comes from the loop, and with it the request is gone. */
struct munge_client_request *munge_client_sign(struct munge_client *munge,
					       const unsigned char digest[MUNGE_CLIENT_DIGEST_SIZE],
					       munge_client_fn *on_answer, void *arg);
struct munge_client_request *munge_client_check(
	struct munge_client *munge, const unsigned char digest[MUNGE_CLIENT_DIGEST_SIZE],
	const char *credential, munge_client_fn *on_answer, void *arg);
void munge_client_cancel(
	struct munge_client_request *request); /* before its answer; NULL is fine */

#endif
