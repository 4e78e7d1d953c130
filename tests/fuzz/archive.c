/* Any bytes as a file of a history: the first line is a key, the rest are summaries. */
#include <string.h>

#include "batch/archive/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct archive_entry entry = { .path = NULL };
	const char *text = (const char *)data;
	const char *newline = size ? memchr(text, '\n', size) : NULL;
	int64_t bytes = -1;
	if (newline && archive_read_key(&entry, text, (size_t)(newline - text), &bytes) == 0)
		archive_read_points(&entry, newline + 1, size - (size_t)(newline + 1 - text));
	archive_entry_done(&entry);
	return 0;
}
