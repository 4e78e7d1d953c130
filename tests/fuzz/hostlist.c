/* Whatever a list of hosts says: no crash, as many names as it counts, none of them with a bracket
 * or a blank, and a few names are the first of all. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/host/hostlist.h"

#define NAMES_MAX 5000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = mem_strndup((const char *)data, size);
	AUTO(strv_done) struct strv few = STRV_INIT, all = STRV_INIT;
	uint32_t count, again;
	if (hostlist_expand(text, 3, &few, &count, NULL) < 0) {
		if (few.count)
			abort();
		return 0;
	}
	if (count < 1 || count > HOSTLIST_HOSTS_MAX || few.count != MIN(count, 3))
		abort();
	if (count > NAMES_MAX)
		return 0;
	/* a later name may be too long */
	if (hostlist_expand(text, count, &all, &again, NULL) < 0)
		return 0;
	if (again != count || all.count != count)
		abort();
	for (size_t i = 0; i < count; i++)
		if (strpbrk(all.items[i], "[] \t\r\n") ||
		    (i < few.count && strcmp(all.items[i], few.items[i]) != 0))
			abort();
	return 0;
}
