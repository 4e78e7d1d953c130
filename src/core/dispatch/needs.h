/* What an order needs of a host, and what a host has. Pure. */
#ifndef CORE_DISPATCH_NEEDS_H
#define CORE_DISPATCH_NEEDS_H

#include <stdint.h>

#include "base/buf.h"

#define NEEDS_NAME_MAX 65	/* of a host, with its NUL */
#define NEEDS_FEATURES_MAX 1024 /* of a host, as a list, with its NUL */

/* To be one of those that it names, and to have the features that it names. NULL-terminated lists,
 * or NULL; all is borrowed. */
struct needs {
	char *const *hosts;    /* any of these */
	char *const *features; /* all of these */
};

/* Orders that need the same are of one kind. */
struct order_kind {
	int32_t width;	 /* cores */
	uint64_t memory; /* bytes; 0: any */
	bool files;	 /* files move with them */
	struct needs needs;
};

/* What a host has. */
struct host_facts {
	int32_t cores;	      /* that orders can have together */
	int32_t max_width;    /* of one order */
	int32_t jobs;	      /* orders at a time */
	uint64_t memory;      /* bytes */
	const char *name;     /* NULL: it has none */
	const char *features; /* "gpu,ssd"; NULL: none */
	bool files;	      /* its version can be sent files */
	bool trees;	      /* and directories */
};

static inline bool needs_any(const struct needs *needs)
{
	return needs->hosts || needs->features;
}

bool needs_equal(const struct needs *a, const struct needs *b);

/* Whether the host of this name, which has these features ("gpu,ssd"), will do. An order that names
 * "node7" also means "node7.cluster". */
bool needs_met(const struct needs *needs, const char *name, const char *features);

/* Whether such an order can run there at all. */
bool needs_host_able(const struct host_facts *facts, const struct order_kind *kind);

/* "host a or b", "features gpu and ssd", "host a with feature gpu". */
void needs_describe(const struct needs *needs, struct buf *out);

/* A feature has letters, digits and any of "._+:-"; a list has commas between them and is shorter
 * than NEEDS_FEATURES_MAX. */
bool needs_feature_ok(const char *text);
bool needs_features_ok(const char *list);

#endif
