/* Whatever /etc/hosts of a pod contains: no crash, and a name that is made from it is the first
 * pod's. */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/mem.h"
#include "core/host/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = mem_strndup((const char *)data, size);
	AUTO(strv_done) struct strv env = STRV_INIT;
	struct engine_settings settings = ENGINE_SETTINGS_INIT;
	struct engine_asked asked = {
		.min_nodes = 2, .max_nodes = 4, .node_rank = -1, .hosts_file = text
	};
	env_set(&env, "JOB_COMPLETION_INDEX", "3");
	env_set(&env, "HOSTNAME", "pod-3");
	if (engine_detect(strv_argv(&env), &asked, &settings, NULL) < 0 ||
	    strncmp(settings.master_addr, "pod-0", strlen("pod-0")) != 0 ||
	    strpbrk(settings.master_addr, " \t\r\n"))
		abort();
	engine_settings_done(&settings);
	return 0;
}
