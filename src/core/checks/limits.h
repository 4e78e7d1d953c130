/* Limits that the user gives: "gemm_tflops=300:,write_time=:2000". A figure outside its limits is
 * bad, whatever other nodes have. */
#ifndef CORE_CHECKS_LIMITS_H
#define CORE_CHECKS_LIMITS_H

#include "base/err.h"
#include "core/checks/check.h"

#define CHECK_LIMITS_MAX 32

struct check_limit {
	char name[CHECK_NAME_MAX];
	double low, high; /* -INFINITY and INFINITY: none */
};

struct check_limits {
	struct check_limit items[CHECK_LIMITS_MAX];
	size_t count;
};

/* NAME=[LOW]:[HIGH], separated by commas. -EINVAL: not that. */
int check_limits_parse(const char *text, struct check_limits *ret_limits, struct err *err);

void check_limits_apply(const struct check_limits *limits, struct check_result *result);

#endif
