/* Reads log files in a thread and gives them out through a pipe as a stream of blocks
 * (proto/log_block.h): a file server that does not answer stops the thread, not the loop, and a
 * slow reader of the pipe holds the thread back. */
#ifndef RUN_ASK_LOG_READER_H
#define RUN_ASK_LOG_READER_H

#include "base/err.h"
#include "proto/log_block.h"

#define LOG_READER_PERIOD_MS 100 /* between two looks at files that are followed */

struct log_file {
	char *path;
	enum log_stream stream;
	uint32_t rank;
};

struct log_reader {
	int fd;	       /* the pipe, non-blocking; end of file: that was all */
	int finish_fd; /* of a reader that follows */
};

#define LOG_READER_INIT ((struct log_reader){ -1, -1 })

#define LOG_READER_ALL UINT64_MAX

/* Takes over `files` with their paths, also on failure. Of what is there already, it reads the last
 * `tail` bytes of each. A reader that follows goes on with what is
 * added, also when the file is set aside for a new one, until log_reader_finish(). */
int log_reader_start(struct log_file *files, size_t count, bool follow, uint64_t tail,
		     struct log_reader *ret_reader, struct err *err);

/* Nothing more will be written: it reads the files to their ends. */
void log_reader_finish(struct log_reader *reader);

/* The thread ends by itself. */
void log_reader_done(struct log_reader *reader);

#endif
