/* What an order needs of a host beyond cores and memory: to be one of those that it names, and to
 * have the features that it names. Pure. */
#ifndef CORE_DEAL_NEEDS_H
#define CORE_DEAL_NEEDS_H

#include "base/buf.h"

#define NEEDS_NAME_MAX 65	/* of a host, with its NUL */
#define NEEDS_FEATURES_MAX 1024 /* of a host, as a list, with its NUL */

/* NULL-terminated lists, or NULL; all is borrowed. */
struct needs {
	char *const *hosts;    /* any of these */
	char *const *features; /* all of these */
};

static inline bool needs_any(const struct needs *needs)
{
	return needs->hosts || needs->features;
}

bool needs_equal(const struct needs *a, const struct needs *b);

/* Whether the host of this name, which has these features ("gpu,ssd"), will do. An order that names
 * "node7" also means "node7.cluster". */
bool needs_met(const struct needs *needs, const char *name, const char *features);

/* "host a or b", "features gpu and ssd", "host a with feature gpu". */
void needs_describe(const struct needs *needs, struct buf *out);

/* A feature has letters, digits and any of "._+:-"; a list has commas between them and is shorter
 * than NEEDS_FEATURES_MAX. */
bool needs_feature_ok(const char *text);
bool needs_features_ok(const char *list);

#endif
