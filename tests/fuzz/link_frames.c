/* Bytes from a peer: the opening, then frames. Nothing crashes, the frames do not depend on how the
 * stream was cut, and whatever decodes can be encoded again to the same. The first byte chooses the
 * cuts. */
#include <stdlib.h>
#include <string.h>

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
	    second.body.len > frame->body.len ||
	    memcmp(second.body.data, frame->body.data, second.body.len) != 0 ||
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
