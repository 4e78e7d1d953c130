#include "cli/stand_in.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strv.h"
#include "core/worker/exit_code.h"
#include "nodes/rendezvous.h"

/* MODULE:INTERPRETER, set by python/muster/_switch.py, which also reads the other one. */
#define PLACE_VARIABLE "MUSTER_IN_PLACE_OF"
#define SWITCH_VARIABLE "MUSTER_TORCHRUN"

void stand_in_take(struct stand_in *ret)
{
	*ret = (struct stand_in){ .python = NULL };
	const char *place = getenv(PLACE_VARIABLE), *colon = place ? strchr(place, ':') : NULL;
	if (colon) {
		ret->module = mem_printf("%.*s", (int)(colon - place), place);
		ret->python = mem_strdup(colon + 1);
	}
	unsetenv(PLACE_VARIABLE);
}

void stand_in_done(struct stand_in *stand_in)
{
	free(stand_in->python);
	free(stand_in->module);
}

bool stand_in_passes_rank(const struct stand_in *stand_in)
{
	return stand_in->module && str_eq(stand_in->module, "torch.distributed.launch");
}

const char *stand_in_why_not(const struct run_options *options)
{
	const char *backend = options->rdzv.backend;
	if (options->logs_specs)
		return "--logs-specs names a Python plug-in";
	if (backend && *backend && !options->rdzv.standalone && !rendezvous_has_backend(backend))
		return "--rdzv-backend names a Python plug-in";
	return NULL;
}

int stand_in_leave(const struct stand_in *stand_in, char **argv, const char *why)
{
	AUTO(strv_done) struct strv command = STRV_INIT;
	log_warn("%s: torch's own launcher runs this job", why);
	setenv(SWITCH_VARIABLE, "0", 1);
	strv_add(&command, stand_in->python);
	strv_add(&command, "-m");
	strv_add(&command, stand_in->module);
	strv_add_all(&command, argv + 1);
	execv(command.items[0], command.items);
	log_error("execute %s: %m", command.items[0]);
	return EXIT_CODE_NOT_FOUND;
}
