/* Whatever arrives at a relay or a starter: no crash, and frames that are accepted lie in the
 * input. */
#include <stdlib.h>

#include "proto/fleet/fleet_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all_ways(const struct fleet_msg *msg)
{
	uint32_t number;
	struct exit_status status;
	AUTO(strv_done) struct strv texts = STRV_INIT;
	AUTO(fleet_start_done) struct fleet_start start = FLEET_START_INIT;
	fleet_number(msg, &number);
	fleet_texts(msg, &number, &texts);
	if (fleet_agent(msg, &status) == 0 && status.value > UINT8_MAX)
		abort();
	if (fleet_start_of(msg, &start) == 0 && start.place.count != 3)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf in = BUF_INIT;
	buf_append(&in, data, size);
	struct fleet_msg msg;
	size_t used;
	while (fleet_next(&in, &msg, &used) > 0) {
		if (used != FLEET_HEAD_SIZE + msg.len || used > buf_len(&in))
			abort();
		read_all_ways(&msg);
		buf_consume(&in, used);
	}
	return 0;
}
