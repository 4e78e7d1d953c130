/* Whatever a template says: pids that are pids, text that can be printed. */
#include <stdlib.h>

#include "proto/warm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct warm_answer answer;
	if (warm_answer_parse((const char *)data, len, &answer) < 0)
		return 0;
	if (answer.count > WARM_BATCH_MAX)
		abort();
	for (size_t i = 0; i < answer.count; i++)
		if (answer.pids[i] <= 0)
			abort();
	for (size_t i = 0; answer.text[i]; i++)
		if (i >= WARM_TEXT_MAX - 1 || (unsigned char)answer.text[i] < ' ')
			abort();
	return 0;
}
