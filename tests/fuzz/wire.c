/* The greeting on a wire that is measured. Bytes from a stranger into both sides: nothing crashes,
 * only the right magic gets an answer, and nobody guesses a proof. Two nodes that know the same
 * pair understand each other with whatever nonces and times, and a changed bit is noticed by one of
 * them. Byte 0 chooses the token and who differs, bytes 1 and 2 are the time of the stream, 3 and 4
 * the bit that changes; the rest is what comes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/wire_greeting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All that both sides say, as it goes over the wire. */
struct talk {
	struct wire_served_greeting served;
	struct wire_caller_greeting caller;
	unsigned char proof[WIRE_PROOF_SIZE];
};

static struct wire_spec spec_of(bool token, uint16_t ms)
{
	struct wire_spec spec = { .serial = 7, .secret = 12345, .has_token = token, .ms = ms };
	memcpy(spec.token.key, "fixed", sizeof("fixed"));
	return spec;
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_stranger(const struct wire_spec *spec, const struct talk *stranger)
{
	static const unsigned char nonce[WIRE_NONCE_SIZE] = "our nonce";
	struct wire_served_greeting served = { .magic = WIRE_MAGIC, .nonce = "another" };
	struct wire_caller_greeting caller;
	unsigned char proof[WIRE_PROOF_SIZE];
	uint16_t ms;
	int r = wire_greeting_reply(spec, &stranger->served, nonce, &caller);
	bool magic = memcmp(stranger->served.magic, WIRE_MAGIC, WIRE_MAGIC_SIZE) == 0;
	check(r == (magic ? 0 : -EPROTO));
	check(r < 0 || !wire_greeting_believes(spec, &stranger->served, &caller, stranger->proof));
	check(wire_greeting_admit(spec, &served, &stranger->caller, proof, &ms) == -EACCES);
}

/* What two nodes of one pair say, with nonces from outside. */
static struct talk check_pair(const struct wire_spec *spec, const struct talk *outside)
{
	struct talk talk = *outside;
	uint16_t ms;
	memcpy(talk.served.magic, WIRE_MAGIC, WIRE_MAGIC_SIZE);
	check(wire_greeting_reply(spec, &talk.served, outside->caller.nonce, &talk.caller) == 0);
	check(wire_greeting_admit(spec, &talk.served, &talk.caller, talk.proof, &ms) == 0);
	check(ms == MIN(spec->ms, MSG_PAIR_MS_MAX));
	check(wire_greeting_believes(spec, &talk.served, &talk.caller, talk.proof));
	/* Who knows nothing cannot send a proof back to where it came from. */
	check(!wire_greeting_believes(spec, &talk.served, &talk.caller, talk.caller.proof));
	return talk;
}

/* Somebody of another job, with another token, or of another pair. */
static void check_other(const struct wire_spec *spec, unsigned which, const struct talk *talk)
{
	struct wire_spec other = *spec;
	unsigned char proof[WIRE_PROOF_SIZE];
	uint16_t ms;
	other.serial += which == 0;
	other.secret += which == 1;
	other.has_token ^= which == 2;
	other.token.key[0] ^= which == 3;
	if (which == 3 && !spec->has_token)
		return;
	check(wire_greeting_admit(&other, &talk->served, &talk->caller, proof, &ms) == -EACCES);
	check(!wire_greeting_believes(&other, &talk->served, &talk->caller, talk->proof));
}

static void check_change(const struct wire_spec *spec, const struct talk *talk, size_t bit)
{
	struct talk changed = *talk;
	struct wire_caller_greeting caller;
	unsigned char proof[WIRE_PROOF_SIZE];
	uint16_t ms;
	size_t at = bit / 8 % sizeof(changed), of_ms = offsetof(struct talk, caller.ms);
	((unsigned char *)&changed)[at] ^= (unsigned char)(1 << bit % 8);
	if (at < offsetof(struct talk, caller)) {
		int r = wire_greeting_reply(spec, &changed.served, talk->caller.nonce, &caller);
		check(r == (at < WIRE_MAGIC_SIZE ? -EPROTO : 0));
		check(r < 0 ||
		      wire_greeting_admit(spec, &talk->served, &caller, proof, &ms) == -EACCES);
	} else if (at < offsetof(struct talk, proof)) {
		bool is_ms = at >= of_ms && at < of_ms + sizeof(changed.caller.ms);
		int r = wire_greeting_admit(spec, &talk->served, &changed.caller, proof, &ms);
		check(r == (is_ms ? 0 : -EACCES));
		check(r < 0 || ms <= MSG_PAIR_MS_MAX);
	} else {
		check(!wire_greeting_believes(spec, &talk->served, &talk->caller, changed.proof));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 5)
		return 0;
	const struct wire_spec spec = spec_of(data[0] & 1, (uint16_t)(data[1] | data[2] << 8));
	struct talk outside = { 0 };
	memcpy(&outside, data + 5, MIN(size - 5, sizeof(outside)));
	check_stranger(&spec, &outside);
	const struct talk talk = check_pair(&spec, &outside);
	check_other(&spec, data[0] >> 1 & 3, &talk);
	check_change(&spec, &talk, (size_t)(data[3] | data[4] << 8));
	return 0;
}
