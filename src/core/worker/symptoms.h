/* Known texts of errors, and what they say about a failure. A table: a row has a text to look for
 * and what follows from it; rows before others count more. tests/unit/judgement_test.c has a real
 * message for each row. */
#ifndef CORE_WORKER_SYMPTOMS_H
#define CORE_WORKER_SYMPTOMS_H

#include "core/worker/failure_class.h"

struct symptom {
	const char *text; /* a * stands for anything in the same line */
	enum failure_class class;
	enum failure_certainty certainty;
	enum failure_advice advice;
	const char *hint; /* may have one %s: the Python interpreter; NULL: none */
};

extern const struct symptom symptoms[];	       /* of programs */
extern const struct symptom kernel_symptoms[]; /* of the kernel's log; both end with a NULL text */

/* The first row whose text is in `text`; NULL: none. */
const struct symptom *symptom_find(const struct symptom *table, const char *text);

#endif
