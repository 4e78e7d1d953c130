/* Bytes from a server into the client's decoder. Byte 0 is the query asked, byte 1 the number of
 * keys asked for; whatever comes, byte by byte or whole, gives the same, and what is accepted
 * encodes to the same bytes again. */
#include <stdlib.h>

#include "c10d_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct c10d_limits limits = {
	.key_max = 64, .value_max = 4096, .keys_max = 64, .message_max = 16384
};

static int parse_whole(enum c10d_query query, size_t count, const uint8_t *data, size_t size,
		       struct c10d_message *ret_reply)
{
	struct c10d_parser parser = C10D_PARSER_INIT;
	return c10d_parse_reply(&parser, &limits, query, count, data, size, ret_reply, NULL);
}

static int parse_bytewise(enum c10d_query query, size_t count, const uint8_t *data, size_t size,
			  struct c10d_message *ret_reply)
{
	struct c10d_parser parser = C10D_PARSER_INIT;
	for (size_t len = 0; len <= size; len++) {
		uint8_t *piece = malloc(len ? len : 1);
		memcpy(piece, data, len);
		int r = c10d_parse_reply(&parser, &limits, query, count, piece, len, ret_reply,
					 NULL);
		free(piece);
		if (r != 0)
			return r;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 512)
		return 0;
	enum c10d_query query = data[0] % C10D_QUERY_COUNT;
	size_t count = data[1] % 65;
	struct c10d_message whole, bytewise;
	int r = parse_whole(query, count, data + 2, size - 2, &whole);
	if (r != parse_bytewise(query, count, data + 2, size - 2, &bytewise))
		abort();
	if (r <= 0)
		return 0;
	if (whole.size != bytewise.size || whole.number != bytewise.number ||
	    whole.count != bytewise.count)
		abort();
	struct buf again = BUF_INIT;
	c10d_put_reply(&again, &whole);
	if (!bytes_eq(bytes_of(buf_data(&again), buf_len(&again)), bytes_of(data + 2, whole.size)))
		abort();
	buf_done(&again);
	return 0;
}
