#include "proto/frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/rounds/msg.h"
#include "proto/pack.h"

#define MAGIC "MUSTER"
#define MAGIC_SIZE (sizeof(MAGIC) - 1)
static_assert(MAGIC_SIZE + 2 == FRAME_OPENING_SIZE, "the magic, a major and a minor version");

/* ---- the opening ---- */

void frame_put_opening(struct buf *out)
{
	buf_append(out, MAGIC, MAGIC_SIZE);
	buf_append_char(out, FRAME_MAJOR);
	buf_append_char(out, FRAME_MINOR);
}

/* How foreign peers begin. */
static const struct {
	const char *bytes;
	size_t len;
	bool http;
	const char *who;
} strangers[] = {
	{ "GET ", 4, true, "an HTTP client" },
	{ "HEAD ", 5, true, "an HTTP client" },
	{ "POST ", 5, true, "an HTTP client" },
	{ "PUT ", 4, true, "an HTTP client" },
	{ "OPTIONS ", 8, true, "an HTTP client" },
	{ "HTTP/", 5, false, "an HTTP server" },
	{ "\0\xce\xf7\x85\x3c", 5, false,
	  "a PyTorch TCPStore client (torchrun, or a worker with a wrong MASTER_PORT)" },
	{ "\x16\x03", 2, false, "a TLS client" },
	{ "SSH-", 4, false, "an SSH peer" },
};

static int find_stranger(const void *data, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(strangers); i++)
		if (len >= strangers[i].len &&
		    memcmp(data, strangers[i].bytes, strangers[i].len) == 0)
			return (int)i;
	return -1;
}

uint8_t frame_opening_minor(const void *data)
{
	return ((const unsigned char *)data)[MAGIC_SIZE + 1];
}

uint32_t frame_can(uint8_t minor)
{
	static const struct {
		uint8_t since;
		uint32_t can;
	} rows[] = {
		{ 1, CAN_ASK },	    { 4, CAN_PLAN },   { 7, CAN_STREAM },    { 9, CAN_PACE },
		{ 12, CAN_ARRIVE }, { 15, CAN_SIGNS }, { 16, CAN_EXCHANGE },
	};
	uint32_t can = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (minor >= rows[i].since)
			can |= rows[i].can;
	return can;
}

int frame_check_opening(const void *data, size_t len, struct err *err)
{
	if (len < FRAME_OPENING_SIZE)
		return 0;
	const unsigned char *bytes = data;
	if (memcmp(bytes, MAGIC, MAGIC_SIZE) != 0) {
		int stranger = find_stranger(bytes, FRAME_OPENING_SIZE);
		return err_set(err, EPROTO,
			       "it does not speak muster's protocol; it seems to be %s",
			       stranger < 0 ? "another program" : strangers[stranger].who);
	}
	unsigned major = bytes[MAGIC_SIZE], minor = bytes[MAGIC_SIZE + 1];
	if (major != FRAME_MAJOR)
		return err_set(
			err, EPROTONOSUPPORT,
			"it speaks version %u.%u of the protocol, this muster (%s) speaks %u.%u",
			major, minor, MUSTER_VERSION, FRAME_MAJOR, FRAME_MINOR);
	return 1;
}

bool frame_is_http(const void *data, size_t len)
{
	int stranger = find_stranger(data, len);
	return stranger >= 0 && strangers[stranger].http;
}

/* ---- frames ---- */

int frame_next(const void *data, size_t len, struct frame *ret_frame, size_t *ret_size,
	       struct err *err)
{
	if (len < FRAME_HEADER_SIZE)
		return 0;
	struct pack p = pack_reader(data, len);
	uint16_t body_len = 0;
	uint8_t type = 0;
	pack_u16(&p, &body_len);
	pack_u8(&p, &type);
	if (body_len > FRAME_BODY_MAX)
		return err_set(err, EMSGSIZE, "a frame of %u bytes; the limit is %u", body_len,
			       FRAME_BODY_MAX);
	if (len - FRAME_HEADER_SIZE < body_len)
		return 0;
	*ret_frame = (struct frame){ .type = type, .body = bytes_of(p.at, body_len) };
	*ret_size = FRAME_HEADER_SIZE + (size_t)body_len;
	return 1;
}

