#include "proto/pack.h"

#include <string.h>

void pack_bytes(struct pack *p, void *bytes, size_t len)
{
	if (p->bad || (size_t)(p->end - p->at) < len) {
		p->bad = true;
		return;
	}
	if (p->writing)
		memcpy(p->at, bytes, len);
	else
		memcpy(bytes, p->at, len);
	p->at += len;
}

static uint64_t pack_uint(struct pack *p, uint64_t value, size_t size)
{
	unsigned char bytes[sizeof(value)];
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	pack_bytes(p, bytes, size);
	value = 0;
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

void pack_u8(struct pack *p, uint8_t *value)
{
	uint8_t walked = (uint8_t)pack_uint(p, *value, sizeof(*value));
	if (!p->writing)
		*value = walked;
}

void pack_u16(struct pack *p, uint16_t *value)
{
	uint16_t walked = (uint16_t)pack_uint(p, *value, sizeof(*value));
	if (!p->writing)
		*value = walked;
}

void pack_u32(struct pack *p, uint32_t *value)
{
	uint32_t walked = (uint32_t)pack_uint(p, *value, sizeof(*value));
	if (!p->writing)
		*value = walked;
}

void pack_u64(struct pack *p, uint64_t *value)
{
	uint64_t walked = pack_uint(p, *value, sizeof(*value));
	if (!p->writing)
		*value = walked;
}

void pack_i32(struct pack *p, int32_t *value)
{
	uint32_t bits = (uint32_t)*value;
	pack_u32(p, &bits);
	if (!p->writing)
		*value = (int32_t)bits;
}

void pack_i64(struct pack *p, int64_t *value)
{
	uint64_t bits = (uint64_t)*value;
	pack_u64(p, &bits);
	if (!p->writing)
		*value = (int64_t)bits;
}

void pack_bool(struct pack *p, bool *value)
{
	uint8_t byte = *value;
	pack_u8(p, &byte);
	pack_require(p, byte <= 1);
	if (!p->writing)
		*value = byte == 1;
}

void pack_text(struct pack *p, char *text, size_t size)
{
	size_t used = p->writing ? strnlen(text, size) : 0;
	pack_require(p, used < size && used <= UINT8_MAX);
	uint8_t len = (uint8_t)used;
	pack_u8(p, &len);
	pack_require(p, len < size);
	pack_bytes(p, text, p->bad ? 0 : len);
	if (p->writing)
		return;
	pack_require(p, p->bad || memchr(text, '\0', len) == NULL);
	text[p->bad ? 0 : len] = '\0';
}

void pack_borrowed(struct pack *p, struct bytes *bytes, size_t max)
{
	uint16_t len = (uint16_t)MIN(bytes->len, (size_t)UINT16_MAX);
	pack_require(p, !p->writing || bytes->len <= max);
	pack_u16(p, &len);
	pack_require(p, len <= max && (size_t)(p->end - p->at) >= len);
	if (p->bad)
		return;
	if (p->writing && len > 0)
		memcpy(p->at, bytes->data, len);
	else if (!p->writing)
		*bytes = bytes_of(p->at, len);
	p->at += len;
}
