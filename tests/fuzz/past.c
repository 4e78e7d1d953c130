/* The log directory of a job: whatever its files say, the page gets JSON. The input is pieces
 * between NULs: the first byte of each says what it is. */
#include <stdlib.h>
#include <string.h>

#include "proto/dash/past.h"
#include "proto/json_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct past *past, size_t *hosts, const uint8_t *piece, size_t len)
{
	struct bytes rest = bytes_of(piece + 1, len - 1);
	if (*piece == 'h' && *hosts < 8)
		*hosts += past_add_host(past) == 0;
	else if (*piece == 'r')
		past_take_report(past, rest);
	else if (*piece == 'l')
		past_take_log(past, rest.len % *hosts, len % 3, len % 4, (enum log_stream)(len % 2),
			      rest);
	else if (*piece == 'e')
		past_end_attempt(past, len % 3);
	else
		past_take_event(past, bytes_of(piece, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct past *past = past_new("logs");
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_value root;
	size_t hosts = past_add_host(past) == 0;
	for (size_t at = 0; at < size;) {
		const uint8_t *end = memchr(data + at, 0, size - at);
		size_t len = (end ? (size_t)(end - data) : size) - at;
		if (len)
			take(past, &hosts, data + at, len);
		at += len + 1;
	}
	past_put(past, &text);
	if (json_value_parse((const char *)buf_data(&text), buf_len(&text), &root) < 0)
		abort();
	past_free(past);
	return 0;
}
