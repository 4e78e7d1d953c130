#include "sys/perf_count.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	uint32_t type;
	uint64_t config;
	bool user_only; /* the kernel's part depends on interrupts, not on the program */
	const char *name;
} events[] = {
	[PERF_INSTRUCTIONS] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true,
				"instructions" },
	[PERF_TASK_CLOCK] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false, "task clock" },
};
static_assert(ARRAY_LEN(events) == PERF_EVENT_COUNT, "every event needs a row");

int perf_count_open(pid_t starter, enum perf_event event, struct err *err)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = events[event].type,
		.config = events[event].config,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
		.exclude_kernel = events[event].user_only,
		.exclude_hv = events[event].user_only,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long fd = syscall(SYS_perf_event_open, &attr, starter, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "cannot count %s: %m", events[event].name);
	return (int)fd;
}

int perf_count_read(int fd, struct perf_reading *ret_reading, struct err *err)
{
	static_assert(sizeof(*ret_reading) == 3 * sizeof(uint64_t), "as the kernel writes it");
	ssize_t len = read(fd, ret_reading, sizeof(*ret_reading));
	if (len != (ssize_t)sizeof(*ret_reading))
		return err_set(err, len < 0 ? errno : EIO, "cannot read the counter: %m");
	return 0;
}

bool perf_count_value(const struct perf_reading *reading, uint64_t *ret_count, bool *ret_scaled)
{
	if (reading->running_ns == 0)
		return false;
	*ret_scaled = reading->running_ns < reading->enabled_ns;
	double share = (double)reading->enabled_ns / (double)reading->running_ns;
	*ret_count = *ret_scaled ? (uint64_t)((double)reading->value * share) : reading->value;
	return true;
}
