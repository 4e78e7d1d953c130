/* Errors: a function that can fail returns -errno and explains itself in the caller's `struct err`.
 *
 * `err` is always the last parameter and may be NULL. Setting it never allocates. The function that
 * handles the error reports it, once; one that passes it on may put context in front with
 * err_wrap(). */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/util.h"

#define ERR_MSG_MAX 512

struct err {
	int code; /* positive errno, 0: no error */
	char msg[ERR_MSG_MAX];
};

#define ERR_INIT ((struct err){ .code = 0 })

/* Sets code and message and returns -code; %m prints `code`. Long messages are cut. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " in front of the message already there and returns -code. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
