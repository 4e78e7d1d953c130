/* Whatever the log of a launcher says: no crash, and nothing that no process can end with. */
#include <stdlib.h>

#include "base/mem.h"
#include "proto/launcher_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = mem_strndup((const char *)data, size);
	struct launcher_log log;
	launcher_log_read(text, &log);
	if (log.rank < -1 || log.status.value < 0 || log.status.value > 255)
		abort();
	return 0;
}
