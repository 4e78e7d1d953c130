#include "run/checks/preflight_options.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/strv.h"
#include "core/checks/limits.h"
#include "core/host/hostlist.h"
#include "core/rounds/strikes.h"

static int check_excluded(const char *list, bool *ret_excluded, struct err *err)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	char host[HOSTLIST_NAME_MAX + 1] = "";
	uint32_t count;
	int r = hostlist_expand(list, HOSTLIST_HOSTS_MAX, &names, &count, err);
	if (r < 0)
		return err_wrap(err, "--exclude-hosts");
	gethostname(host, sizeof(host) - 1);
	size_t bare = strcspn(host, ".");
	for (size_t i = 0; i < names.count; i++)
		*ret_excluded |=
			str_eq(names.items[i], host) ||
			(strlen(names.items[i]) == bare && memcmp(names.items[i], host, bare) == 0);
	return 0;
}

int preflight_options_check(const struct preflight *preflight, bool *ret_excluded, struct err *err)
{
	struct check_limits limits;
	*ret_excluded = false;
	if (preflight->strikes < -1 || preflight->strikes > STRIKES_KEPT)
		return err_set(err, EINVAL, "--strikes: %" PRId64 " is not from 0 to %d",
			       preflight->strikes, STRIKES_KEPT);
	if (preflight->limits && check_limits_parse(preflight->limits, &limits, err) < 0)
		return err_wrap(err, "--check-limits");
	return preflight->exclude_hosts
		       ? check_excluded(preflight->exclude_hosts, ret_excluded, err)
		       : 0;
}
