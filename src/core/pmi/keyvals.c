#include "core/pmi/keyvals.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define HEAD 4

static void put_length(struct buf *out, size_t len)
{
	assert(len <= UINT16_MAX);
	buf_append_char(out, (char)(len & 0xff));
	buf_append_char(out, (char)(len >> 8));
}

void keyval_put(struct buf *out, struct bytes key, struct bytes value)
{
	put_length(out, key.len);
	put_length(out, value.len);
	buf_append(out, key.data, key.len);
	buf_append(out, value.data, value.len);
}

int keyval_next(struct bytes *rest, struct bytes *ret_key, struct bytes *ret_value)
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

void keyvals_done(struct keyvals *keyvals)
{
	map_foreach(entry, &keyvals->map) free(entry->value);
	map_done(&keyvals->map);
	*keyvals = (struct keyvals){ .size = 0 };
}

bool keyvals_get(const struct keyvals *keyvals, struct bytes key, struct bytes *ret_value)
{
	const struct bytes *found = map_get(&keyvals->map, key.data, key.len);
	if (found)
		*ret_value = *found;
	return found;
}

bool keyvals_unset(struct keyvals *keyvals, struct bytes key)
{
	struct bytes *old = map_remove(&keyvals->map, key.data, key.len);
	if (!old)
		return false;
	keyvals->size -= key.len + old->len;
	free(old);
	return true;
}

bool keyvals_set(struct keyvals *keyvals, struct bytes key, struct bytes value)
{
	struct bytes old = { .len = 0 };
	size_t freed = keyvals_get(keyvals, key, &old) ? key.len + old.len : 0;
	if (keyvals->size - freed + key.len + value.len > KEYVALS_SIZE_MAX)
		return false;
	struct bytes *copy = mem_alloc(sizeof(*copy) + value.len);
	if (value.len)
		memcpy(copy + 1, value.data, value.len);
	*copy = bytes_of(copy + 1, value.len);
	keyvals_unset(keyvals, key);
	map_put(&keyvals->map, key.data, key.len, copy);
	keyvals->size += key.len + value.len;
	return true;
}

void keyvals_take(struct keyvals *keyvals, struct bytes run)
{
	struct bytes key, value;
	while (keyval_next(&run, &key, &value) > 0 && keyvals_set(keyvals, key, value))
		;
}

bool keyvals_want(struct keyvals *keyvals, const struct want *want, struct bytes *ret_value)
{
	struct bytes run = want->pair, key, value, old;
	if (keyval_next(&run, &key, &value) <= 0)
		return false;
	switch (want->kind) {
	case WANT_KEY:
		return keyvals_get(keyvals, key, ret_value);
	case WANT_SET:
		return !keyvals_get(keyvals, key, &old) && keyvals_set(keyvals, key, value);
	case WANT_UNSET:
		return keyvals_unset(keyvals, key);
	case WANT_REST:
	case WANT_KIND_COUNT:
		break;
	}
	return false;
}
