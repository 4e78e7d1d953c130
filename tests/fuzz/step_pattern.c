/* Any pattern and any line: no crash, no endless search, and a number that is found stands in the
 * line. The first byte says where the pattern ends. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/lines/step_pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The digits of `number`, perhaps with zeros before them, are part of the line. */
static bool stands_in(const uint8_t *line, size_t len, uint64_t number)
{
	char digits[32];
	int count = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	return memmem(line, len, digits, (size_t)count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	size_t len = MIN((size_t)data[0], size - 1);
	AUTO_FREE char *text = mem_strndup((const char *)data + 1, len);
	const uint8_t *line = data + 1 + len;
	size_t line_len = size - 1 - len;
	struct step_pattern pattern;
	struct err err = ERR_INIT;
	uint64_t step, total;
	if (step_pattern_parse(&pattern, text, &err) < 0) {
		assert(err.code && err.msg[0]);
		return 0;
	}
	if (step_pattern_find(&pattern, line, line_len, &step, &total))
		assert(stands_in(line, line_len, step));
	return 0;
}
