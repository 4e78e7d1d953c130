#include "core/pmi/pair.h"

#include <assert.h>
#include <errno.h>

#define HEAD 4

static void put_length(struct buf *out, size_t len)
{
	assert(len <= UINT16_MAX);
	buf_append_char(out, (char)(len & 0xff));
	buf_append_char(out, (char)(len >> 8));
}

void pair_put(struct buf *out, struct bytes key, struct bytes value)
{
	put_length(out, key.len);
	put_length(out, value.len);
	buf_append(out, key.data, key.len);
	buf_append(out, value.data, value.len);
}

int pair_next(struct bytes *rest, struct bytes *ret_key, struct bytes *ret_value)
{
	if (rest->len == 0)
		return 0;
	if (rest->len < HEAD)
		return -EPROTO;
	const unsigned char *at = rest->data;
	size_t key_len = at[0] | (size_t)at[1] << 8, value_len = at[2] | (size_t)at[3] << 8;
	if (rest->len - HEAD < key_len + value_len)
		return -EPROTO;
	*ret_key = bytes_of(at + HEAD, key_len);
	*ret_value = bytes_of(at + HEAD + key_len, value_len);
	size_t taken = HEAD + key_len + value_len;
	*rest = bytes_of(at + taken, rest->len - taken);
	return 1;
}
