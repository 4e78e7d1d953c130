/* Random bytes of the kernel, for names, ids and keys. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "base/util.h"

/* Never fails: a kernel that gives no random bytes ends the process. */
void random_bytes(void *ret_data, size_t len);

uint64_t random_u64(void);

#endif
