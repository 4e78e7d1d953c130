/* The wire to another node, measured before a round: MSG_PAIR.
 *
 * A child does it (net/wire.h): this process's loop must not wait for anything. */
#ifndef RUN_CHECKS_MEASURING_H
#define RUN_CHECKS_MEASURING_H

#include "core/rounds/msg.h"
#include "net/token.h"
#include "net/wire.h"

struct event_base;
struct measuring;

typedef void measuring_fn(void *arg, const struct msg_paired *paired, const char *why);

/* Listens for calls of other nodes; ret_port is where. NULL: it cannot. */
struct measuring *measuring_new(struct event_base *base, const struct token *token,
				measuring_fn *on_done, void *arg, uint16_t *ret_port,
				struct err *err);
void measuring_free(struct measuring *measuring); /* ends the child; NULL is fine */

/* Ends an earlier one, which is not reported. on_done is never called from here. */
void measuring_start(struct measuring *measuring, const struct msg_pair *pair);
void measuring_stop(struct measuring *measuring);

#endif
