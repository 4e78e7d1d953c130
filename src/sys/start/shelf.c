#include "sys/start/shelf.h"

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

struct shelf {
	_Atomic uint64_t newest;
	_Atomic uint64_t owners[SHELF_PLACES];
	size_t lens[SHELF_PLACES];
	unsigned char requests[SHELF_PLACES][SHELF_REQUEST_MAX];
};

static uint64_t owned(uint64_t number, unsigned who)
{
	return number << TAKER_BITS | who;
}

static size_t place_of(uint64_t number)
{
	return number % SHELF_PLACES;
}

struct shelf *shelf_new(void)
{
	void *memory = mmap(NULL, sizeof(struct shelf), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void shelf_free(struct shelf *shelf)
{
	if (shelf)
		munmap(shelf, sizeof(*shelf));
}

bool shelf_lay(struct shelf *shelf, uint64_t number, const struct buf *request)
{
	size_t place = place_of(number), len = buf_len(request);
	if (len > SHELF_REQUEST_MAX)
		return false;
	memcpy(shelf->requests[place], buf_data(request), len);
	shelf->lens[place] = len;
	atomic_store(&shelf->owners[place], owned(number, LIES_THERE));
	atomic_store(&shelf->newest, number);
	return true;
}

/* True if it lay there and is `who`'s now. */
static bool take(struct shelf *shelf, uint64_t number, unsigned who)
{
	uint64_t expected = owned(number, LIES_THERE);
	return atomic_compare_exchange_strong(&shelf->owners[place_of(number)], &expected,
					      owned(number, who));
}

bool shelf_take_back(struct shelf *shelf, uint64_t number)
{
	return take(shelf, number, NOBODY);
}

bool shelf_is_taken_by(const struct shelf *shelf, uint64_t number, int taker)
{
	return atomic_load(&shelf->owners[place_of(number)]) ==
	       owned(number, FIRST_TAKER + (unsigned)taker);
}

uint64_t shelf_take(struct shelf *shelf, int taker, struct buf *ret_request)
{
	uint64_t newest = atomic_load(&shelf->newest);
	uint64_t number = newest > SHELF_PLACES ? newest - SHELF_PLACES + 1 : 1;
	while (number <= newest && !take(shelf, number, FIRST_TAKER + (unsigned)taker))
		number++;
	if (number > newest)
		return 0;
	size_t place = place_of(number);
	buf_append(ret_request, shelf->requests[place],
		   MIN(shelf->lens[place], (size_t)SHELF_REQUEST_MAX));
	return number;
}
