/* Whatever comes through the pipe from the program: no crash, and an event has a name. */
#include <stdlib.h>

#include "proto/event_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event_in event = EVENT_IN_INIT;
	if (event_in_parse((const char *)data, size, &event) == 0 && buf_len(&event.name) == 0)
		abort();
	event_in_done(&event);
	return 0;
}
