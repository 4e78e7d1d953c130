/* What a node tells the coordinator of its checks: a few figures and facts to compare with those of
 * the other nodes, and the worst that it found itself. Small enough for a JOIN.
 *
 * A check that failed itself leaves nothing behind here, so it says nothing about the node. */
#ifndef CORE_CHECKS_DIGEST_H
#define CORE_CHECKS_DIGEST_H

#include "core/checks/check.h"

#define DIGEST_FIGURES_MAX 12
#define DIGEST_FIGURES_ALL (DIGEST_FIGURES_MAX + 4) /* with those that the coordinator adds */
#define DIGEST_FACTS_MAX 4
#define DIGEST_NAME_MAX 24 /* with the NUL, as all of these */
#define DIGEST_FACT_MAX 32
#define DIGEST_TEXT_MAX 128

struct digest_figure {
	char name[DIGEST_NAME_MAX];
	double value; /* finite */
};

struct digest_fact {
	char name[DIGEST_NAME_MAX];
	char value[DIGEST_FACT_MAX];
};

/* All 0: nothing was checked. */
struct check_digest {
	bool bad; /* the node itself says that it is not fit: `finding` */
	uint8_t figure_count, fact_count;
	struct digest_figure figures[DIGEST_FIGURES_ALL];
	struct digest_fact facts[DIGEST_FACTS_MAX];
	char finding[DIGEST_TEXT_MAX];
};

/* Figures and facts of all results, those that are judged first; of two with the same name the
 * worse. What is too long is cut, what is too much is left out. */
void check_digest_make(const struct check_list *results, struct check_digest *ret_digest);

static inline bool check_digest_is_empty(const struct check_digest *digest)
{
	return !digest->bad && !digest->figure_count && !digest->fact_count;
}

/* What the coordinator knows of the node; in place of an earlier one of that name. */
void check_digest_put(struct check_digest *digest, const char *name, double value);

void check_digest_remove(struct check_digest *digest, const char *name);

/* NAN: the digest does not have it. */
double check_digest_figure(const struct check_digest *digest, const char *name);

/* NULL: the digest does not have it. */
const char *check_digest_fact(const struct check_digest *digest, const char *name);

#endif
