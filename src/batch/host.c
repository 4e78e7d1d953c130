#include "batch/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/json_out.h"
#include "proto/result.h"

#define FACT_MAX ((size_t)1 << 20)

static void put_file(struct json_out *out, const char *key, const char *path)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	if (file_read(path, FACT_MAX, &data, NULL) < 0)
		return;
	AUTO_FREE char *text = buf_take_str(&data);
	text[strcspn(text, "\n")] = '\0';
	json_out_text_if(out, key, text);
}

static void put_cpu_model(struct json_out *out)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	if (file_read("/proc/cpuinfo", FACT_MAX, &data, NULL) < 0)
		return;
	const char *line = strstr(buf_str(&data), "model name");
	const char *colon = line ? strchr(line, ':') : NULL;
	if (!colon)
		return;
	AUTO_FREE char *model = mem_strndup(colon + 2, strcspn(colon + 2, "\n"));
	json_out_text_if(out, "cpu", model);
}

static void put_topology(struct json_out *out, const struct topology *topology)
{
	AUTO(buf_done) struct buf list = BUF_INIT;
	struct cpuset allowed = topology_allowed(topology);
	int l3s = 0, nodes = 0, packages = 0;
	for (size_t i = 0; i < topology->count; i++) {
		const struct topo_cpu *cpu = &topology->cpus[i], *last = i ? cpu - 1 : NULL;
		l3s += !last || last->l3 != cpu->l3;
		nodes += !last || last->node != cpu->node;
		packages += !last || last->package != cpu->package;
	}
	cpuset_format(&allowed, &list);
	json_out_int(out, "cpus", (int64_t)topology->count);
	json_out_int(out, "cores", topology_allowed_cores(topology));
	json_out_int(out, "l3", l3s);
	json_out_int(out, "nodes", nodes);
	json_out_int(out, "packages", packages);
	json_out_text_if(out, "allowed", buf_str(&list));
	if (topology->quota_milli)
		json_out_real(out, "quota", (double)topology->quota_milli / 1000);
}

void host_header(struct buf *line, const struct topology *topology, uint64_t started_wall_ns,
		 int jobs)
{
	char started[CLOCK_ISO_MAX];
	struct utsname name;
	struct sysinfo info;
	clock_iso(started_wall_ns, started);
	struct json_out json = JSON_OUT(line), *out = &json;
	json_out_open(out, NULL, '{');
	json_out_text(out, "muster", "batch");
	json_out_int(out, "v", RESULT_FORMAT);
	json_out_text(out, "version", MUSTER_VERSION);
	json_out_text(out, "started", started);
	json_out_int(out, "jobs", jobs);
	json_out_open(out, "host", '{');
	bool named = uname(&name) == 0;
	json_out_text(out, "name", named ? name.nodename : "");
	json_out_text_if(out, "kernel", named ? name.release : NULL);
	json_out_text_if(out, "machine", named ? name.machine : NULL);
	put_cpu_model(out);
	put_topology(out, topology);
	if (sysinfo(&info) == 0)
		json_out_int(out, "memory_kb", (int64_t)(info.totalram * info.mem_unit / 1024));
	put_file(out, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
	put_file(out, "no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo");
	put_file(out, "boost", "/sys/devices/system/cpu/cpufreq/boost");
	put_file(out, "aslr", "/proc/sys/kernel/randomize_va_space");
	json_out_close(out, '}');
	json_out_close(out, '}');
	buf_append_char(line, '\n');
}
