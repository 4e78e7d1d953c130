/* Whatever a discovery program prints: no crash, and what is accepted can be written and read
 * again. */
#include <stdlib.h>
#include <string.h>

#include "proto/discovery_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct discovery_line line, again;
	if (discovery_line_parse((const char *)data, size, &line, NULL) < 0)
		return 0;
	if (line.epoch < 1 || line.epoch > INT64_MAX || !discovery_coordinator_ok(line.coordinator))
		abort();
	AUTO(buf_done) struct buf text = BUF_INIT;
	discovery_line_format(&text, &line);
	if (discovery_line_parse(buf_str(&text), buf_len(&text) - 1, &again, NULL) < 0 ||
	    strcmp(again.coordinator, line.coordinator) != 0 || again.epoch != line.epoch ||
	    again.until_ns != line.until_ns || again.past.epoch != line.past.epoch ||
	    again.past.ruling != line.past.ruling)
		abort();
	return 0;
}
