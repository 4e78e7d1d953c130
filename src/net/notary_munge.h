/* The child of a notary: calls libmunge. */
#ifndef NET_NOTARY_MUNGE_H
#define NET_NOTARY_MUNGE_H

#include "net/notary.h"

/* A question to the child, one packet. */
struct notary_question {
	bool check; /* else sign */
	unsigned char digest[NOTARY_DIGEST_SIZE];
	char credential[FRAME_CREDENTIAL_MAX]; /* to check */
};

/* Starts it: our end of a socket that keeps packets apart, on which each question gets one
 * notary_answer. It ends when the socket is closed, and with us. */
int notary_child_start(pid_t *ret_pid, int *ret_fd, struct err *err);
void notary_child_stop(pid_t pid, int *fd);

#endif
