/* line_clock write COUNT PERIOD_US: lines with the time at which they were written.
 * line_clock read: the same, on stdin behind any prefix; prints the delays "P50 P99 MAX" in
 * microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return x < y ? -1 : x > y;
}

static int write_lines(long count, long period_us)
{
	for (long i = 0; i < count; i++) {
		char line[64];
		int len = sprintf(line, "@%ld\n", now_ns());
		if (write(1, line, (size_t)len) != len)
			return 1;
		usleep((useconds_t)period_us);
	}
	return 0;
}

static int read_lines(void)
{
	static char data[1 << 20];
	long *delays = NULL;
	size_t count = 0, cap = 0, used = 0;
	for (ssize_t n; (n = read(0, data + used, sizeof(data) - used)) > 0;) {
		long now = now_ns();
		used += (size_t)n;
		char *start = data, *end;
		while ((end = memchr(start, '\n', used - (size_t)(start - data)))) {
			char *at = memchr(start, '@', (size_t)(end - start));
			if (at && count == cap)
				delays = realloc(delays,
						 (cap = cap ? cap * 2 : 1024) * sizeof(*delays));
			if (at)
				delays[count++] = now - atol(at + 1);
			start = end + 1;
		}
		used -= (size_t)(start - data);
		memmove(data, start, used);
	}
	if (count == 0)
		return 1;
	qsort(delays, count, sizeof(*delays), compare);
	printf("%ld %ld %ld\n", delays[count / 2] / 1000, delays[count * 99 / 100] / 1000,
	       delays[count - 1] / 1000);
	return 0;
}

int main(int argc, char **argv)
{
	return argc == 4 ? write_lines(atol(argv[2]), atol(argv[3])) : read_lines();
}
