/* Option values that are small languages of their own: whatever is typed, no crash, and a plan
 * never leaves the CPUs that are ours. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/host/binding.h"
#include "core/lines/stream_map.h"
#include "core/lines/named_template.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void try_binding(const char *text)
{
	struct binding_request request;
	struct binding plan[3];
	struct cpuset cpus = CPUSET_INIT;
	for (int i = 0; i < 12; i += 1 + i % 2)
		cpuset_add(&cpus, i);
	AUTO(topology_done) struct topology topology = TOPOLOGY_INIT;
	topology_flat(&cpus, &topology);
	if (binding_parse(text, &request, NULL) < 0 || request.mode == BINDING_NONE ||
	    binding_plan(&topology, &request, 3, plan, NULL) < 0)
		return;
	for (int i = 0; i < 3; i++) {
		cpuset_subtract(&plan[i].cpus, &cpus);
		if (!cpuset_empty(&plan[i].cpus))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	AUTO_FREE char *text = mem_strndup((const char *)data, size);
	uint8_t masks[12];
	bool chosen[12];
	AUTO(strv_done) struct strv filters = STRV_INIT;
	AUTO(buf_done) struct buf out = BUF_INIT;
	const struct template_name names[] = { { "rank", "3" }, { "host", "here" } };
	stream_map_parse(text, ARRAY_LEN(masks), masks, NULL);
	stream_ranks_parse(text, ARRAY_LEN(chosen), chosen, NULL);
	stream_filters_parse(text, &filters);
	template_render(text, names, ARRAY_LEN(names), &out);
	try_binding(text);
	return 0;
}
