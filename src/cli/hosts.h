/* What `muster run --hosts` and `muster batch --hosts` share. */
#ifndef CLI_HOSTS_H
#define CLI_HOSTS_H

#include "base/err.h"
#include "core/fleet/hostfile.h"
#include "core/fleet/hosts_options.h"

#define HOSTS_PROGRAM_MAX 4096
#define HOSTS_REACH_MAX 16 /* other hosts that each tries to connect to (muster doctor) */

int hosts_check(const struct hosts_options *o, struct err *err);

/* The hosts of the list and of the file. */
int hosts_read(const struct hosts_options *o, struct hostfile *hosts, struct err *err);

/* The user's token, who may have a coordinator elsewhere; else one that no other job has. */
char *hosts_secret(void);

/* Our own path. */
int hosts_program(char ret_path[HOSTS_PROGRAM_MAX], struct err *err);

/* The name of this host, if a relay of `--hosts` started us; NULL: none did. No child sees it. */
char *hosts_take_name(void);

#endif
