#include "core/worker/worker_page.h"

#include <errno.h>
#include <string.h>

#define READS_MAX 4 /* then the worker tells steps faster than we read them */

int worker_page_find_section(struct worker_page *page, const char *name)
{
	size_t len = strlen(name);
	if (len == 0 || len >= STEP_PROGRESS_SECTION_MAX)
		return -ENAMETOOLONG;
	for (int i = 0; i < WORKER_PAGE_SECTIONS; i++) {
		char *known = page->sections[i].name;
		if (!*known)
			memcpy(known, name, len);
		if (strncmp(known, name, STEP_PROGRESS_SECTION_MAX) == 0)
			return i;
	}
	return -ENOSPC;
}

void worker_page_enter(struct worker_page *page, int section, uint64_t now_ns)
{
	uint64_t left = atomic_load_explicit(&page->section, memory_order_relaxed);
	if (left > 0 && left <= WORKER_PAGE_SECTIONS) {
		uint64_t since_ns = atomic_load_explicit(&page->section_ns, memory_order_relaxed);
		atomic_fetch_add_explicit(&page->sections[left - 1].ns,
					  now_ns - MIN(now_ns, since_ns), memory_order_relaxed);
	}
	atomic_store_explicit(&page->section_ns, now_ns, memory_order_relaxed);
	if (section >= 0)
		atomic_fetch_add_explicit(&page->sections[section].count, 1, memory_order_relaxed);
	atomic_store_explicit(&page->section, (uint64_t)(section + 1), memory_order_release);
}

static uint64_t read_word(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t longest_between(const struct worker_page *page, uint64_t told)
{
	uint64_t longest_ns = 0, kept = MIN(told, (uint64_t)STEP_PROGRESS_TIMES);
	uint64_t before = read_word(&page->times[(told - kept + 1) % STEP_PROGRESS_TIMES]);
	for (uint64_t i = 1; i < kept; i++) {
		uint64_t at = read_word(&page->times[(told - kept + 1 + i) % STEP_PROGRESS_TIMES]);
		if (at > before)
			longest_ns = MAX(longest_ns, at - before);
		before = at;
	}
	return longest_ns;
}

static void read_steps(const struct worker_page *page, uint64_t told, struct step_progress *ret)
{
	ret->told = told;
	ret->step = read_word(&page->step);
	ret->first_step = read_word(&page->first_step);
	ret->first_ns = read_word(&page->first_ns);
	ret->last_ns = read_word(&page->times[told % STEP_PROGRESS_TIMES]);
	ret->oldest_ns = told > STEP_PROGRESS_TIMES
				 ? read_word(&page->times[(told + 1) % STEP_PROGRESS_TIMES])
				 : ret->first_ns;
	ret->longest_ns = longest_between(page, told);
}

static void read_section(const struct worker_page *page, char ret_name[STEP_PROGRESS_SECTION_MAX])
{
	uint64_t section = atomic_load_explicit(&page->section, memory_order_acquire);
	ret_name[0] = '\0';
	if (section == 0 || section > WORKER_PAGE_SECTIONS)
		return;
	memcpy(ret_name, page->sections[section - 1].name, STEP_PROGRESS_SECTION_MAX);
	ret_name[STEP_PROGRESS_SECTION_MAX - 1] = '\0';
}

void worker_page_read(const struct worker_page *page, struct step_progress *ret_headway)
{
	struct step_progress progress = { 0 };
	uint64_t before, after = atomic_load_explicit(&page->told, memory_order_acquire);
	for (int i = 0; i < READS_MAX; i++) {
		before = after;
		read_steps(page, before, &progress);
		atomic_thread_fence(memory_order_acquire);
		after = read_word(&page->told);
		if (after == before)
			break;
	}
	uint64_t saved = read_word(&page->saved);
	progress.total = read_word(&page->total);
	progress.has_saved = saved > 0;
	progress.saved = saved > 0 ? saved - 1 : 0;
	read_section(page, progress.section);
	*ret_headway = progress;
}
