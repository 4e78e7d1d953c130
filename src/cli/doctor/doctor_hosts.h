/* `muster doctor --hosts`: the checks run on other hosts, and one table shows all of them. */
#ifndef CLI_DOCTOR_DOCTOR_HOSTS_H
#define CLI_DOCTOR_DOCTOR_HOSTS_H

#include "cli/command.h"
#include "core/fleet/hosts_options.h"
#include "sys/checks/checks.h"

/* Returns the exit code. */
int doctor_on_hosts(const struct command *self, const struct hosts_options *o,
		    const struct checks_spec *spec, bool json);

#endif
