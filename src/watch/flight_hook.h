/* Brings python/muster/_flight.py to workers whose Python has no package of muster.
 *
 * `import torch` calls the entry points "torch.backends" of all that is on its path (PyTorch 2.5
 * and later). So a zip archive on PYTHONPATH, which Python writes nothing beside, is enough: it
 * holds the module and what names its install_flight(). */
#ifndef WATCH_FLIGHT_HOOK_H
#define WATCH_FLIGHT_HOOK_H

#include "base/err.h"
#include "base/strv.h"

/* Writes the archive to `path`, a new file. */
int flight_hook_write(const char *path, struct err *err);

/* Has the workers with this environment find it. */
void flight_hook_add(const char *path, struct strv *env);

#endif
