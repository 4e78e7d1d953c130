/* The secret that agents and coordinators of a job share, and how each proves to the other that it
 * knows it.
 *
 * A process without the token can neither join nor pose as the coordinator. What follows the
 * greeting is encrypted with keys made from the token (net/seal.h). */
#ifndef NET_TOKEN_H
#define NET_TOKEN_H

#include "base/err.h"
#include "proto/frame.h"

#define TOKEN_KEY_SIZE 32
#define TOKEN_TEXT_MAX 4096
#define TOKEN_VARIABLE "MUSTER_TOKEN"

/* A key made from the secret's text; the text itself is not kept. */
struct token {
	unsigned char key[TOKEN_KEY_SIZE];
};

/* From the secret's text, without trailing blanks and newlines. -EINVAL if that is empty, or longer
 * than TOKEN_TEXT_MAX. */
int token_from_text(const char *text, size_t len, struct token *ret_token, struct err *err);

/* From the file `path`, or if that is NULL from MUSTER_TOKEN. 1, 0 if there is none (neither is
 * given, or the variable is empty), or -errno. */
int token_load(const char *path, struct token *ret_token, struct err *err);

/* Takes MUSTER_TOKEN out of this process's environment, and out of what /proc shows of it. */
void token_hide(void);

void token_forget(struct token *token);

enum token_direction {
	TOKEN_OF_CONNECTING, /* the side that sent HELLO proves itself */
	TOKEN_OF_ACCEPTING,
};

/* The proof for one connection, valid for no other connection, run, role or direction. `challenge`
 * is the accepting side's nonce; hello has the other one. */
void token_prove(const struct token *token, enum token_direction direction,
		 const struct frame_hello *hello, const struct frame_challenge *challenge,
		 unsigned char ret_proof[FRAME_PROOF_SIZE]);

/* A key for what one side sends on one connection after the greeting, bound as the proofs are. */
void token_session_key(const struct token *token, enum token_direction direction,
		       const struct frame_hello *hello, const struct frame_challenge *challenge,
		       unsigned char ret_key[TOKEN_KEY_SIZE]);

/* Hides what one side sends before that, such as the run id, or shows it again. The hello's run id
 * does not count. At most one text for a connection and direction. */
void token_mask(const struct token *token, enum token_direction direction,
		const struct frame_hello *hello, const struct frame_challenge *challenge,
		void *data, size_t len);

/* Where there is no secret text: a key pair for one connection, */
struct token_pair {
	struct frame_key public;
	unsigned char secret[FRAME_KEY_SIZE];
};
void token_make_pair(struct token_pair *ret_pair);
void token_wipe_pair(struct token_pair *pair);

/* and the token that both sides, and no others, can make of their own pair and the other's public
 * key. `direction` is ours. -EINVAL: the peer's key is not one. */
int token_agree(const struct token_pair *own, const struct frame_key *theirs,
		enum token_direction direction, struct token *ret_token);

/* What a side vouches for with such a token: bound as the proofs are, and to both keys. */
void token_digest(const struct token *token, enum token_direction direction,
		  const struct frame_hello *hello, const struct frame_challenge *challenge,
		  unsigned char ret_digest[FRAME_PROOF_SIZE]);

/* In constant time. */
bool token_check(const struct token *token, enum token_direction direction,
		 const struct frame_hello *hello, const struct frame_challenge *challenge,
		 const unsigned char proof[FRAME_PROOF_SIZE]);

#endif