void frame_put(struct buf *out, uint8_t type, const void *body, size_t len)
{
	assert(len <= FRAME_BODY_MAX);
	unsigned char header[FRAME_HEADER_SIZE];
	struct pack p = pack_writer(header, sizeof(header));
	pack_u16(&p, &(uint16_t){ (uint16_t)len });
	pack_u8(&p, &type);
	buf_append(out, header, sizeof(header));
	buf_append(out, body, len);
}

/* ---- the bodies: each described once ---- */

typedef void walk_fn(struct pack *p, void *body);

static void walk_hello(struct pack *p, void *body)
{
	struct frame_hello *hello = body;
	PACK_ENUM(p, hello->role, ROLE_COUNT);
	PACK_ENUM(p, hello->auth, AUTH_COUNT);
	pack_bytes(p, hello->nonce, sizeof(hello->nonce));
	pack_text(p, hello->version, sizeof(hello->version));
	pack_text(p, hello->run_id, sizeof(hello->run_id));
}

static void walk_challenge(struct pack *p, void *body)
{
	struct frame_challenge *challenge = body;
	pack_bytes(p, challenge->nonce, sizeof(challenge->nonce));
}

static void walk_proof(struct pack *p, void *body)
{
	struct frame_proof *proof = body;
	pack_bytes(p, proof->proof, sizeof(proof->proof));
	if (p->writing ? !proof->run_len : p->at == p->end)
		return;
	pack_u8(p, &proof->run_len);
	pack_bytes(p, proof->run, proof->run_len);
}

static void walk_welcome(struct pack *p, void *body)
{
	struct frame_welcome *welcome = body;
	pack_bytes(p, welcome->proof, sizeof(welcome->proof));
	pack_text(p, welcome->version, sizeof(welcome->version));
}

static void walk_key(struct pack *p, void *body)
{
	struct frame_key *key = body;
	pack_bytes(p, key->key, sizeof(key->key));
}

static void walk_credential(struct pack *p, void *body)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789+/=:-";
	struct frame_credential *credential = body;
	uint16_t len = p->writing ? (uint16_t)strlen(credential->text) : 0;
	pack_u16(p, &len);
	pack_require(p, len > 0 && len < sizeof(credential->text));
	if (!p->bad)
		pack_bytes(p, credential->text, len);
	pack_require(p, !p->bad && strspn(credential->text, letters) == len);
}

static void walk_refused(struct pack *p, void *body)
{
	struct frame_refused *refused = body;
	PACK_ENUM(p, refused->reason, REFUSAL_COUNT);
	pack_text(p, refused->text, sizeof(refused->text));
}

static void walk_standing(struct pack *p, void *body)
{
	struct frame_standing *standing = body;
	pack_bool(p, &standing->coordinates);
	pack_u64(p, &standing->ballot.epoch);
	pack_u64(p, &standing->ballot.round);
	pack_require(p,
		     standing->ballot.epoch <= BALLOT_MAX && standing->ballot.round <= BALLOT_MAX);
}

static void put(struct buf *out, enum frame_type type, walk_fn *walk, const void *body)
{
	unsigned char bytes[FRAME_BODY_MAX];
	struct pack p = pack_writer(bytes, sizeof(bytes));
	walk(&p, (void *)body);
	assert(!p.bad); /* all texts are bounded by their arrays */
	frame_put(out, (uint8_t)type, bytes, (size_t)(p.at - bytes));
}

static int get(const struct frame *frame, enum frame_type type, walk_fn *walk, void *ret_body,
	       size_t size, struct err *err)
{
	union {
		struct frame_hello hello;
		struct frame_proof proof;
		struct frame_welcome welcome;
		struct frame_refused refused;
		struct frame_standing standing;
		struct frame_credential credential;
	} body;
	assert(size <= sizeof(body));
	memset(&body, 0, sizeof(body));
	if (frame->type != type)
		return err_set(err, EPROTO, "%s where %s was expected",
			       frame_type_name(frame->type), frame_type_name((uint8_t)type));
	struct pack p = pack_reader(frame->body.data, frame->body.len);
	walk(&p, &body);
	if (p.bad)
		return err_set(err, EPROTO, "%s with an invalid value",
			       frame_type_name(frame->type));
	memcpy(ret_body, &body, size);
	return 0;
}

