#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void random_bytes(void *ret_data, size_t len)
{
	unsigned char *at = ret_data;
	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			abort();
		at += n;
		len -= (size_t)n;
	}
}

uint64_t random_u64(void)
{
	uint64_t value;
	random_bytes(&value, sizeof(value));
	return value;
}
