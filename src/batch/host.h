/* Facts about the host, for the header of a result file. */
#ifndef BATCH_HOST_H
#define BATCH_HOST_H

#include "base/buf.h"
#include "core/host/topology.h"

/* Appends the header line of a result file, newline included. Leaves out unknown values. */
void host_header(struct buf *out, const struct topology *topology, uint64_t started_wall_ns,
		 int jobs);

#endif
