/* How many accelerators there are, and the NUMA node of each.
 *
 * A short-lived child loads the vendor's library: drivers start threads, open dozens of files and
 * may hang or crash, which this process must not. The library itself honours CUDA_VISIBLE_DEVICES,
 * HIP_VISIBLE_DEVICES, ZE_AFFINITY_MASK and the like. */
#ifndef SYS_DEVICES_H
#define SYS_DEVICES_H

#include "base/err.h"

#define DEVICES_MAX 256

enum device_kind {
	DEVICE_GPU, /* CUDA, else HIP */
	DEVICE_XPU, /* Level Zero */
	DEVICE_KIND_COUNT,
};

struct devices {
	uint32_t count;
	int nodes[DEVICES_MAX]; /* -1: the system does not know */
};

/* 0 with the devices found, perhaps none: no library, no driver, no device. -ETIMEDOUT or another
 * error if the library did not answer. */
int devices_find(enum device_kind kind, struct devices *ret_devices, struct err *err);

#endif
