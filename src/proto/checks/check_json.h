/* Results of checks as JSON: from the child that checks, and for programs (muster-doctor(1)). */
#ifndef PROTO_CHECKS_CHECK_JSON_H
#define PROTO_CHECKS_CHECK_JSON_H

#include "base/err.h"
#include "core/checks/check.h"
#include "proto/json_out.h"

void check_json_write(struct json_out *out, const struct check_result *result);

/* -EPROTO: not such a text. */
int check_json_read(const char *text, size_t len, struct check_result *ret_result, struct err *err);

/* What `muster doctor --json` prints. */
void check_json_write_all(const char *host, const struct check_list *results, struct buf *out);

struct across;
/* The same for many hosts. */
void check_json_write_hosts(const struct across *across, struct buf *out);

#define CHECK_JSON_MAX 256

/* The object that `muster doctor --json` prints. -EPROTO: not such a text. */
int check_json_read_all(const char *text, size_t len, struct check_list *ret_results,
			struct err *err);

/* What a user's own check prints: an object of names and numbers, {"gemm_tflops": 312.5}. Adds
 * them; false: it is not such a text. Members that are not numbers are left out. */
bool check_json_figures(const char *text, size_t len, struct check_result *result);

#endif
