#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

void clock_iso(uint64_t wall_ns, char text[CLOCK_ISO_MAX])
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;
	gmtime_r(&seconds, &tm);
	size_t len = strftime(text, CLOCK_ISO_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, CLOCK_ISO_MAX - len, ".%06uZ",
		 (unsigned)(wall_ns % NS_PER_S / NS_PER_US));
}

void clock_human(uint64_t ns, char text[CLOCK_HUMAN_MAX])
{
	uint64_t s = ns / NS_PER_S;
	if (s < 1)
		snprintf(text, CLOCK_HUMAN_MAX, "%" PRIu64 " ms", ns / NS_PER_MS);
	else if (s < 60)
		snprintf(text, CLOCK_HUMAN_MAX, "%.1f s", (double)ns / (double)NS_PER_S);
	else if (s < 3600)
		snprintf(text, CLOCK_HUMAN_MAX, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else
		snprintf(text, CLOCK_HUMAN_MAX, "%" PRIu64 " h %" PRIu64 " min", s / 3600,
			 s / 60 % 60);
}
