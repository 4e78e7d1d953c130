/* The child that calls libmunge. */
#ifndef NET_MUNGE_CLIENT_CHILD_H
#define NET_MUNGE_CLIENT_CHILD_H

#include "net/munge_client.h"

/* A question to the child, one packet. */
struct munge_client_question {
	bool check; /* else sign */
	unsigned char digest[MUNGE_CLIENT_DIGEST_SIZE];
	char credential[FRAME_CREDENTIAL_MAX]; /* to check */
};

/* Starts it: our end of a socket that keeps packets apart, on which each question gets one
 * munge_client_answer. It ends when the socket is closed, and with us. */
int munge_client_child_start(pid_t *ret_pid, int *ret_fd, struct err *err);
void munge_client_child_stop(pid_t pid, int *fd);

#endif
