#include "net/wire_greeting.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

enum side { SIDE_CALLER, SIDE_SERVED };

/* They go over the wire as they are. */
static_assert(sizeof(struct wire_served_greeting) == WIRE_MAGIC_SIZE + WIRE_NONCE_SIZE,
	      "no padding");
static_assert(sizeof(struct wire_caller_greeting) == WIRE_NONCE_SIZE + WIRE_PROOF_SIZE + 2,
	      "no padding");

/* Little end first, on every host. */
static void add_number(crypto_generichash_state *state, uint64_t number, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		const unsigned char byte = (unsigned char)(number >> 8 * i);
		crypto_generichash_update(state, &byte, 1);
	}
}

static void prove(const struct wire_spec *spec, enum side side, const unsigned char *served_nonce,
		  const unsigned char *caller_nonce, unsigned char ret_proof[WIRE_PROOF_SIZE])
{
	static const struct token none;
	static const char purpose[] = "muster wire 1";
	const unsigned char who = (unsigned char)side;
	crypto_generichash_state state;
	crypto_generichash_init(&state, (spec->has_token ? &spec->token : &none)->key,
				TOKEN_KEY_SIZE, WIRE_PROOF_SIZE);
	crypto_generichash_update(&state, (const unsigned char *)purpose, sizeof(purpose));
	crypto_generichash_update(&state, &who, 1);
	add_number(&state, spec->serial, sizeof(spec->serial));
	add_number(&state, spec->secret, sizeof(spec->secret));
	crypto_generichash_update(&state, served_nonce, WIRE_NONCE_SIZE);
	crypto_generichash_update(&state, caller_nonce, WIRE_NONCE_SIZE);
	crypto_generichash_final(&state, ret_proof, WIRE_PROOF_SIZE);
}

static bool is_proof(const struct wire_spec *spec, enum side side,
		     const unsigned char *served_nonce, const unsigned char *caller_nonce,
		     const unsigned char proof[WIRE_PROOF_SIZE])
{
	unsigned char expected[WIRE_PROOF_SIZE];
	prove(spec, side, served_nonce, caller_nonce, expected);
	return sodium_memcmp(expected, proof, WIRE_PROOF_SIZE) == 0;
}

int wire_greeting_reply(const struct wire_spec *spec, const struct wire_served_greeting *theirs,
			const unsigned char nonce[WIRE_NONCE_SIZE],
			struct wire_caller_greeting *ret_ours)
{
	if (memcmp(theirs->magic, WIRE_MAGIC, WIRE_MAGIC_SIZE) != 0)
		return -EPROTO;
	memcpy(ret_ours->nonce, nonce, WIRE_NONCE_SIZE);
	prove(spec, SIDE_CALLER, theirs->nonce, nonce, ret_ours->proof);
	ret_ours->ms[0] = spec->ms & 0xff;
	ret_ours->ms[1] = (unsigned char)(spec->ms >> 8);
	return 0;
}

int wire_greeting_admit(const struct wire_spec *spec, const struct wire_served_greeting *ours,
			const struct wire_caller_greeting *theirs,
			unsigned char ret_proof[WIRE_PROOF_SIZE], uint16_t *ret_ms)
{
	if (!is_proof(spec, SIDE_CALLER, ours->nonce, theirs->nonce, theirs->proof))
		return -EACCES;
	prove(spec, SIDE_SERVED, ours->nonce, theirs->nonce, ret_proof);
	*ret_ms = (uint16_t)MIN(theirs->ms[0] | theirs->ms[1] << 8, MSG_PAIR_MS_MAX);
	return 0;
}

bool wire_greeting_believes(const struct wire_spec *spec, const struct wire_served_greeting *theirs,
			    const struct wire_caller_greeting *ours,
			    const unsigned char proof[WIRE_PROOF_SIZE])
{
	return is_proof(spec, SIDE_SERVED, theirs->nonce, ours->nonce, proof);
}
