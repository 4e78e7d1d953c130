/* Whatever a host file or --hosts contains: no crash, and every name that is accepted is one that
 * neither ssh nor a shell could take for something else. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/fleet/hostfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct hostfile *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct host_entry *entry = &list->items[i];
		if (!*entry->name || *entry->name == '-' || entry->slots > HOST_SLOTS_MAX ||
		    strpbrk(entry->name, " \t\r\n,'\"`$;&|<>()\\/=#*?[]~!{}"))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(hostfile_done) struct hostfile file = HOSTFILE_INIT, text = HOSTFILE_INIT;
	AUTO_FREE char *string = mem_strndup((const char *)data, size);
	hostfile_add_text(&file, (const char *)data, size, NULL);
	hostfile_add_list(&text, string, NULL);
	check(&file);
	check(&text);
	return 0;
}
