/* Bytes from a peer: the opening, then frames. Nothing crashes, the frames do not depend on how the
 * stream was cut, and whatever decodes can be encoded again to the same; bodies of earlier and
 * later minor versions end sooner or later. Sealed, each opens to the same again, unless a bit was
 * changed; none opens that was not sealed. The first byte chooses the cuts. */
#include <stdlib.h>
#include <string.h>

#include "net/seal.h"
#include "proto/round_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(const struct frame *frame)
{
	struct node_info node, again_node;
	struct msg msg, again;
	if (round_msg_decode(frame, &node, &msg, NULL) < 0)
		return;
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	struct frame second;
	size_t taken;
	if (round_msg_encode(&msg, &bytes, NULL) < 0 ||
	    frame_next(buf_data(&bytes), buf_len(&bytes), &second, &taken, NULL) != 1 ||
	    memcmp(second.body.data, frame->body.data, MIN(second.body.len, frame->body.len)) !=
		    0 ||
	    round_msg_decode(&second, &again_node, &again, NULL) < 0)
		abort();
}

static void check_greeting(const struct frame *frame)
{
	struct frame_hello hello;
	struct frame_challenge challenge;
	struct frame_proof proof;
	struct frame_welcome welcome;
	struct frame_refused refused;
	struct frame_standing standing;
	if (frame_get_hello(frame, &hello, NULL) == 0) {
		AUTO(buf_done) struct buf bytes = BUF_INIT;
		frame_put_hello(&bytes, &hello);
	}
	frame_get_challenge(frame, &challenge, NULL);
	frame_get_proof(frame, &proof, NULL);
	frame_get_welcome(frame, &welcome, NULL);
	frame_get_refused(frame, &refused, NULL);
	frame_get_standing(frame, &standing, NULL);
}

static int open_frame(const unsigned char *data, size_t size)
{
	struct seal seal = { .key = "fixed" };
	unsigned char room[FRAME_BODY_MAX];
	struct frame frame;
	return seal_open(&seal, data, size, room, &frame, NULL);
}

static void check_sealed(const struct frame *frame, const uint8_t *data, size_t size)
{
	if (open_frame(data, size) > 0)
		abort(); /* no input can guess a tag */
	if (frame->body.len > FRAME_BODY_MAX - FRAME_TAG_SIZE)
		return;
	AUTO(buf_done) struct buf bytes = BUF_INIT;
	struct seal out = { .key = "fixed" }, in = out;
	unsigned char room[FRAME_BODY_MAX];
	struct frame sealed, again;
	size_t taken;
	frame_put(&bytes, frame->type, frame->body.data, frame->body.len);
	seal_frame(&out, &bytes, buf_len(&bytes));
	if (frame_next(buf_data(&bytes), buf_len(&bytes), &sealed, &taken, NULL) != 1 ||
	    seal_open(&in, buf_data(&bytes), taken, room, &again, NULL) != 1 ||
	    again.type != frame->type || again.body.len != frame->body.len ||
	    memcmp(again.body.data, frame->body.data, again.body.len) != 0)
		abort();
	size_t at = data[size - 1] % taken;
	buf_data(&bytes)[at] ^= (unsigned char)(1 << (data[0] % 8));
	if (open_frame(buf_data(&bytes), taken) > 0)
		abort();
}

/* The number of whole frames, or -1 - it when the stream broke behind them. */
static int count_frames(const uint8_t *data, size_t size, size_t step)
{
	int count = 0;
	for (size_t at = 0, end = MIN(step, size);; end = MIN(end + step, size)) {
		struct frame frame;
		size_t taken;
		int r;
		while ((r = frame_next(data + at, end - at, &frame, &taken, NULL)) > 0) {
			check_greeting(&frame);
			check_message(&frame);
			check_sealed(&frame, data + at, taken);
			at += taken;
			count++;
		}
		if (r < 0)
			return -1 - count;
		if (end == size)
			return count;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	size_t step = 1 + (size_t)data[0];
	data++;
	size--;
	struct err err = ERR_INIT;
	int r = frame_check_opening(data, size, &err);
	if ((r == 0) != (size < FRAME_OPENING_SIZE) || (r < 0 && !*err.msg))
		abort();
	if (r <= 0)
		return 0;
	data += FRAME_OPENING_SIZE;
	size -= FRAME_OPENING_SIZE;
	if (count_frames(data, size, size + 1) != count_frames(data, size, step))
		abort();
	return 0;
}
