/* The command that reaches a host. */
#ifndef FLEET_SSH_H
#define FLEET_SSH_H

#include "base/strv.h"

struct ssh_config {
	const char *command; /* and its options: words with blanks between them */
	const char *program; /* our own path: tried first on the other host */
	uint64_t timeout_ns;
};

/* Appends the words of a command that starts a relay on `host`. */
void ssh_command(const struct ssh_config *config, const char *host, uint32_t index,
		 struct strv *argv);

/* True for this host: its relay needs no ssh. */
bool ssh_is_here(const char *host);

#endif
