/* Sealed frames: what goes over a link after its greeting where there is a token.
 *
 * Type and body of each frame are encrypted and end in a tag (ChaCha20-Poly1305). Each direction of
 * each connection has its own key (token_session_key) and counts its frames, so a frame that was
 * changed, repeated, left out or moved on its way does not open. docs/PROTOCOL.md has every byte.
 *
 * The keys come from the token alone: a process that learns the token later can read what it
 * recorded. */
#ifndef NET_SEAL_H
#define NET_SEAL_H

#include "net/token.h"

struct seal {
	unsigned char key[TOKEN_KEY_SIZE];
	uint64_t count; /* of frames so far */
};

/* Both directions of one connection. */
struct session {
	struct seal in, out;
};

/* After both proofs; `accepting`: for the side that sent CHALLENGE. */
struct session *session_new(const struct token *token, const struct frame_hello *hello,
			    const struct frame_challenge *challenge, bool accepting);
void session_free(struct session *session); /* wipes the keys; NULL is fine */

/* Seals the frame that is the last `size` bytes of `out`; it becomes FRAME_TAG_SIZE longer. */
void seal_frame(struct seal *seal, struct buf *out, size_t size);

/* Opens the sealed frame at `data`, of `size` bytes (from frame_next): 1, and its content is in
 * `room`; or -EBADMSG: it is not the next one of this session. */
int seal_open(struct seal *seal, const unsigned char *data, size_t size,
	      unsigned char room[FRAME_BODY_MAX], struct frame *ret_frame, struct err *err);

#endif
