/* What an engine is: a row of the table in engine.c. */
#ifndef CORE_HOST_ENGINE_PRIVATE_H
#define CORE_HOST_ENGINE_PRIVATE_H

#include "base/env.h"
#include "core/host/engine.h"

struct engine {
	const char *name;
	/* Whether this is its environment. */
	bool (*is_here)(char *const *environment);
	/* Whether we are in its job though the environment does not tell; NULL: nobody knows. */
	bool (*is_hidden)(const struct engine_asked *asked);
	/* Fills in the settings, which are empty but for the name. What it has filled in when it
	 * fails is freed. */
	int (*settle)(char *const *environment, const struct engine_asked *asked,
		      struct engine_settings *settings, struct err *err);
};

extern const struct engine engine_slurm;
extern const struct engine engine_kubernetes;

/* Whether we are in a worker of muster or torchrun: then the engine's job is not ours to join. */
bool engine_in_worker(char *const *environment);

#endif
