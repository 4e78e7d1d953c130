/* --preflight and --check: this node checks itself before it joins the job, and with --preflight
 * between a failed attempt and the next (recheck.h). */
#ifndef RUN_CHECKS_PREFLIGHT_H
#define RUN_CHECKS_PREFLIGHT_H

#include "core/checks/digest.h"
#include "run/config.h"

/* Logs what is not well. 0: the node may join, and ret_digest is what it tells the coordinator of
 * its checks; -EHOSTDOWN: it may not; -EINVAL: there is no such check. Blocks for as long as the
 * checks take; call it before anything has started. */
int preflight_run(const struct run_config *config, struct check_digest *ret_digest,
		  struct check_counters *ret_counters, struct err *err);

/* The command that does the same checks and prints the results as JSON. */
void preflight_command(const struct run_config *config, struct strv *argv);

/* Logs each result: what is bad as an error with its remedy, what is well for --verbose. */
void preflight_tell(const struct check_list *results);

/* The nodes of the job measure the wires between them, and for how long in each direction. */
bool preflight_wants_pairs(const struct run_config *config);
uint16_t preflight_pair_ms(const struct run_config *config);

#endif
