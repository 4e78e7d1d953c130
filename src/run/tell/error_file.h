/* The error.json a worker leaves behind (torch's @record writes it), read in whatever state it is
 * in: absent, cut short, huge, not what it should be, or on a file system that does not answer.
 * None of that is an error of ours; it is told in the report. */
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

/* Texts are UTF-8, whatever the file held; NULL: not there. */
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

/* Hands the root cause's file at `from` up to whoever started muster, at `to`, replacing what is
 * there: the same JSON with the exit code added (a negative signal number if a signal ended it).
 * Without such a file nothing happens. */
int error_file_pass_up(const char *from, const char *to, int exit_code, struct err *err);

#endif
