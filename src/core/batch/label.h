/* Labels: names with values, by which orders are chosen and results are grouped and sorted.
 *
 * An order has the labels that its list gave it, "NAME=value" in their order; those of a JSON list
 * without names are called 1, 2, …. Beside them every order has labels of its own accord
 * (autolabels): id, program, source, group, cores, variant, and the arguments of a template by
 * their names and as 1, 2, …. A label that was given hides an autolabel of the same name. */
#ifndef CORE_BATCH_LABEL_H
#define CORE_BATCH_LABEL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

#define LABEL_NAME_MAX 64
#define LABELS_MAX 64 /* of one order */

/* What the labels of an order are read from; everything is borrowed and may be NULL. */
struct label_of {
	const struct strv *labels, *args;
	const struct strv *arg_names; /* "" for an argument without one */
	const char *id, *program, *source, *group, *variant;
	int cores; /* 0: one */
};

/* Whether a label may be called so: not empty, at most LABEL_NAME_MAX bytes, and without the
 * characters that stand between names: = , ! * ? and blanks. */
bool label_name_ok(const char *name);

/* Replaces the content of `ret_value` with the value of a label; false: the order has none. */
bool label_value(const struct label_of *of, const char *name, struct buf *ret_value);

/* A given label for people: "language=C++"; without a name of its own only its value, "add".
 * Borrowed. */
const char *label_shown(const char *label);

/* Appends given labels for people: "pointwise, add, language=C++". */
void label_format(const struct strv *labels, struct buf *out);

/* A filter is a list of terms that must all hold: "NAME=PATTERN", "NAME!=PATTERN". In a pattern, *
 * stands for any text and ? for any byte. An order without the label has the value "". */
int label_filter_add(struct strv *filter, const char *term, struct err *err);
bool label_filter_holds(const struct strv *filter, const struct label_of *of);

#endif
