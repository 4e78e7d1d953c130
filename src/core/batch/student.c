#include "core/batch/student.h"

#include <float.h>
#include <math.h>

#define FRACTION_STEPS 300
#define QUANTILE_STEPS 200

/* The continued fraction of the incomplete beta function (Lentz's method). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
	double value = d;
	for (int m = 1; m <= FRACTION_STEPS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double terms[] = { even, odd }, step = 1;
		for (size_t i = 0; i < ARRAY_LEN(terms); i++) {
			d = 1 + terms[i] * d;
			c = 1 + terms[i] / c;
			d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
			c = fabs(c) < DBL_MIN ? DBL_MIN : c;
			step = c * d;
			value *= step;
		}
		if (fabs(step - 1) < DBL_EPSILON)
			break;
	}
	return value;
}

static double log_gamma(double x)
{
	int sign;
	return lgamma_r(x, &sign);
}

/* Of x in (0, 1); the other tail where the fraction converges faster there. */
static double incomplete_beta(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	double front =
		exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_two_sided(double t, double df)
{
	assert(df > 0);
	if (isinf(t))
		return 0;
	return incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

double student_quantile(double p, double df)
{
	assert(p > 0 && p < 1 && df > 0);
	double low = 0, high = 1;
	while (student_two_sided(high, df) > p && high < 1e300)
		high *= 2;
	for (int i = 0; i < QUANTILE_STEPS && high - low > DBL_EPSILON * high; i++) {
		double middle = (low + high) / 2;
		*(student_two_sided(middle, df) > p ? &low : &high) = middle;
	}
	return (low + high) / 2;
}
