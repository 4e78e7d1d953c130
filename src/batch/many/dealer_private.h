/* What the parts of the coordinator share: dealer.c (gives orders out, takes results) and
 * dealer_files.c (files that move with orders). */
#ifndef BATCH_MANY_DEALER_PRIVATE_H
#define BATCH_MANY_DEALER_PRIVATE_H

#include "base/dir.h"
#include "base/newfile.h"
#include "batch/many/many_private.h"

/* A file that an order made. */
struct got_file {
	struct newfile file;
	uint64_t bytes;
	uint32_t mode;
	bool whole;
};

/* What an order wrote, as far as it has come. */
struct got {
	struct list link;
	uint32_t lease;
	int fds[2];
	uint64_t bytes[2];
	struct got_file *files; /* by their numbers in the order's list; NULL: none came */
	size_t file_count;
	uint64_t size; /* of all */
	char *trouble; /* why it cannot be taken; NULL: none */
};

struct peer {
	struct list link;
	uint64_t id;
	uint32_t host;
	bool known;
	char name[WORK_NAME_MAX];
	struct buf in;
	struct list gots;
	bool gone; /* its link was hung up while what came over it was at hand */
};

struct dealer {
	struct many *many;
	struct dispatch *dispatch;
	const struct dispatch_job *job;
	struct deal deal;
	struct event *timer;
	struct list peers;
	uint64_t term;
	/* the result at hand */
	struct peer *peer;
	struct peer *taking; /* its bytes are at hand; NULL: none are */
	const struct work_msg *msg;
	char mark[40]; /* a file by which hosts see that they share the directory; "": none */
};

static inline const struct order *dealer_order(const struct dealer *dealer, uint32_t number)
{
	return dispatch_order(dealer->dispatch, number, 0);
}

/* dealer.c */
void dealer_send(struct dealer *dealer, uint64_t link, struct work_msg msg);
struct got *dealer_got(struct peer *peer, uint32_t lease); /* made when needed */

/* dealer_files.c */
void dealer_feed(struct dealer *dealer, uint32_t number); /* what the FETCH at hand asks for */
int dealer_check_fetch(const struct dealer *dealer, const struct work_msg *msg, struct err *err);
int dealer_take_file(struct dealer *dealer, struct peer *peer, const struct work_msg *msg,
		     struct err *err);
int dealer_place_files(struct got *got, struct err *err); /* the result counts */
void dealer_drop_files(struct got *got);
/* Whether the order may still send `len` bytes; if not, its run fails. */
bool dealer_may_take(struct dealer *dealer, struct got *got, size_t len);
void dealer_mark_directory(struct dealer *dealer);
void dealer_unmark_directory(struct dealer *dealer);

#endif
