/* Shared by pmi.c (the world of the ranks), pmi_line.c (the words of a line) and pmi_v1.c (what
 * lines ask for) only. */
#ifndef CORE_PMI_PMI_PRIVATE_H
#define CORE_PMI_PMI_PRIVATE_H

#include "core/pmi/pmi.h"

struct step {
	struct pmi *pmi;
	size_t rank;
	struct pmi_actions *actions;
};

static inline struct pmi_rank *step_rank(const struct step *s)
{
	return &s->pmi->ranks[s->rank];
}

/* An answer to the rank. */
void step_say(struct step *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* It sent what no MPI library sends. */
void step_blame(struct step *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

void step_abort(struct step *s, int code, struct bytes text);
void step_enter_barrier(struct step *s);

/* Visible to others after the next barrier; false: there is no room. */
bool step_put(struct step *s, struct bytes key, struct bytes value);

/* Does with the pair what `kind` says, with the coordinator's pairs where there are several hosts,
 * and answers the rank then as `waits` says. */
void step_want(struct step *s, enum pmi_wait waits, enum want_kind kind, struct bytes key,
	       struct bytes value);

/* ---- lines ---- */

/* The value of the word `name=value`; false: there is none. Words end at a space that no backslash
 * precedes. */
bool pmi_line_get(struct bytes line, const char *name, struct bytes *ret_value);

/* The same to the end of the line. */
bool pmi_line_rest(struct bytes line, const char *name, struct bytes *ret_value);
bool pmi_line_number(struct bytes line, const char *name, int64_t *ret_number);

void pmi_v1_take(struct step *s, struct bytes line);

/* Tells the rank what it waits for, and that it waits no more. `key`: the one asked about. */
void pmi_v1_answer(struct step *s, bool found, struct bytes key, struct bytes value);

#endif
