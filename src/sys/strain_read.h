/* Reads what the kernel counts about a worker that may be slow (core/pace/strain.h). */
#ifndef SYS_STRAIN_READ_H
#define SYS_STRAIN_READ_H

#include <sys/types.h>

#include "core/pace/strain.h"

/* What cannot be read stays 0. */
void strain_read(pid_t pid, struct strain *ret_strain);

#endif
