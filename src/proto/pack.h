/* One walk over a struct's fields that writes them as bytes or reads them from bytes, so that the
 * layout of a message is written down once:
 *
 *     static void pack_ballot(struct pack *p, struct ballot *ballot)
 *     {
 *         pack_u64(p, &ballot->epoch);
 *         pack_u64(p, &ballot->round);
 *     }
 *
 * Integers are little-endian and have no padding. Writing does not change the fields. A value that
 * does not fit, is missing or is out of its range makes the walk bad for good; do not use the
 * fields read before. */
#ifndef PROTO_PACK_H
#define PROTO_PACK_H

#include "base/bytes.h"

struct pack {
	unsigned char *at, *end;
	bool writing;
	bool bad;
};

static inline struct pack pack_writer(void *data, size_t room)
{
	return (struct pack){ .at = data, .end = (unsigned char *)data + room, .writing = true };
}

static inline struct pack pack_reader(const void *data, size_t len)
{
	unsigned char *begin = (unsigned char *)data; /* never written through: not `writing` */
	return (struct pack){ .at = begin, .end = begin + len };
}

/* Checks fields in both directions: a message that its receiver would reject is not sent. */
static inline void pack_require(struct pack *p, bool holds)
{
	p->bad |= !holds;
}

void pack_bytes(struct pack *p, void *bytes, size_t len);
void pack_u8(struct pack *p, uint8_t *value);
void pack_u16(struct pack *p, uint16_t *value);
void pack_u32(struct pack *p, uint32_t *value);
void pack_u64(struct pack *p, uint64_t *value);
void pack_i32(struct pack *p, int32_t *value); /* two's complement */
void pack_i64(struct pack *p, int64_t *value); /* likewise */
void pack_bool(struct pack *p, bool *value);   /* one byte, 0 or 1 */

/* A length byte and that many bytes, none of them NUL; `text` has room for `size` with its NUL. */
void pack_text(struct pack *p, char *text, size_t size);

/* Two bytes for the length, at most `max`, and the bytes. What is read points into the input. */
void pack_borrowed(struct pack *p, struct bytes *bytes, size_t max);

/* One byte below `count`. */
#define PACK_ENUM(p, field, count) \
	do { \
		uint8_t pack_byte_ = (uint8_t)(field); \
		pack_u8((p), &pack_byte_); \
		pack_require((p), pack_byte_ < (unsigned)(count)); \
		if (!(p)->writing && !(p)->bad) \
			(field) = pack_byte_; \
	} while (0)

#endif
