/* Host lists as Slurm writes them: "r[1-2]n[01-04,07],login".
 *
 * Names are separated by commas. A name may have several brackets, each with numbers and ranges; a
 * number keeps the width of its range's lower end, with zeros in front. The order is that of
 * `scontrol show hostnames`: the last bracket counts fastest, then the first, the second and so on.
 * Pure. */
#ifndef CORE_HOST_HOSTLIST_H
#define CORE_HOST_HOSTLIST_H

#include "base/err.h"
#include "base/strv.h"

#define HOSTLIST_HOSTS_MAX 1000000
#define HOSTLIST_NAME_MAX 253	/* bytes, as in the domain name system */
#define HOSTLIST_BRACKETS_MAX 8 /* in one name */
#define HOSTLIST_DIGITS_MAX 18

/* Checks the whole text, counts its hosts and appends the names of the first `limit` ones. -EINVAL:
 * it is not a host list, or one beyond the limits above; then nothing was appended. */
int hostlist_expand(const char *text, size_t limit, struct strv *ret_names, uint32_t *ret_count,
		    struct err *err);

#endif
