/* Any bytes as the lines that --resume of muster bisect reads, and then the search as far as it
 * goes without measuring. */
#include <string.h>

#include "base/mem.h"
#include "batch/bisect/hunt.h"

#define COMMITS 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[COMMITS] = { "a", "b", "c", "d", "e" };
	struct bisect_rule rule = { .confidence = 0.99, .min_change = 0.01, .max_pairs = 20 };
	struct hunt hunt = HUNT_INIT;
	hunt.commits = mem_alloc(COMMITS * sizeof(*hunt.commits));
	for (; hunt.count < COMMITS; hunt.count++)
		hunt.commits[hunt.count].full = mem_strdup(names[hunt.count]);
	bisect_init(&hunt.bisect, COMMITS, &rule);
	for (const char *at = (const char *)data, *end = at + size, *newline;
	     at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1) {
		struct bisect_step step;
		size_t ahead[COMMITS];
		hunt_state_read(&hunt, at, (size_t)(newline - at));
		bisect_next(&hunt.bisect, &step);
		bisect_ahead(&hunt.bisect, ahead, COMMITS);
	}
	hunt_done(&hunt);
	return 0;
}
