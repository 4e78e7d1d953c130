#include "watch/keeps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "core/worker/keep_page.h"

static_assert(KEPT_STATES == KEEP_SLOTS, "a slot for each state");

struct keep { /* one memory */
	char name[KEEP_NAME_MAX + 1];
	int fd;
	uint64_t size;
	struct keep_head *head;
};

struct keeper { /* one local rank */
	struct keep *keeps;
	size_t count;
};

struct keeps {
	struct keeper *ranks;
	size_t count;
	uint64_t bytes, limit;
	struct ballot ballot; /* of the round that runs */
};

static void keep_done(struct keeps *keeps, struct keep *keep)
{
	keeps->bytes -= keep_bytes(keep->size);
	munmap(keep->head, KEEP_HEAD_SIZE);
	fd_close(&keep->fd);
}

struct keeps *keeps_new(size_t ranks, uint64_t limit)
{
	struct keeps *keeps = NEW(struct keeps);
	keeps->ranks = mem_alloc(ranks * sizeof(struct keeper));
	keeps->count = ranks;
	keeps->limit = limit;
	return keeps;
}

void keeps_free(struct keeps *keeps)
{
	if (!keeps)
		return;
	for (size_t i = 0; i < keeps->count; i++) {
		for (size_t k = 0; k < keeps->ranks[i].count; k++)
			keep_done(keeps, &keeps->ranks[i].keeps[k]);
		free(keeps->ranks[i].keeps);
	}
	free(keeps->ranks);
	free(keeps);
}

static struct keep *find(const struct keeper *keeper, const char *name)
{
	for (size_t i = 0; i < keeper->count; i++)
		if (strcmp(keeper->keeps[i].name, name) == 0)
			return &keeper->keeps[i];
	return NULL;
}

static int make(struct keeps *keeps, const char *name, uint64_t size, struct keep *ret,
		struct err *err)
{
	if (keep_bytes(size) > keeps->limit - MIN(keeps->limit, keeps->bytes))
		return err_set(err, EDQUOT, "keep %s: more than the limit of this host", name);
	AUTO(fd_close) int fd = memfd_create("muster-keep", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Sealed: if a worker could shrink it, our next look at it would be a SIGBUS. */
	if (fd < 0 || ftruncate(fd, (off_t)keep_bytes(size)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_set(err, errno, "keep %s: %m", name);
	/* Only the head: what the workers keep is not our business. */
	void *head = mmap(NULL, KEEP_HEAD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (head == MAP_FAILED)
		return err_set(err, errno, "keep %s: map it: %m", name);
	*ret = (struct keep){ .size = size, .head = head };
	ret->head->version = KEEP_VERSION;
	ret->head->size = size;
	ret->head->stride = keep_stride(size);
	keep_enter(ret->head, keeps->ballot.epoch, keeps->ballot.round,
		   &(struct keep_mark){ .committed = false });
	strcpy(ret->name, name);
	ret->fd = fd_take(&fd);
	keeps->bytes += keep_bytes(size);
	return 0;
}

int keeps_fd(struct keeps *keeps, size_t rank, const char *name, uint64_t size, struct err *err)
{
	size_t len = strlen(name);
	if (rank >= keeps->count || len == 0 || len > KEEP_NAME_MAX || size == 0 ||
	    size > KEEP_SIZE_MAX)
		return err_set(err, EINVAL, "keep: a name or a size that is not valid");
	struct keeper *keeper = &keeps->ranks[rank];
	struct keep *known = find(keeper, name);
	if (known && known->size == size)
		return known->fd;
	if (known && keep_newest(known->head) >= 0)
		return err_set(err, EEXIST, "keep %s: it has a state of another size", name);
	if (!known && keeper->count == KEEP_NAMES_MAX)
		return err_set(err, ENOSPC, "keep %s: too many names", name);
	struct keep made = { .fd = -1 };
	int r = make(keeps, name, size, &made, err);
	if (r < 0)
		return r;
	if (known) {
		keep_done(keeps, known);
	} else {
		keeper->keeps = mem_grow(keeper->keeps, keeper->count + 1, sizeof(struct keep));
		known = &keeper->keeps[keeper->count++];
	}
	*known = made;
	return made.fd;
}

void keeps_begin(struct keeps *keeps, struct ballot ballot, const struct kept_state *state)
{
	struct keep_mark mark = { .committed = !kept_is_none(state),
				  .step = state->step,
				  .epoch = state->ballot.epoch,
				  .round = state->ballot.round };
	keeps->ballot = ballot;
	for (size_t i = 0; i < keeps->count; i++)
		for (size_t k = 0; k < keeps->ranks[i].count; k++)
			keep_enter(keeps->ranks[i].keeps[k].head, ballot.epoch, ballot.round,
				   &mark);
}

/* What is in a slot, if it can be: the worker may have written anything there. */
static struct kept_state read_slot(const struct keep_head *head, size_t slot)
{
	struct keep_mark mark = keep_mark(head, slot);
	struct kept_state state = { { mark.epoch, mark.round }, mark.step };
	if (!mark.committed || mark.epoch > BALLOT_MAX || mark.round > BALLOT_MAX ||
	    kept_is_none(&state))
		return KEPT_STATE_NONE;
	return state;
}

void keeps_read(const struct keeps *keeps, struct kept_state ret_states[KEPT_STATES])
{
	bool first = true;
	memset(ret_states, 0, KEPT_STATES * sizeof(*ret_states));
	for (size_t i = 0; i < keeps->count; i++) {
		const struct keeper *keeper = &keeps->ranks[i];
		for (size_t k = 0; k < keeper->count; k++) {
			struct kept_state states[KEPT_STATES];
			for (size_t slot = 0; slot < KEPT_STATES; slot++)
				states[slot] = read_slot(keeper->keeps[k].head, slot);
			if (first)
				memcpy(ret_states, states, sizeof(states));
			kept_meet(ret_states, states);
			first = false;
		}
		if (keeper->count == 0) { /* a rank that keeps nothing has no state to go on from */
			memset(ret_states, 0, KEPT_STATES * sizeof(*ret_states));
			return;
		}
	}
}

uint64_t keeps_bytes(const struct keeps *keeps)
{
	return keeps->bytes;
}
