/* What the starter's environment has for agents on other hosts. */
#ifndef CORE_FLEET_HOST_ENV_H
#define CORE_FLEET_HOST_ENV_H

#include "base/util.h"

/* True for a "NAME=value" that means the same on another host. What describes a session or a host
 * (HOME, TMPDIR, SSH_*, ...) and what is secret does not go there. */
bool fleet_exports(const char *variable);

#endif
