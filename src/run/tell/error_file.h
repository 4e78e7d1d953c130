/* Reads the error.json of a worker (torch's @record writes it) in any state: absent, truncated,
 * huge, invalid, or on a file system that does not answer. None of that is an error of ours; the
 * report tells it. */
#ifndef RUN_TELL_ERROR_FILE_H
#define RUN_TELL_ERROR_FILE_H

#include "base/err.h"
#include "base/util.h"

#define ERROR_FILE_MAX (4 << 20) /* bytes; a larger one is not read */

enum error_file_state {
	ERROR_FILE_ABSENT, /* the worker did not write one */
	ERROR_FILE_GOOD,
	ERROR_FILE_BAD, /* there, but useless: `problem` says why */
};

/* Texts are UTF-8, whatever the file held; NULL: absent. */
struct error_file {
	enum error_file_state state;
	char *message;	   /* "ValueError: boom" */
	char *traceback;   /* py_callstack; only if the message was an object */
	int64_t timestamp; /* seconds since the epoch; 0: none */
	char *problem;	   /* for ERROR_FILE_BAD, a phrase such as "is cut short" */
};

#define ERROR_FILE_INIT ((struct error_file){ .state = ERROR_FILE_ABSENT })

void error_file_parse(const char *data, size_t len, struct error_file *ret_file);
void error_file_read(const char *path, struct error_file *ret_file);
void error_file_done(struct error_file *file);

/* Copies the first cause's file at `from` to `to`, for the process that started muster: the same
 * JSON with the exit code added (a negative signal number if a signal ended it). Replaces what is
 * there. Without such a file it does nothing. */
int error_file_pass_up(const char *from, const char *to, int exit_code, struct err *err);

#endif
