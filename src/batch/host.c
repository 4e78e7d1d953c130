#include "batch/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/json.h"
#include "proto/result.h"

#define FACT_MAX ((size_t)1 << 20)

static void put_text(struct buf *out, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	buf_printf(out, ",\"%s\":", key);
	json_quote(out, text);
}

static void put_file(struct buf *out, const char *key, const char *path)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	if (file_read(path, FACT_MAX, &data, NULL) < 0)
		return;
	AUTO_FREE char *text = buf_take_str(&data);
	text[strcspn(text, "\n")] = '\0';
	put_text(out, key, text);
}

static void put_cpu_model(struct buf *out)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	if (file_read("/proc/cpuinfo", FACT_MAX, &data, NULL) < 0)
		return;
	const char *line = strstr(buf_str(&data), "model name");
	const char *colon = line ? strchr(line, ':') : NULL;
	if (!colon)
		return;
	AUTO_FREE char *model = mem_strndup(colon + 2, strcspn(colon + 2, "\n"));
	put_text(out, "cpu", model);
}

static void put_topology(struct buf *out, const struct topology *topology)
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
	buf_printf(out, ",\"cpus\":%zu,\"cores\":%d,\"l3\":%d,\"nodes\":%d,\"packages\":%d",
		   topology->count, topology_allowed_cores(topology), l3s, nodes, packages);
	put_text(out, "allowed", buf_str(&list));
	if (topology->quota_milli)
		buf_printf(out, ",\"quota\":%.3f", (double)topology->quota_milli / 1000);
}

void host_header(struct buf *out, const struct topology *topology, uint64_t started_wall_ns,
		 int jobs)
{
	char started[CLOCK_ISO_MAX];
	struct utsname name;
	struct sysinfo info;
	clock_iso(started_wall_ns, started);
	buf_printf(out, "{\"muster\":\"batch\",\"v\":%d,\"version\":", RESULT_FORMAT);
	json_quote(out, MUSTER_VERSION);
	buf_printf(out, ",\"started\":\"%s\",\"jobs\":%d,\"host\":{\"name\":", started, jobs);
	bool named = uname(&name) == 0;
	json_quote(out, named ? name.nodename : "");
	put_text(out, "kernel", named ? name.release : NULL);
	put_text(out, "machine", named ? name.machine : NULL);
	put_cpu_model(out);
	put_topology(out, topology);
	if (sysinfo(&info) == 0)
		buf_printf(out, ",\"memory_kb\":%llu",
			   (unsigned long long)info.totalram * info.mem_unit / 1024);
	put_file(out, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
	put_file(out, "no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo");
	put_file(out, "boost", "/sys/devices/system/cpu/cpufreq/boost");
	put_file(out, "aslr", "/proc/sys/kernel/randomize_va_space");
	buf_append_str(out, "}}\n");
}
