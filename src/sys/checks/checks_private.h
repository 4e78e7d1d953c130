/* The checks themselves: each runs in a child and fills in the result, which has a name and is
 * well. */
#ifndef SYS_CHECKS_CHECKS_PRIVATE_H
#define SYS_CHECKS_CHECKS_PRIVATE_H

#include "sys/checks/checks.h"

struct check_place {
	const struct checks_spec *spec;
	bool full;	 /* measure for longer */
	const char *dir; /* of check_storage() */
	uint64_t timeout_ns;
};

typedef void check_fn(const struct check_place *place, struct check_result *result);

check_fn check_cpu, check_bandwidth;					     /* speed.c */
check_fn check_memory, check_shm, check_storage, check_limits, check_cgroup; /* room.c */
check_fn check_names, check_ports, check_interfaces;			     /* network.c */
check_fn check_reach;							     /* reach.c */
check_fn check_devices, check_hardware, check_versions, check_script;	     /* parts.c */

#endif
