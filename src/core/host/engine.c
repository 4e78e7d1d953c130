#include "core/host/engine.h"

#include <stdlib.h>

#include "core/host/engine_private.h"

/* The first one that is here counts. */
static const struct engine *const engines[] = { &engine_slurm, &engine_kubernetes };

bool engine_in_worker(char *const *environment)
{
	return env_find(environment, "TORCHELASTIC_RUN_ID") != NULL;
}

bool engine_is_here(char *const *environment)
{
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		if (engines[i]->is_here(environment))
			return true;
	return false;
}

int engine_detect(char *const *environment, const struct engine_asked *asked,
		  struct engine_settings *ret_settings, struct err *err)
{
	struct engine_settings settings = ENGINE_SETTINGS_INIT;
	for (size_t i = 0; i < ARRAY_LEN(engines) && !settings.engine; i++) {
		const struct engine *engine = engines[i];
		if (!engine->is_here(environment) &&
		    !(engine->is_hidden && engine->is_hidden(asked)))
			continue;
		settings.engine = engine->name;
		int r = engine->settle(environment, asked, &settings, err);
		if (r < 0) {
			engine_settings_done(&settings);
			return r;
		}
	}
	*ret_settings = settings;
	return 0;
}

void engine_settings_done(struct engine_settings *settings)
{
	free(settings->endpoint);
	free(settings->run_id);
	free(settings->master_addr);
	free(settings->notice);
	free(settings->warning);
	*settings = ENGINE_SETTINGS_INIT;
}
