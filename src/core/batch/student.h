/* Student's t distribution. */
#ifndef CORE_BATCH_STUDENT_H
#define CORE_BATCH_STUDENT_H

#include "base/util.h"

/* P(|T| > t) with `df` > 0 degrees of freedom, which need not be whole. */
double student_two_sided(double t, double df);

/* The t that |T| exceeds with probability `p`, 0 < p < 1. */
double student_quantile(double p, double df);

#endif
