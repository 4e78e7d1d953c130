/* The page of memory that a worker shares with its agent, in the host's byte order. A worker writes
 * it without a system call; the agent reads it when it wants to know. muster-page(7) documents it
 * for programs in any language.
 *
 * The agent trusts nothing in it: any value may be there at any time. */
#ifndef CORE_WORKER_WORKER_PAGE_H
#define CORE_WORKER_WORKER_PAGE_H

#include <stdatomic.h>

#include "core/worker/step_progress.h"

#define WORKER_PAGE_SIZE 4096
#define WORKER_PAGE_VERSION 1
#define WORKER_PAGE_SECTIONS 16

struct worker_page_section {
	char name[STEP_PROGRESS_SECTION_MAX]; /* NUL at the end; written before the first use */
	_Atomic uint64_t ns;		      /* time spent in it until it was last left */
	_Atomic uint64_t count;		      /* how often it was entered */
};

struct worker_page {
	_Atomic uint64_t beats;	     /* 0: heartbeats */
	_Atomic uint64_t version;    /* 8: written by the agent */
	_Atomic uint64_t told;	     /* 16: steps told so far; written last */
	_Atomic uint64_t step;	     /* 24: the number of the last one */
	_Atomic uint64_t total;	     /* 32: steps in all; 0: unknown */
	_Atomic uint64_t saved;	     /* 40: 1 + the last step whose state is saved; 0: none */
	_Atomic uint64_t first_step; /* 48 */
	_Atomic uint64_t first_ns;   /* 56: CLOCK_MONOTONIC */
	_Atomic uint64_t section;    /* 64: 1 + the index of the section it is in; 0: none */
	_Atomic uint64_t section_ns; /* 72: when it entered that one */
	/* core/worker/stop_plan.h: when to leave or to save together */
	_Atomic uint64_t plan;	/* 80: written by the agent; 0: nothing is asked for */
	_Atomic uint64_t asks;	/* 88: bit 0: it asks whether to leave, bit 1: whether to save */
	_Atomic uint64_t at;	/* 96: the step that it has gone on after, since there is a plan */
	_Atomic uint64_t acted; /* 104: the step after which it left or saved as planned */
	uint64_t reserved[50];
	/* 512: CLOCK_MONOTONIC in ns of step number `told`, at told % STEP_PROGRESS_TIMES */
	_Atomic uint64_t times[STEP_PROGRESS_TIMES];
	struct worker_page_section sections[WORKER_PAGE_SECTIONS]; /* 1024 */
	unsigned char rest[2048];
};
static_assert(sizeof(struct worker_page) == WORKER_PAGE_SIZE, "it is one page");
static_assert(offsetof(struct worker_page, times) == 512, "as documented");
static_assert(offsetof(struct worker_page, sections) == 1024, "as documented");

/* The worker's side. Plain stores: only one thread at a time tells steps. */
static inline void worker_page_tell(struct worker_page *page, uint64_t step, uint64_t now_ns)
{
	uint64_t told = atomic_load_explicit(&page->told, memory_order_relaxed) + 1;
	if (told == 1) {
		atomic_store_explicit(&page->first_step, step, memory_order_relaxed);
		atomic_store_explicit(&page->first_ns, now_ns, memory_order_relaxed);
	}
	atomic_store_explicit(&page->times[told % STEP_PROGRESS_TIMES], now_ns,
			      memory_order_relaxed);
	atomic_store_explicit(&page->step, step, memory_order_relaxed);
	atomic_store_explicit(&page->told, told, memory_order_release);
}

/* The index of a section by its name, which is added if it is new; -ENAMETOOLONG, -ENOSPC. */
int worker_page_find_section(struct worker_page *page, const char *name);

/* Leaves the current section and enters another one; -1: none. */
void worker_page_enter(struct worker_page *page, int section, uint64_t now_ns);

/* The agent's side. Also of a page that is being written, or full of nonsense. */
void worker_page_read(const struct worker_page *page, struct step_progress *ret_headway);

#endif
