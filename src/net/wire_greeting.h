/* The greeting on a wire that is measured (net/wire.h): its bytes, and the proofs that both sides
 * know the same pair of the same job. No sockets: this looks at bytes that have come whole.
 *
 *     served   wire_served_greeting
 *     caller   wire_caller_greeting   by wire_greeting_reply
 *     served   a proof                by wire_greeting_admit; the caller: wire_greeting_believes */
#ifndef NET_WIRE_GREETING_H
#define NET_WIRE_GREETING_H

#include "net/wire.h"

#define WIRE_MAGIC "MUSTWIR1"
#define WIRE_MAGIC_SIZE (sizeof(WIRE_MAGIC) - 1)
#define WIRE_NONCE_SIZE 16
#define WIRE_PROOF_SIZE 32

struct wire_served_greeting {
	char magic[WIRE_MAGIC_SIZE];
	unsigned char nonce[WIRE_NONCE_SIZE];
};

struct wire_caller_greeting {
	unsigned char nonce[WIRE_NONCE_SIZE];
	unsigned char proof[WIRE_PROOF_SIZE];
	unsigned char ms[2]; /* little end first; not part of the proof, but bounded */
};

/* The caller's answer, with this nonce. -EPROTO: the other side serves no wire. */
int wire_greeting_reply(const struct wire_spec *spec, const struct wire_served_greeting *theirs,
			const unsigned char nonce[WIRE_NONCE_SIZE],
			struct wire_caller_greeting *ret_ours);

/* The served side's last word, and how long its stream is to be. -EACCES: a stranger. */
int wire_greeting_admit(const struct wire_spec *spec, const struct wire_served_greeting *ours,
			const struct wire_caller_greeting *theirs,
			unsigned char ret_proof[WIRE_PROOF_SIZE], uint16_t *ret_ms);

/* Whether the caller takes that word. */
bool wire_greeting_believes(const struct wire_spec *spec, const struct wire_served_greeting *theirs,
			    const struct wire_caller_greeting *ours,
			    const unsigned char proof[WIRE_PROOF_SIZE]);

#endif
