#include "net/token.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

static_assert(TOKEN_KEY_SIZE >= crypto_generichash_KEYBYTES_MIN &&
		      TOKEN_KEY_SIZE <= crypto_generichash_KEYBYTES_MAX,
	      "the key is one for BLAKE2b");
static_assert(FRAME_PROOF_SIZE == crypto_generichash_BYTES, "a proof is its hash");
static_assert(FRAME_KEY_SIZE == crypto_box_PUBLICKEYBYTES &&
		      FRAME_KEY_SIZE == crypto_box_SECRETKEYBYTES &&
		      FRAME_KEY_SIZE == crypto_scalarmult_BYTES,
	      "keys are those of X25519");

/* Each hash begins with its purpose, so that a proof cannot be used as anything else. */
static const char key_purpose[] = "muster token 1";
static const char pair_purpose[] = "muster keys 1";

int token_from_text(const char *text, size_t len, struct token *ret_token, struct err *err)
{
	while (len > 0 && strchr(" \t\r\n", text[len - 1]))
		len--;
	if (len == 0 || len > TOKEN_TEXT_MAX)
		return err_set(err, EINVAL,
			       len ? "the token is longer than %d bytes" : "the token is empty",
			       TOKEN_TEXT_MAX);
	if (sodium_init() < 0)
		return err_set(err, EIO, "libsodium cannot be used here");
	crypto_generichash_state state;
	crypto_generichash_init(&state, NULL, 0, TOKEN_KEY_SIZE);
	crypto_generichash_update(&state, (const unsigned char *)key_purpose, sizeof(key_purpose));
	crypto_generichash_update(&state, (const unsigned char *)text, len);
	crypto_generichash_final(&state, ret_token->key, TOKEN_KEY_SIZE);
	return 0;
}

int token_load(const char *path, struct token *ret_token, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	int r;
	if (path) {
		r = file_read(path, TOKEN_TEXT_MAX, &text, err);
		if (r == 0)
			r = token_from_text((const char *)buf_data(&text), buf_len(&text),
					    ret_token, err);
		if (buf_data(&text))
			sodium_memzero(buf_data(&text), buf_len(&text));
		return r < 0 ? err_wrap(err, "token file '%s'", path) : 1;
	}
	const char *variable = getenv(TOKEN_VARIABLE);
	if (!variable || !*variable)
		return 0;
	r = token_from_text(variable, strlen(variable), ret_token, err);
	return r < 0 ? err_wrap(err, TOKEN_VARIABLE) : 1;
}

void token_hide(void)
{
	char *variable = getenv(TOKEN_VARIABLE);
	if (variable)
		sodium_memzero(variable, strlen(variable));
	unsetenv(TOKEN_VARIABLE);
}

void token_forget(struct token *token)
{
	sodium_memzero(token, sizeof(*token));
}

/* A keyed hash over everything that tells a connection and a direction apart. */
static void derive(const struct token *token, const char *purpose, enum token_direction direction,
		   const struct frame_hello *hello, const struct frame_challenge *challenge,
		   unsigned char *ret_hash, size_t size)
{
	const unsigned char who[] = { (unsigned char)direction, (unsigned char)hello->role };
	crypto_generichash_state state;
	crypto_generichash_init(&state, token->key, sizeof(token->key), size);
	crypto_generichash_update(&state, (const unsigned char *)purpose, strlen(purpose) + 1);
	crypto_generichash_update(&state, who, sizeof(who));
	crypto_generichash_update(&state, hello->nonce, sizeof(hello->nonce));
	crypto_generichash_update(&state, challenge->nonce, sizeof(challenge->nonce));
	/* Last, because only this part has no fixed length. */
	crypto_generichash_update(&state, (const unsigned char *)hello->run_id,
				  strlen(hello->run_id));
	crypto_generichash_final(&state, ret_hash, size);
}

void token_prove(const struct token *token, enum token_direction direction,
		 const struct frame_hello *hello, const struct frame_challenge *challenge,
		 unsigned char ret_proof[FRAME_PROOF_SIZE])
{
	derive(token, "muster proof 1", direction, hello, challenge, ret_proof, FRAME_PROOF_SIZE);
}

void token_session_key(const struct token *token, enum token_direction direction,
		       const struct frame_hello *hello, const struct frame_challenge *challenge,
		       unsigned char ret_key[TOKEN_KEY_SIZE])
{
	derive(token, "muster session 1", direction, hello, challenge, ret_key, TOKEN_KEY_SIZE);
}

void token_mask(const struct token *token, enum token_direction direction,
		const struct frame_hello *hello, const struct frame_challenge *challenge,
		void *data, size_t len)
{
	static const unsigned char nonce[crypto_stream_chacha20_ietf_NONCEBYTES];
	unsigned char key[crypto_stream_chacha20_ietf_KEYBYTES];
	struct frame_hello bare = *hello;
	*bare.run_id = '\0';
	derive(token, "muster run 1", direction, &bare, challenge, key, sizeof(key));
	crypto_stream_chacha20_ietf_xor(data, data, len, nonce, key);
	sodium_memzero(key, sizeof(key));
}

void token_digest(const struct token *token, enum token_direction direction,
		  const struct frame_hello *hello, const struct frame_challenge *challenge,
		  unsigned char ret_digest[FRAME_PROOF_SIZE])
{
	derive(token, "muster munge 1", direction, hello, challenge, ret_digest, FRAME_PROOF_SIZE);
}

void token_make_pair(struct token_pair *ret_pair)
{
	int r UNUSED = sodium_init(); /* it has no other way to fail than to end the process */
	crypto_box_keypair(ret_pair->public.key, ret_pair->secret);
}

void token_wipe_pair(struct token_pair *pair)
{
	sodium_memzero(pair, sizeof(*pair));
}

int token_agree(const struct token_pair *own, const struct frame_key *theirs,
		enum token_direction direction, struct token *ret_token)
{
	unsigned char shared[crypto_scalarmult_BYTES];
	if (crypto_scalarmult(shared, own->secret, theirs->key) < 0)
		return -EINVAL;
	bool connecting = direction == TOKEN_OF_CONNECTING;
	const struct frame_key *first = connecting ? &own->public : theirs;
	const struct frame_key *second = connecting ? theirs : &own->public;
	crypto_generichash_state state;
	crypto_generichash_init(&state, NULL, 0, TOKEN_KEY_SIZE);
	crypto_generichash_update(&state, (const unsigned char *)pair_purpose,
				  sizeof(pair_purpose));
	crypto_generichash_update(&state, shared, sizeof(shared));
	crypto_generichash_update(&state, first->key, sizeof(first->key));
	crypto_generichash_update(&state, second->key, sizeof(second->key));
	crypto_generichash_final(&state, ret_token->key, TOKEN_KEY_SIZE);
	sodium_memzero(shared, sizeof(shared));
	return 0;
}

bool token_check(const struct token *token, enum token_direction direction,
		 const struct frame_hello *hello, const struct frame_challenge *challenge,
		 const unsigned char proof[FRAME_PROOF_SIZE])
{
	unsigned char expected[FRAME_PROOF_SIZE];
	token_prove(token, direction, hello, challenge, expected);
	return sodium_memcmp(expected, proof, FRAME_PROOF_SIZE) == 0;
}
