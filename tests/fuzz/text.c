/* What workers wrote last, cleaned for a terminal: no control character but tab and newline is
 * left. */
#include <assert.h>
#include <stdint.h>

#include "run/tell/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	text_clean(&out, data, size);
	for (size_t i = 0; i < buf_len(&out); i++) {
		unsigned char c = buf_data(&out)[i];
		assert((c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n');
	}
	text_tail(buf_str(&out), 3);
	return 0;
}
