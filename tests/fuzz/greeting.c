/* Bytes from a stranger into both sides of a greeting, without authentication, with a token and
 * with munge: nothing crashes, and state, answers and what is left over do not depend on how the
 * stream was cut. The first byte chooses the side, the authentication and the cuts. */
#include <stdlib.h>
#include <string.h>

#include "net/greeting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct greeting greeting;
	struct buf kept, out;
};

/* munge vouches for everything, and finds nothing vouched for. */
static void feed(struct run *run)
{
	bool asked;
	do {
		size_t used = greeting_feed(&run->greeting, buf_data(&run->kept),
					    buf_len(&run->kept), &run->out);
		buf_consume(&run->kept, used);
		asked = run->greeting.state == GREETING_ASKS;
		if (asked)
			greeting_answer(&run->greeting, run->greeting.ask == GREETING_SIGN,
					"MUNGE:AwQFAA==:", &run->out);
	} while (asked && buf_len(&run->kept) > 0);
}

static void converse(struct run *run, bool accepting, const struct link_self *self,
		     const uint8_t *data, size_t size, size_t step)
{
	run->kept = run->out = BUF_INIT;
	if (accepting)
		greeting_accept(&run->greeting, self);
	else
		greeting_connect(&run->greeting, self, ROLE_AGENT, &run->out);
	for (size_t at = 0; at < size && run->greeting.state < GREETING_KNOWN; at += step) {
		buf_append(&run->kept, data + at, MIN(step, size - at));
		feed(run);
	}
}

static void run_done(struct run *run)
{
	buf_done(&run->kept);
	buf_done(&run->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	struct token token = { "fixed" };
	const struct link_self self = {
		.run_id = "job",
		.token = data[0] & 1 ? &token : NULL,
		.munge = data[0] & 4 ? (struct munge_client *)&token
				     : NULL, /* only whether it is there */
	};
	bool accepting = data[0] & 2;
	struct run whole, split;
	converse(&whole, accepting, &self, data + 1, size - 1, size);
	converse(&split, accepting, &self, data + 1, size - 1, 1 + (size_t)(data[0] >> 3));
	if (whole.greeting.state != split.greeting.state ||
	    buf_len(&whole.out) != buf_len(&split.out) ||
	    strcmp(whole.greeting.why, split.greeting.why) != 0)
		abort();
	if (accepting && (self.token || self.munge) && whole.greeting.state == GREETING_KNOWN)
		abort(); /* a proof cannot be guessed */
	run_done(&whole);
	run_done(&split);
	return 0;
}
