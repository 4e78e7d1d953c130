/* Any bytes as the lines that --resume of muster bisect reads, and then the search as far as it
 * goes without measuring. */
#include <string.h>

#include "base/mem.h"
#include "batch/bisect/bisect_run.h"

#define COMMITS 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[COMMITS] = { "a", "b", "c", "d", "e" };
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.01, .max_pairs = 20 };
	struct bisect_run run = BISECT_RUN_INIT;
	run.commits = mem_alloc(COMMITS * sizeof(*run.commits));
	for (; run.count < COMMITS; run.count++)
		run.commits[run.count].full = mem_strdup(names[run.count]);
	bisect_init(&run.bisect, COMMITS, &rule);
	for (const char *at = (const char *)data, *end = at + size, *newline;
	     at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1) {
		struct bisect_step step;
		size_t ahead[COMMITS];
		bisect_run_state_read(&run, at, (size_t)(newline - at));
		bisect_next(&run.bisect, &step);
		bisect_ahead(&run.bisect, ahead, COMMITS);
	}
	bisect_run_done(&run);
	return 0;
}
