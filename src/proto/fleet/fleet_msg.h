/* What the starter of a job on many hosts and the relays on these hosts say to each other, over the
 * standard input and output of ssh.
 *
 * A relay first prints FLEET_MAGIC: whatever a login shell printed before is not part of it. Then
 * both sides send frames: length of the body (u32), type (u8), host (u32). A frame downwards names
 * the host that it is for, or FLEET_ALL; a frame upwards the host that it comes from. Relays pass
 * on what is not theirs. Texts end in a NUL; a list of them has its count (u32) in front. */
#ifndef PROTO_FLEET_FLEET_MSG_H
#define PROTO_FLEET_FLEET_MSG_H

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "core/worker/exit_status.h"

#define FLEET_MAGIC "\nMUSTER FLEET 1\n"
#define FLEET_COMMAND "fleet-relay" /* `muster fleet-relay HOST` */
#define FLEET_ALL UINT32_MAX
#define FLEET_BODY_MAX ((size_t)8 << 20)
#define FLEET_HEAD_SIZE 9
#define FLEET_TEXTS_MAX 65536

/* What an agent finds open when a relay starts it. */
enum fleet_fd {
	FLEET_FD_TOKEN = 3,
	FLEET_FD_LIFELINE,
	FLEET_FD_REPORT, /* the report goes there: one of all agents' is shown */
};

/* The variable that tells an agent so; its value is the host's name. */
#define FLEET_VARIABLE "MUSTER_FLEET_HOST"

/* A report begins with a byte: whether its agent ends with the exit code of the job, as the
 * coordinator ruled, and whether the first cause is on its host. Where nothing is to be shown, the
 * byte is all. */
#define FLEET_REPORT_HERE 'h'	   /* ruled; the cause is here */
#define FLEET_REPORT_RULED 'r'	   /* ruled */
#define FLEET_REPORT_OWN 'o'	   /* the code speaks for this host alone */
#define FLEET_REPORT_ELSEWHERE 'e' /* from 0.2.0: ruled or own; the cause is not here */

enum fleet_type {
	/* downwards */
	FLEET_MSG_REACH,  /* index (u32), argv: start this, it connects to that host */
	FLEET_MSG_DROP,	  /* index (u32): end that connection */
	FLEET_MSG_PLACE,  /* slots (u32; 0: not said), node rank as text (-1: any), name */
	FLEET_MSG_START,  /* a struct fleet_start */
	FLEET_MSG_SIGNAL, /* number (u32) */
	FLEET_MSG_BEAT,	  /* nothing: the starter lives */
	/* upwards */
	FLEET_MSG_UP,	  /* version, "" or the address at which a coordinator can listen here */
	FLEET_MSG_DOWN,	  /* a host that was to be reached, or was reached, is not: why */
	FLEET_MSG_OUT,	  /* bytes */
	FLEET_MSG_ERR,	  /* bytes */
	FLEET_MSG_REPORT, /* bytes */
	FLEET_MSG_AGENT,  /* kind (u32) and value (u32) of its exit status */
	FLEET_TYPE_COUNT,
};

struct fleet_msg {
	enum fleet_type type;
	uint32_t host;
	const unsigned char *body; /* borrowed */
	size_t len;
};

/* What every agent is started with. */
struct fleet_start {
	struct strv place;   /* working directory, token, "run", "batch" or "doctor" */
	struct strv options; /* of that; each host's own come in front */
	struct strv command; /* of a run */
	struct strv env;     /* in addition to the host's own, and instead of it */
};

#define FLEET_START_INIT ((struct fleet_start){ .place = STRV_INIT })
void fleet_start_done(struct fleet_start *start);

/* ---- writing: each appends one frame ---- */

void fleet_put(struct buf *out, enum fleet_type type, uint32_t host, const void *body, size_t len);
void fleet_put_number(struct buf *out, enum fleet_type type, uint32_t host, uint32_t number);
void fleet_put_texts(struct buf *out, enum fleet_type type, uint32_t host, uint32_t number,
		     char *const *texts);
void fleet_put_agent(struct buf *out, uint32_t host, const struct exit_status *status);
/* -E2BIG if it is larger than a frame may be. */
int fleet_put_start(struct buf *out, const struct fleet_start *start, struct err *err);

/* ---- reading ---- */

/* Takes the next frame off the front: 1, 0 if it is not complete yet, -EPROTO if it is not one.
 * `ret_size` is what to consume when it has been dealt with. */
int fleet_next(const struct buf *in, struct fleet_msg *ret_msg, size_t *ret_size);

/* -EPROTO if the body is not what its type has. Texts are added to a list of the caller. */
int fleet_number(const struct fleet_msg *msg, uint32_t *ret_number);
int fleet_texts(const struct fleet_msg *msg, uint32_t *ret_number, struct strv *ret_texts);
int fleet_agent(const struct fleet_msg *msg, struct exit_status *ret_status);
int fleet_start_of(const struct fleet_msg *msg, struct fleet_start *ret_start);

#endif