void frame_put_hello(struct buf *out, const struct frame_hello *hello)
{
	put(out, FRAME_HELLO, walk_hello, hello);
}

int frame_get_hello(const struct frame *frame, struct frame_hello *ret_hello, struct err *err)
{
	return get(frame, FRAME_HELLO, walk_hello, ret_hello, sizeof(*ret_hello), err);
}

void frame_put_challenge(struct buf *out, const struct frame_challenge *challenge)
{
	put(out, FRAME_CHALLENGE, walk_challenge, challenge);
}

int frame_get_challenge(const struct frame *frame, struct frame_challenge *ret_challenge,
			struct err *err)
{
	return get(frame, FRAME_CHALLENGE, walk_challenge, ret_challenge, sizeof(*ret_challenge),
		   err);
}

void frame_put_proof(struct buf *out, const struct frame_proof *proof)
{
	put(out, FRAME_PROOF, walk_proof, proof);
}

int frame_get_proof(const struct frame *frame, struct frame_proof *ret_proof, struct err *err)
{
	return get(frame, FRAME_PROOF, walk_proof, ret_proof, sizeof(*ret_proof), err);
}

void frame_put_welcome(struct buf *out, const struct frame_welcome *welcome)
{
	put(out, FRAME_WELCOME, walk_welcome, welcome);
}

int frame_get_welcome(const struct frame *frame, struct frame_welcome *ret_welcome, struct err *err)
{
	return get(frame, FRAME_WELCOME, walk_welcome, ret_welcome, sizeof(*ret_welcome), err);
}

void frame_put_key(struct buf *out, const struct frame_key *key)
{
	put(out, FRAME_KEY, walk_key, key);
}

int frame_get_key(const struct frame *frame, struct frame_key *ret_key, struct err *err)
{
	return get(frame, FRAME_KEY, walk_key, ret_key, sizeof(*ret_key), err);
}

void frame_put_credential(struct buf *out, const struct frame_credential *credential)
{
	put(out, FRAME_CREDENTIAL, walk_credential, credential);
}

int frame_get_credential(const struct frame *frame, struct frame_credential *ret_credential,
			 struct err *err)
{
	return get(frame, FRAME_CREDENTIAL, walk_credential, ret_credential,
		   sizeof(*ret_credential), err);
}

void frame_put_refused(struct buf *out, enum frame_refusal reason, const char *text)
{
	struct frame_refused refused = { .reason = reason };
	snprintf(refused.text, sizeof(refused.text), "%s", text);
	put(out, FRAME_REFUSED, walk_refused, &refused);
}

int frame_get_refused(const struct frame *frame, struct frame_refused *ret_refused, struct err *err)
{
	return get(frame, FRAME_REFUSED, walk_refused, ret_refused, sizeof(*ret_refused), err);
}

void frame_put_standing(struct buf *out, const struct frame_standing *standing)
{
	put(out, FRAME_STANDING, walk_standing, standing);
}

int frame_get_standing(const struct frame *frame, struct frame_standing *ret_standing,
		       struct err *err)
{
	return get(frame, FRAME_STANDING, walk_standing, ret_standing, sizeof(*ret_standing), err);
}

const char *frame_type_name(uint8_t type)
{
	static const char *const names[] = {
		[FRAME_HELLO] = "HELLO",     [FRAME_CHALLENGE] = "CHALLENGE",
		[FRAME_PROOF] = "PROOF",     [FRAME_WELCOME] = "WELCOME",
		[FRAME_REFUSED] = "REFUSED", [FRAME_STANDING] = "STANDING",
		[FRAME_KEY] = "KEY",	     [FRAME_CREDENTIAL] = "CREDENTIAL",
	};
	if (type >= FRAME_MESSAGE)
		return "a message";
	return type < ARRAY_LEN(names) && names[type] ? names[type] : "an unknown frame";
}
