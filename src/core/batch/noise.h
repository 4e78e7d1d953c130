/* How good a host is for measuring: what runs of one and the same program (A/A) say. */
#ifndef CORE_BATCH_NOISE_H
#define CORE_BATCH_NOISE_H

#include "base/util.h"

/* What can disturb; a bit of `noise_facts.disturbed` counts runs that met it. */
enum noise_source {
	NOISE_LOAD,	 /* other programs on the same CPUs */
	NOISE_STEAL,	 /* the hypervisor gave the CPU to others */
	NOISE_FREQUENCY, /* the clock moved, or throttled */
	NOISE_SMT,	 /* a sibling thread of the core was busy, or could be */
	NOISE_ASLR,	 /* addresses differ from run to run */
	NOISE_GOVERNOR,	 /* the clock follows the load */
	NOISE_SOURCE_COUNT,
};

struct noise_facts {
	const double *values; /* times of the runs in the order they were made, positive */
	const double *cpu;    /* CPU times of the same runs; NULL: not known */
	size_t n;
	size_t disturbed[NOISE_SOURCE_COUNT]; /* runs that met it; for settings of the host: n or 0
					       */
};

enum noise_grade {
	NOISE_GOOD, /* changes of 1 % are seen with a few runs */
	NOISE_FAIR, /* with many */
	NOISE_POOR, /* not with times: count instructions */
	NOISE_GRADE_COUNT,
};

struct noise_report {
	double spread;	   /* robust standard deviation, relative to the median */
	double cpu_spread; /* the same of the CPU times; 0: not known */
	bool cpu_steadier; /* by so much that it is the better metric here */
	double drift;	   /* second half to first half, relative */
	double drift_p;	   /* chance of such a drift in runs that do not drift */
	bool drifts;	   /* beyond chance and beyond the spread */
	double waves;	   /* correlation of neighbouring runs (serial_drift()); 0: none */
	size_t outliers;   /* runs farther than five spreads from the median */
	bool many_outliers;
	size_t runs_for_1; /* pairs that show a change of 1 % at 95 % */
	double smallest;   /* relative change that 10 pairs show at 95 % */
	enum noise_grade grade;
	bool advise[NOISE_SOURCE_COUNT]; /* worth doing something about */
};

#define NOISE_MIN_RUNS 10

/* n >= NOISE_MIN_RUNS. */
void noise_judge(const struct noise_facts *facts, struct noise_report *ret_report);

const char *noise_grade_name(enum noise_grade grade);	 /* "good", "fair", "poor" */
const char *noise_source_name(enum noise_source source); /* "load", … */
const char *noise_advice(enum noise_source source);	 /* what to do about it */

#endif
