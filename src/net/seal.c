#include "net/seal.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/pack.h"

#define LENGTH_SIZE 2 /* the part of a frame that stays readable, and is authenticated with it */

static_assert(TOKEN_KEY_SIZE == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "a key of the cipher");
static_assert(FRAME_TAG_SIZE == crypto_aead_chacha20poly1305_ietf_ABYTES, "a tag of the cipher");
static_assert(LENGTH_SIZE + 1 == FRAME_HEADER_SIZE, "the type is sealed with the body");

struct session *session_new(const struct token *token, const struct frame_hello *hello,
			    const struct frame_challenge *challenge, bool accepting)
{
	struct session *session = NEW(struct session);
	struct seal *of_connecting = accepting ? &session->in : &session->out;
	struct seal *of_accepting = accepting ? &session->out : &session->in;
	token_session_key(token, TOKEN_OF_CONNECTING, hello, challenge, of_connecting->key);
	token_session_key(token, TOKEN_OF_ACCEPTING, hello, challenge, of_accepting->key);
	return session;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	sodium_memzero(session, sizeof(*session));
	free(session);
}

/* A key seals each number once. */
static void next_nonce(struct seal *seal,
		       unsigned char ret_nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES])
{
	memset(ret_nonce, 0, crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
	struct pack p = pack_writer(ret_nonce, sizeof(seal->count));
	pack_u64(&p, &seal->count);
	seal->count++;
}

void seal_frame(struct seal *seal, struct buf *out, size_t size)
{
	assert(size >= FRAME_HEADER_SIZE &&
	       size + FRAME_TAG_SIZE <= FRAME_HEADER_SIZE + FRAME_BODY_MAX);
	unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
	next_nonce(seal, nonce);
	unsigned char *frame = buf_reserve(out, FRAME_TAG_SIZE) - size;
	uint16_t length = (uint16_t)(size - FRAME_HEADER_SIZE + FRAME_TAG_SIZE);
	struct pack p = pack_writer(frame, LENGTH_SIZE);
	pack_u16(&p, &length);
	crypto_aead_chacha20poly1305_ietf_encrypt(frame + LENGTH_SIZE, NULL, frame + LENGTH_SIZE,
						  size - LENGTH_SIZE, frame, LENGTH_SIZE, NULL,
						  nonce, seal->key);
	buf_commit(out, FRAME_TAG_SIZE);
}

int seal_open(struct seal *seal, const unsigned char *data, size_t size,
	      unsigned char room[FRAME_BODY_MAX], struct frame *ret_frame, struct err *err)
{
	unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
	next_nonce(seal, nonce);
	if (size < FRAME_HEADER_SIZE + FRAME_TAG_SIZE ||
	    crypto_aead_chacha20poly1305_ietf_decrypt(room, NULL, NULL, data + LENGTH_SIZE,
						      size - LENGTH_SIZE, data, LENGTH_SIZE, nonce,
						      seal->key) < 0)
		return err_set(err, EBADMSG,
			       "it was changed, repeated, left out or moved on its way, or not "
			       "sealed with the token");
	*ret_frame = (struct frame){ .type = room[0],
				     .body = bytes_of(room + 1,
						      size - FRAME_HEADER_SIZE - FRAME_TAG_SIZE) };
	return 1;
}
