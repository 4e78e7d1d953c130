/* The engine, Slurm or the like, that started this process. */
#ifndef SYS_ENGINE_ASK_H
#define SYS_ENGINE_ASK_H

#include "core/host/engine.h"

/* As engine_detect(), of our own environment; `hosts_file` is filled in where an engine is. */
int engine_ask(struct engine_asked asked, struct engine_settings *ret_settings, struct err *err);

#endif
