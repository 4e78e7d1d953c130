/* How two muster processes talk: what goes over a connection between an agent and a coordinator.
 *
 *     both ways, first    "MUSTER" major minor
 *     both ways, then     frames: length (2 bytes) type (1 byte) body (length bytes)
 *
 *     connecting side                          accepting side
 *     HELLO   who I am, for which run
 *                                              CHALLENGE  prove that you know the token
 *     PROOF   I do
 *                                              WELCOME    so do I
 *                                              STANDING   (to a probe) whether it coordinates
 *     messages of core/rounds/msg.h, both ways     or, at any point before, REFUSED with the reason
 *
 * Without authentication there is no CHALLENGE and no PROOF; with it, what follows WELCOME is
 * sealed (net/seal.h). With munge instead of a token, KEY follows HELLO and CHALLENGE, and
 * CREDENTIAL comes before PROOF and WELCOME. The opening and REFUSED are the same in all versions,
 * so that a peer of another version understands the refusal. docs/PROTOCOL.md has every byte.
 *
 * Pure functions on bytes.
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "core/rounds/finder.h"

#define FRAME_MAJOR 2	     /* other majors do not understand each other */
#define FRAME_MINOR 16	     /* later ones add bytes at the end of bodies, and types of frames */
#define FRAME_MINOR_HIDES 14 /* of those that send no run id in clear, if they have a token */

#define FRAME_OPENING_SIZE 8
#define FRAME_HEADER_SIZE 3
#define FRAME_BODY_MAX 2048
#define FRAME_TAG_SIZE 16 /* by which a sealed frame is longer */

#define FRAME_NONCE_SIZE 16
#define FRAME_PROOF_SIZE 32
#define FRAME_VERSION_MAX 32 /* with the NUL, as all of these */
#define FRAME_RUN_ID_MAX 256
#define FRAME_TEXT_MAX 256
#define FRAME_KEY_SIZE 32
#define FRAME_CREDENTIAL_MAX 1024

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_CHALLENGE = 2,
	FRAME_PROOF = 3,
	FRAME_WELCOME = 4,
	FRAME_REFUSED = 5,
	FRAME_STANDING = 6,
	FRAME_KEY = 7,
	FRAME_CREDENTIAL = 8,
	FRAME_MESSAGE = 16, /* and above: see round_msg.c */
	FRAME_WORK = 64,    /* a piece of the stream of proto/deal/work_msg.h */
};

enum frame_role {
	ROLE_AGENT, /* wants to take part */
	ROLE_PROBE, /* asks whether there is a coordinator */
	ROLE_ASKER, /* has a question to all hosts of the job */
	ROLE_COUNT,
};

/* How both sides prove that they belong to the job. */
enum frame_auth {
	AUTH_NONE,
	AUTH_TOKEN, /* both know a secret */
	AUTH_MUNGE, /* both belong to the same user */
	AUTH_COUNT,
};

struct frame_hello {
	enum frame_role role;
	enum frame_auth auth;
	unsigned char nonce[FRAME_NONCE_SIZE];
	char version[FRAME_VERSION_MAX]; /* of muster, for log lines */
	char run_id[FRAME_RUN_ID_MAX];
};

struct frame_challenge {
	unsigned char nonce[FRAME_NONCE_SIZE];
};

struct frame_proof {
	unsigned char proof[FRAME_PROOF_SIZE];
	uint8_t run_len; /* since FRAME_MINOR_HIDES: the run id, as nobody else can read it */
	unsigned char run[FRAME_RUN_ID_MAX - 1];
};

struct frame_welcome {
	unsigned char proof[FRAME_PROOF_SIZE]; /* zeros without authentication */
	char version[FRAME_VERSION_MAX];
};

/* A public key that its sender made for this connection. */
struct frame_key {
	unsigned char key[FRAME_KEY_SIZE];
};

/* Of munge: letters, digits and +/=:- */
struct frame_credential {
	char text[FRAME_CREDENTIAL_MAX];
};

enum frame_refusal {
	REFUSAL_VERSION, /* another major version */
	REFUSAL_RUN_ID,	 /* for another job */
	REFUSAL_TOKEN,	 /* token or credential: mismatched, missing, or not expected */
	REFUSAL_STANDBY, /* to an agent: there is no coordinator here (yet) */
	REFUSAL_BROKEN,	 /* the peer sent an invalid frame */
	REFUSAL_BUSY,	 /* too many connections */
	REFUSAL_COUNT,
};

struct frame_refused {
	enum frame_refusal reason;
	char text[FRAME_TEXT_MAX]; /* for the user at the other end */
};

/* The answer to a probe. */
struct frame_standing {
	bool coordinates;
	struct ballot ballot; /* of the round it formed, if any */
};

/* A whole frame; the body points into the input. */
struct frame {
	uint8_t type;
	struct bytes body;
};

/* The opening of this version. */
void frame_put_opening(struct buf *out);

/* Checks the peer's opening at `data`: 1 (it takes FRAME_OPENING_SIZE bytes), 0 (more bytes are
 * needed), -EPROTO (foreign: `err` says what it seems to be) or -EPROTONOSUPPORT (another major
 * version, named in `err`). */
int frame_check_opening(const void *data, size_t len, struct err *err);

/* The minor version in an opening that was checked. */
uint8_t frame_opening_minor(const void *data);

/* What a peer of this minor version understands: CAN_ASK and so on. */
uint32_t frame_can(uint8_t minor);

/* Whether the foreign bytes are an HTTP request: such a client understands an answer. */
bool frame_is_http(const void *data, size_t len);

/* Splits off the frame at `data`: 1, 0 (more bytes are needed) or -EMSGSIZE (longer than any of
 * ours). *ret_size is its total size. */
int frame_next(const void *data, size_t len, struct frame *ret_frame, size_t *ret_size,
	       struct err *err);

void frame_put_hello(struct buf *out, const struct frame_hello *hello);
void frame_put_challenge(struct buf *out, const struct frame_challenge *challenge);
void frame_put_proof(struct buf *out, const struct frame_proof *proof);
void frame_put_welcome(struct buf *out, const struct frame_welcome *welcome);
void frame_put_key(struct buf *out, const struct frame_key *key);
void frame_put_credential(struct buf *out, const struct frame_credential *credential);
void frame_put_refused(struct buf *out, enum frame_refusal reason, const char *text);
void frame_put_standing(struct buf *out, const struct frame_standing *standing);

/* Each takes a frame of its type; -EPROTO if the body is invalid. */
int frame_get_hello(const struct frame *frame, struct frame_hello *ret_hello, struct err *err);
int frame_get_challenge(const struct frame *frame, struct frame_challenge *ret_challenge,
			struct err *err);
int frame_get_proof(const struct frame *frame, struct frame_proof *ret_proof, struct err *err);
int frame_get_welcome(const struct frame *frame, struct frame_welcome *ret_welcome,
		      struct err *err);
int frame_get_key(const struct frame *frame, struct frame_key *ret_key, struct err *err);
int frame_get_credential(const struct frame *frame, struct frame_credential *ret_credential,
			 struct err *err);
int frame_get_refused(const struct frame *frame, struct frame_refused *ret_refused,
		      struct err *err);
int frame_get_standing(const struct frame *frame, struct frame_standing *ret_standing,
		       struct err *err);

/* For other codecs: appends a whole frame; the body has at most FRAME_BODY_MAX bytes, and
 * FRAME_TAG_SIZE fewer if it may be sealed. */
void frame_put(struct buf *out, uint8_t type, const void *body, size_t len);

const char *frame_type_name(uint8_t type);

#endif
