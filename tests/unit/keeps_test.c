/* What the launcher holds for its workers: bounded, and only what all ranks have. */
#include "watch/keeps.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "core/worker/keep_page.h"
#include "unit.h"

#define RANKS 2
#define SIZE 5000
static const struct ballot first = { 7, 1 }, second = { 7, 2 };

static struct keep_head *head_of(struct keeps *keeps, size_t rank, const char *name)
{
	int fd = keeps_fd(keeps, rank, name, SIZE, NULL);
	ck_assert_int_ge(fd, 0);
	void *memory = mmap(NULL, keep_bytes(SIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	return memory;
}

static void save(struct keep_head *head, uint64_t step)
{
	ck_assert_int_eq(keep_commit(head, keep_begin(head), step), 0);
}

static struct kept_state common(const struct keeps *keeps)
{
	struct kept_state states[KEPT_STATES];
	keeps_read(keeps, states);
	return states[0];
}

TEST(all_ranks_have_a_step_when_each_has_it_under_all_its_names)
{
	struct keeps *keeps = keeps_new(RANKS, 1 << 20);
	keeps_begin(keeps, first, &KEPT_STATE_NONE);
	struct keep_head *a = head_of(keeps, 0, "a"), *b = head_of(keeps, 0, "b");
	save(a, 1);
	save(b, 1);
	ck_assert_msg(kept_is_none((struct kept_state[]){ common(keeps) }), "one keeps nothing");
	struct keep_head *c = head_of(keeps, 1, "a");
	save(c, 1);
	ck_assert_uint_eq(common(keeps).step, 1);
	ck_assert(ballot_eq(common(keeps).ballot, first));
	save(a, 2);
	save(c, 2);
	ck_assert_uint_eq(common(keeps).step, 1);
	save(b, 2);
	ck_assert_uint_eq(common(keeps).step, 2);
	keeps_free(keeps);
}

TEST(the_next_worker_gets_the_memory_of_the_last_with_the_agreed_state)
{
	struct keeps *keeps = keeps_new(1, 1 << 20);
	keeps_begin(keeps, first, &KEPT_STATE_NONE);
	struct keep_head *head = head_of(keeps, 0, "a");
	save(head, 4);
	save(head, 5);
	((char *)head)[KEEP_HEAD_SIZE + 1] = 'x';
	keeps_begin(keeps, second, &(struct kept_state){ first, 4 });
	struct keep_head *next = head_of(keeps, 0, "a");
	ck_assert_int_eq(((char *)next)[KEEP_HEAD_SIZE + 1], 'x');
	ck_assert_uint_eq(common(keeps).step, 4);
	save(next, 5);
	ck_assert(ballot_eq(common(keeps).ballot, second));
	keeps_free(keeps);
}

TEST(nonsense_in_the_numbers_is_not_a_state)
{
	struct keeps *keeps = keeps_new(1, 1 << 20);
	keeps_begin(keeps, first, &KEPT_STATE_NONE);
	struct keep_head *head = head_of(keeps, 0, "a");
	save(head, 4);
	atomic_store(&head->slots[0].epoch, UINT64_MAX);
	ck_assert(kept_is_none((struct kept_state[]){ common(keeps) }));
	atomic_store(&head->slots[0].epoch, 0);
	atomic_store(&head->slots[0].round, 0);
	struct kept_state states[KEPT_STATES];
	keeps_read(keeps, states);
	ck_assert(kept_is_none(&states[0]) && states[0].step == 0);
	keeps_free(keeps);
}

TEST(count_and_memory_are_bounded)
{
	struct keeps *keeps = keeps_new(RANKS, 20 * keep_bytes(SIZE));
	char name[16];
	for (int i = 0; i < KEEP_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		ck_assert_int_ge(keeps_fd(keeps, 0, name, SIZE, NULL), 0);
	}
	ck_assert_int_eq(keeps_fd(keeps, 0, "more", SIZE, NULL), -ENOSPC);
	ck_assert_int_eq(keeps_fd(keeps, 0, "3", SIZE, NULL), keeps_fd(keeps, 0, "3", SIZE, NULL));
	ck_assert_int_ge(keeps_fd(keeps, 1, "a", 2 * SIZE, NULL), 0);
	ck_assert_int_eq(keeps_fd(keeps, 1, "b", 8 * SIZE, NULL), -EDQUOT);
	ck_assert_int_eq(keeps_fd(keeps, 1, "c", KEEP_SIZE_MAX, NULL), -EDQUOT);
	ck_assert_int_eq(keeps_fd(keeps, 1, "c", KEEP_SIZE_MAX + 1, NULL), -EINVAL);
	ck_assert_int_eq(keeps_fd(keeps, RANKS, "c", SIZE, NULL), -EINVAL);
	uint64_t bytes = keeps_bytes(keeps);
	ck_assert_int_ge(keeps_fd(keeps, 1, "a", SIZE, NULL), 0);
	ck_assert_uint_lt(keeps_bytes(keeps), bytes);
	keeps_free(keeps);
}
