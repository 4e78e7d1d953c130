/* The wire between two hosts: how fast it answers, and how many bytes go through it.
 *
 * One side calls, the other serves one call. Both prove first that they belong to the same pair of
 * the same job, in the greeting of all links (net/greeting.h). The caller measures: the kernel's
 * shortest round trip, then the best stretch of a stream each way, because a host that is busy
 * reads and writes late, and that is not the wire's fault. Bytes and times are bounded. These
 * functions block until the deadline: they run in a child. */
#ifndef NET_WIRE_H
#define NET_WIRE_H

#include "net/addr.h"
#include "net/token.h"

#define WIRE_COMMAND "measure-wire"	     /* the word by which this program becomes the child */
#define WIRE_BYTES_MAX ((uint64_t)256 << 20) /* each way */
#define WIRE_TEXT_MAX 160

struct wire_spec {
	bool calls;
	uint32_t serial; /* both sides have the same, */
	uint64_t secret; /* and this */
	bool has_token;
	struct token token;
	uint16_t ms; /* of each stream */
	uint64_t deadline_ns;
	size_t addr_count; /* of the other side, in a call */
	struct addr addrs[MSG_PAIR_ADDRS_MAX];
};

struct wire_found {
	bool known;	     /* false: it could not be measured, which says nothing; `why` */
	uint64_t bandwidth;  /* bytes a second, of the slower direction; 0: no way through; `why` */
	uint64_t latency_ns; /* there and back; 0: not known */
	char why[WIRE_TEXT_MAX];
};

void wire_call(const struct wire_spec *spec, struct wire_found *ret_found);

/* Serves one call that comes to the listener; strangers are sent away. */
int wire_serve(int listener, const struct wire_spec *spec, struct err *err);

/* A listener for calls: on all addresses, at a port that the kernel chooses. */
int wire_listen(uint16_t *ret_port, struct err *err);

/* The child: a struct wire_spec comes through its standard input, the listener is descriptor 3, and
 * a struct wire_found goes to its standard output. */
int wire_main(void);

#endif
