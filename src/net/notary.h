/* A notary: vouches for bytes in the name of this user, through munge, and checks what the notary
 * of another host has vouched for. Every node of a Slurm cluster runs munge.
 *
 * A credential proves that a process of the same user, on a host with the same munge key, vouched
 * for these bytes a moment ago. It can be checked once.
 *
 * The library talks to a daemon and may block, so a child process calls it; only the child loads
 * it. Requests wait in a queue. A child that dies fails the request under way, and the next request
 * starts another one. */
#ifndef NET_NOTARY_H
#define NET_NOTARY_H

#include "base/err.h"
#include "proto/frame.h"

struct event_base;
struct notary;
struct notary_request;

#define NOTARY_DIGEST_SIZE 32

struct notary_answer {
	bool ok;
	char text[FRAME_CREDENTIAL_MAX]; /* the credential that was asked for, or why not */
};

typedef void notary_fn(void *arg, const struct notary_answer *answer);

/* Whether a credential can be made here, by making one: 0, or -errno with the reason. Blocks, but
 * not for long. */
int notary_try(struct err *err);

struct notary *notary_new(struct event_base *base);
void notary_free(struct notary *notary); /* no request may be left; NULL is fine */

/* One answer comes from the loop, and with it the request is gone. */
struct notary_request *notary_sign(struct notary *notary,
				   const unsigned char digest[NOTARY_DIGEST_SIZE],
				   notary_fn *on_answer, void *arg);
struct notary_request *notary_check(struct notary *notary,
				    const unsigned char digest[NOTARY_DIGEST_SIZE],
				    const char *credential, notary_fn *on_answer, void *arg);
void notary_cancel(struct notary_request *request); /* before its answer; NULL is fine */

#endif
