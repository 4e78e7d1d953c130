/* The greeting at the start of a link: openings, HELLO, and proofs where there is a token or munge.
 * The same for the side that connects and the side that accepts.
 *
 * Bytes in, bytes out, no socket: greeting_feed() takes the input and appends the output. The
 * result does not depend on how the stream is cut. A connecting greeting ends in GREETING_KNOWN
 * when the peer has sent WELCOME. An accepting one ends there when the peer has proved itself, and
 * the caller decides: greeting_welcome() or greeting_refuse().
 *
 * With munge it stops in GREETING_ASKS: the caller asks munge what `ask` says, gives the
 * answer to greeting_answer(), and then feeds the bytes that were left over. */
#ifndef NET_GREETING_H
#define NET_GREETING_H

#include "base/buf.h"
#include "net/peer.h"
#include "net/seal.h"

enum greeting_state {
	GREETING_OPENING, /* waits for the peer's opening */
	GREETING_HELLO,	  /* accepting: waits for HELLO */
	GREETING_ANSWER,  /* connecting: waits for CHALLENGE or WELCOME */
	GREETING_KEY,	  /* munge: waits for KEY */
	/* munge: waits for CREDENTIAL, then for PROOF or WELCOME */
	GREETING_CREDENTIAL,
	GREETING_PROOF,	  /* accepting: waits for PROOF */
	GREETING_WELCOME, /* connecting: has sent PROOF, waits for WELCOME */
	GREETING_ASKS,	  /* munge: waits for munge */
	GREETING_KNOWN,
	GREETING_FAILED, /* `end` and `why` say how; send what was appended last */
};

enum greeting_ask { GREETING_SIGN, GREETING_CHECK };

struct greeting {
	const struct link_self *self;
	bool accepting;
	enum greeting_state state;
	uint8_t minor;		  /* the peer's minor version, once its opening is here */
	struct frame_hello hello; /* of the connecting side: ours or the peer's */
	struct frame_challenge challenge;
	/* Of munge. */
	enum greeting_ask ask; /* of ASKS */
	struct token_pair pair;
	struct token agreed;
	unsigned char digest[FRAME_PROOF_SIZE]; /* to sign, or to find in the credential */
	struct frame_credential credential;	/* the peer's; then ours */
	enum link_end_kind end;			/* of FAILED */
	char why[FRAME_TEXT_MAX];		/* the reason; "it" is the peer */
};

/* The connecting side speaks first; the accepting side sends nothing before that. */
void greeting_connect(struct greeting *greeting, const struct link_self *self, enum frame_role role,
		      struct buf *out);
void greeting_accept(struct greeting *greeting, const struct link_self *self);

/* Returns how many bytes it used. The rest is half a frame or, once it is KNOWN, belongs to the
 * link. */
size_t greeting_feed(struct greeting *greeting, const void *data, size_t len, struct buf *out);

/* ASKS: munge's answer; not `ok`: `text` says why. Otherwise it is the credential that was
 * asked for, if one was. */
void greeting_answer(struct greeting *greeting, bool ok, const char *text, struct buf *out);

/* Frees it and wipes its keys. */
void greeting_free(struct greeting *greeting);

/* KNOWN: the keys for what follows WELCOME; NULL without authentication. The caller owns them. */
struct session *greeting_session(const struct greeting *greeting);

/* Accepting and KNOWN: the decision. */
void greeting_welcome(const struct greeting *greeting, struct buf *out);
void greeting_refuse(struct greeting *greeting, enum frame_refusal reason, const char *text,
		     struct buf *out);

#endif
