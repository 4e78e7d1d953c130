/* Checks of this host before workers run on it.
 *
 * Each check runs in a child of its own, which may hang or crash without harm: a dead file server
 * is a finding, not a hang. For a process without other threads. */
#ifndef SYS_CHECKS_CHECKS_H
#define SYS_CHECKS_CHECKS_H

#include "base/clock.h"
#include "base/err.h"
#include "base/strv.h"
#include "core/checks/check.h"

#define CHECKS_QUICK_NS (2 * NS_PER_S)
/* At least, for files and for Python: what is slow on a busy host is not broken. */
#define CHECKS_SLOW_NS (5 * NS_PER_S)
#define CHECKS_FULL_NS (15 * NS_PER_S)
#define CHECKS_ANY_DEVICES (-1)
#define CHECKS_PAIRS "pairs" /* of hosts: a name like the others, but one host cannot check it */

struct checks_spec {
	const char *which;   /* "quick", "full" or names with commas; NULL: quick, "": none */
	struct strv dirs;    /* where files are written; none: the working and the temporary one */
	bool dirs_later;     /* they need not be there yet: one above them is taken */
	struct strv reach;   /* other hosts, to connect to */
	struct strv checks;  /* commands of the user */
	int64_t devices;     /* accelerators that must be there; CHECKS_ANY_DEVICES */
	const char *script;  /* a file that all nodes should have in the same version; NULL: none */
	const char *python;  /* the interpreter of the workers; NULL: python3 */
	const char *limits;  /* of figures, for check_limits_parse(); NULL: none */
	uint64_t timeout_ns; /* of each; 0: CHECKS_QUICK_NS or CHECKS_FULL_NS */
};

/* Whether checks_run() would take it; -EINVAL as there. */
int checks_check_spec(const struct checks_spec *spec, struct err *err);

/* The longest that checks_run() takes. */
uint64_t checks_longest_ns(const struct checks_spec *spec);

/* The words of `muster doctor --json` on one host that makes these checks, but for `dirs_later`. */
void checks_words(const struct checks_spec *spec, struct strv *words);

/* -EINVAL: `which` names a check that there is not, or `limits` are none. */
int checks_run(const struct checks_spec *spec, struct check_list *ret_results, struct err *err);

/* `which` asks for the check of that name. */
bool checks_name(const char *which, const char *name);

#endif
