#include "sys/start/start_ring.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* Who has a request. A warden's is its number behind these. */
enum {
	NOBODY,
	LIES_THERE,
	FIRST_TAKER,
};

/* The number of a request and who has it change in one step. */
#define TAKER_BITS 16

struct start_ring {
	_Atomic uint64_t newest;
	_Atomic uint64_t owners[START_RING_PLACES];
	size_t lens[START_RING_PLACES];
	unsigned char requests[START_RING_PLACES][START_RING_REQUEST_MAX];
};

static uint64_t owned(uint64_t number, unsigned who)
{
	return number << TAKER_BITS | who;
}

static size_t place_of(uint64_t number)
{
	return number % START_RING_PLACES;
}

struct start_ring *start_ring_new(void)
{
	void *memory = mmap(NULL, sizeof(struct start_ring), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void start_ring_free(struct start_ring *ring)
{
	if (ring)
		munmap(ring, sizeof(*ring));
}

bool start_ring_lay(struct start_ring *ring, uint64_t number, const struct buf *request)
{
	size_t place = place_of(number), len = buf_len(request);
	if (len > START_RING_REQUEST_MAX)
		return false;
	memcpy(ring->requests[place], buf_data(request), len);
	ring->lens[place] = len;
	atomic_store(&ring->owners[place], owned(number, LIES_THERE));
	atomic_store(&ring->newest, number);
	return true;
}

/* True if it lay there and is `who`'s now. */
static bool take(struct start_ring *ring, uint64_t number, unsigned who)
{
	uint64_t expected = owned(number, LIES_THERE);
	return atomic_compare_exchange_strong(&ring->owners[place_of(number)], &expected,
					      owned(number, who));
}

bool start_ring_take_back(struct start_ring *ring, uint64_t number)
{
	return take(ring, number, NOBODY);
}

bool start_ring_is_taken_by(const struct start_ring *ring, uint64_t number, int taker)
{
	return atomic_load(&ring->owners[place_of(number)]) ==
	       owned(number, FIRST_TAKER + (unsigned)taker);
}

uint64_t start_ring_take(struct start_ring *ring, int taker, struct buf *ret_request)
{
	uint64_t newest = atomic_load(&ring->newest);
	uint64_t number = newest > START_RING_PLACES ? newest - START_RING_PLACES + 1 : 1;
	while (number <= newest && !take(ring, number, FIRST_TAKER + (unsigned)taker))
		number++;
	if (number > newest)
		return 0;
	size_t place = place_of(number);
	buf_append(ret_request, ring->requests[place],
		   MIN(ring->lens[place], (size_t)START_RING_REQUEST_MAX));
	return number;
}
