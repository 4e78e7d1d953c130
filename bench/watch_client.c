/* How fast libmuster's timers, heartbeat and steps are, inside a worker: "requests/s
 * NS_PER_HEARTBEAT NS_PER_STEP". */
#include <stdio.h>
#include <unistd.h>

#include <muster/muster.h>

#include "base/clock.h"

#define PAIRS 200000
#define BEATS 100000000
#define STEPS 10000000

int main(void)
{
	if (muster_heartbeat() < 0)
		return 1;
	uint64_t start_ns = clock_now_ns();
	for (int i = 0; i < PAIRS; i++)
		if (muster_timer_acquire("step", 60, 9) < 0 || muster_timer_release("step") < 0)
			return 1;
	uint64_t timers_ns = clock_now_ns() - start_ns;
	start_ns = clock_now_ns();
	for (int i = 0; i < BEATS; i++)
		muster_heartbeat();
	uint64_t beats_ns = clock_now_ns() - start_ns;
	start_ns = clock_now_ns();
	for (uint64_t i = 0; i < STEPS; i++)
		muster_step(i);
	uint64_t steps_ns = clock_now_ns() - start_ns;
	char line[128];
	int len = snprintf(line, sizeof(line), "client %.0f %.3f %.3f\n",
			   2.0 * PAIRS / ((double)timers_ns / (double)NS_PER_S),
			   (double)beats_ns / BEATS, (double)steps_ns / STEPS);
	return write(STDOUT_FILENO, line, (size_t)len) == len ? 0 : 1;
}
