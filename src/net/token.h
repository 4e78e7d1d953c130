/* The secret that agents and coordinators of a job share, and how each proves to the other that it
 * has it.
 *
 * A token keeps strangers out: whoever does not know it can neither join nor pose as the
 * coordinator. It does not protect from somebody on the path, who can change what is said
 * afterwards; nothing is encrypted.
 */
#ifndef NET_TOKEN_H
#define NET_TOKEN_H

#include "base/err.h"
#include "proto/frame.h"

#define TOKEN_KEY_SIZE 32
#define TOKEN_TEXT_MAX 4096
#define TOKEN_VARIABLE "MUSTER_TOKEN"

/* A key that was made from the secret's text; the text itself is not kept. */
struct token {
	unsigned char key[TOKEN_KEY_SIZE];
};

/* From the secret's text, without the blanks and newlines at its end. -EINVAL if that leaves
 * nothing, or more than TOKEN_TEXT_MAX. */
int token_from_text(const char *text, size_t len, struct token *ret_token, struct err *err);

/* From the file `path`, or if that is NULL from MUSTER_TOKEN. 1, 0 if there is none (neither is
 * given, or the variable is empty), or -errno. */
int token_load(const char *path, struct token *ret_token, struct err *err);

void token_forget(struct token *token);

enum token_direction {
	TOKEN_OF_CONNECTING, /* the one who sent HELLO proves it */
	TOKEN_OF_ACCEPTING,
};

/* The proof for one connection: it is good for no other one, run, role or direction. `challenge` is
 * the accepting side's nonce; hello has the other one. */
void token_prove(const struct token *token, enum token_direction direction,
		 const struct frame_hello *hello, const struct frame_challenge *challenge,
		 unsigned char ret_proof[FRAME_PROOF_SIZE]);

/* In constant time. */
bool token_check(const struct token *token, enum token_direction direction,
		 const struct frame_hello *hello, const struct frame_challenge *challenge,
		 const unsigned char proof[FRAME_PROOF_SIZE]);

#endif
