#include "run/kernel_said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/worker/symptoms.h"
#include "sys/cgroup_find.h"

#define TEXT_MAX ((size_t)1 << 20)
#define KEPT_MAX ((size_t)4096) /* bytes of the log */
#define READ_ALL 3		/* of syslog(2) */
#define SIZE_BUFFER 10
#define SLACK_NS NS_PER_S /* printk's clock is not quite ours */

/* The number behind `name` in this file of the group; 0: none. */
static uint64_t count_in(const struct cgroup_place *place, const char *file, const char *name)
{
	AUTO(buf_done) struct buf path = BUF_INIT, text = BUF_INIT;
	unsigned long long value;
	buf_printf(&path, "%s/%s", place->own ? place->own : place->mount, file);
	const char *at = file_read(buf_str(&path), TEXT_MAX, &text, NULL) < 0
				 ? NULL
				 : strstr(buf_str(&text), name);
	return at && sscanf(at + strlen(name), "%llu", &value) == 1 ? value : 0;
}

uint64_t kernel_oom_kills(void)
{
	AUTO(buf_done) struct buf membership = BUF_INIT, mounts = BUF_INIT;
	AUTO(cgroup_place_done) struct cgroup_place v2 = CGROUP_PLACE_INIT, v1 = CGROUP_PLACE_INIT;
	uint64_t count = 0;
	if (file_read("/proc/self/cgroup", TEXT_MAX, &membership, NULL) < 0 ||
	    file_read("/proc/self/mountinfo", TEXT_MAX, &mounts, NULL) < 0)
		return 0;
	if (cgroup_find(CGROUP_V2, buf_str(&mounts), buf_str(&membership), &v2))
		count = count_in(&v2, "memory.events", "oom_kill ");
	if (cgroup_find(CGROUP_V1_MEMORY, buf_str(&mounts), buf_str(&membership), &v1))
		count = MAX(count, count_in(&v1, "memory.oom_control", "oom_kill "));
	return count;
}

/* "<6>[ 1632.151957] text" */
static bool is_told(const char *line, uint64_t since_ns)
{
	double s;
	const char *bracket = strchr(line, '[');
	if (!bracket || sscanf(bracket + 1, "%lf", &s) != 1 || s < 0 || s > 1e10 ||
	    (uint64_t)(s * (double)NS_PER_S) + SLACK_NS < since_ns)
		return false;
	return strstr(line, "Killed process ") || symptom_find(kernel_symptoms, line);
}

char *kernel_log_since(uint64_t since_ns)
{
	AUTO(buf_done) struct buf kept = BUF_INIT;
	int size = klogctl(SIZE_BUFFER, NULL, 0);
	if (size <= 0)
		return NULL;
	AUTO_FREE char *text = mem_alloc((size_t)size + 1);
	int n = klogctl(READ_ALL, text, size);
	if (n < 0)
		return NULL;
	text[n] = '\0';
	const char *rest = text;
	size_t len;
	for (const char *at; (at = str_split(&rest, '\n', &len));) {
		AUTO_FREE char *line = mem_strndup(at, len);
		if (buf_len(&kept) < KEPT_MAX && is_told(line, since_ns))
			buf_printf(&kept, "%s\n", line);
	}
	return buf_len(&kept) ? buf_take_str(&kept) : NULL;
}
