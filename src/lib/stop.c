/* Leaving and saving together: what a worker asks after each step. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <muster/muster.h>
#include "core/worker/stop_plan.h"

#define LOOK_NS 100000000 /* a waiting worker looks again after this, should a wake-up be lost */

/* The kinds of plans that this process has asked about, as in the page. */
static _Atomic uint64_t asked[PLAN_KIND_COUNT];
static struct worker_page *_Atomic page;

static struct worker_page *get_page(void)
{
	struct worker_page *at = atomic_load_explicit(&page, memory_order_acquire);
	void *made = NULL;
	if (at)
		return at;
	if (muster_page(&made) < 0)
		return NULL;
	atomic_store_explicit(&page, made, memory_order_release);
	return made;
}

/* Until the agent changes the plan. */
static void wait_for_change(struct worker_page *at, uint64_t seen)
{
	bool low_first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
	uint32_t *low = (uint32_t *)&at->plan + (low_first ? 0 : 1);
	struct timespec left = { .tv_nsec = LOOK_NS };
	if (atomic_load(&at->plan) == seen)
		syscall(SYS_futex, low, FUTEX_WAIT, (uint32_t)seen, &left, NULL, 0);
}

static int ask(uint64_t step, enum plan_kind kind)
{
	struct worker_page *at = get_page();
	if (!at)
		return 0;
	if (!atomic_load_explicit(&asked[kind], memory_order_relaxed)) {
		atomic_store(&asked[kind], 1);
		atomic_fetch_or(&at->asks, (uint64_t)1 << kind);
	} else if (!atomic_load_explicit(&at->plan, memory_order_relaxed)) {
		return 0;
	}
	for (;;) {
		uint64_t seen = 0;
		enum plan_answer answer = plan_ask(at, step, kind == PLAN_SAVE, &seen);
		if (answer != PLAN_WAIT)
			return answer == PLAN_ACT;
		wait_for_change(at, seen);
	}
}

int muster_stop_after(uint64_t step)
{
	return ask(step, PLAN_LEAVE);
}

int muster_save_after(uint64_t step)
{
	return ask(step, PLAN_SAVE);
}
