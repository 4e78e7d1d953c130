/* Whatever packet comes to the watchdog socket: a scope that is accepted is a C string within
 * bounds. */
#include <stdlib.h>
#include <string.h>

#include "proto/watch_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct watch_msg *msg = calloc(1, sizeof(*msg) + 1);
	char scope[WATCH_MSG_SCOPE_MAX + 1];
	memcpy(msg, data, MIN(size, sizeof(*msg) + 1));
	if (watch_msg_check(msg, size, scope) &&
	    (strlen(scope) != size - WATCH_MSG_HEAD || msg->version != WATCH_MSG_VERSION))
		abort();
	free(msg);
	return 0;
}
