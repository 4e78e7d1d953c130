/* Fetches the flight records of the workers of this host.
 *
 * Each worker that has imported torch.distributed serves its record on a Unix socket
 * (python/muster/_flight.py); PyTorch's server answers even while the main thread is blocked. All
 * are asked at once. Of a worker that has died the record that it dumped is read: PyTorch writes
 * such pickles when an operation of NCCL times out, and our hook when an exception of
 * torch.distributed ends the program. Blocks: call it in a command or in a thread outside the loop.
 */
#ifndef WATCH_FLIGHT_FETCH_H
#define WATCH_FLIGHT_FETCH_H

#include "core/collectives/record.h"
#include "core/pace/clock_offset.h"

#define FLIGHT_DUMPS "dump."		/* the beginning of the names of dumps, in that directory */
#define FLIGHT_VARIABLE "MUSTER_FLIGHT" /* the directory, in a worker's environment */
#define FLIGHT_DEFAULT_SIZE "2000"	/* operations that a worker remembers */
#define FLIGHT_SIZE_MAX 1000000
#define FLIGHT_FETCH_NS (3 * NS_PER_S)	     /* for all of them */
#define FLIGHT_ANSWER_MAX ((size_t)64 << 20) /* bytes */
#define FLIGHT_WHY_MAX 256
#define FLIGHT_HOST_MAX 65
#define FLIGHT_STATE_MAX 64

/* Where records are. */
struct flight_source {
	const char *dir;   /* of the sockets */
	const char *dumps; /* the beginning of the names of dumps, before the rank; NULL: none */
	uint64_t since_ns; /* older dumps, by the wall clock, belong to other runs */
};

struct flight_answer {
	uint32_t rank; /* fill in */
	bool given;
	struct record record;	  /* if it was given */
	char why[FLIGHT_WHY_MAX]; /* if not, for users */
	uint64_t fetched_ns;	  /* by the wall clock */
	struct wall_offset clock; /* the job's clock minus its host's */
	/* For others to fill in; "": not known. */
	char place[FLIGHT_WHY_MAX]; /* where it stands */
	char host[FLIGHT_HOST_MAX];
	char state[FLIGHT_STATE_MAX]; /* what it does, as the kernel knows */
	bool odd;		      /* no healthy worker does that for long */
	bool works, prints;	      /* it has lately */
};

/* `cancel_fd` becomes readable: give up; -1: never. The answers own their records. */
void flight_fetch(const struct flight_source *source, struct flight_answer *answers, size_t count,
		  uint64_t deadline_ns, int cancel_fd);

/* Whether an exception of torch.distributed has ended this worker, in this run. */
bool flight_died(const struct flight_source *source, uint32_t rank);

void flight_answers_done(struct flight_answer *answers, size_t count);

#endif
