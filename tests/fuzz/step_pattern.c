/* Any pattern and any line: no crash, and a number that is found stands in the line. The first byte
 * says where the pattern ends. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/step_pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The digits of `number`, perhaps with zeros before them, are part of the line. */
static bool stands_in(const uint8_t *line, size_t len, uint64_t number)
{
	char digits[32];
	int count = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	return memmem(line, len, digits, (size_t)count);
}

/* regcomp() copies what x{9} repeats: braces in braces, or great numbers, take any amount of
 * memory. Who writes them has asked for it; the fuzzer has not. */
static bool is_huge(const char *text)
{
	const char *brace = strchr(text, '{');
	return brace && (strchr(brace + 1, '{') || strspn(brace + 1, "0123456789,") > 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	size_t len = MIN((size_t)data[0], size - 1);
	AUTO_FREE char *text = mem_strndup((const char *)data + 1, len);
	const uint8_t *line = data + 1 + len;
	size_t line_len = size - 1 - len;
	struct step_pattern *pattern;
	struct err err = ERR_INIT;
	uint64_t step, total;
	if (is_huge(text))
		return 0;
	if (step_pattern_new(text, &pattern, &err) < 0) {
		assert(err.code && err.msg[0]);
		return 0;
	}
	if (step_pattern_find(pattern, (const char *)line, line_len, &step, &total))
		assert(stands_in(line, line_len, step));
	step_pattern_free(pattern);
	return 0;
}
