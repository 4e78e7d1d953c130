/* From an order to the arguments of exec. */
#ifndef BATCH_LAUNCH_H
#define BATCH_LAUNCH_H

#include "base/map.h"
#include "proto/orders.h"

struct launcher {
	const char *shell;
	char *const *env; /* base environment of orders; NULL: ours. Borrowed */
	struct map paths; /* program -> its file, "" if there is none */
};

void launcher_done(struct launcher *launcher);

struct launch {
	char *path;
	struct strv argv, env; /* env empty: ours */
	bool by_shell;
};

#define LAUNCH_INIT ((struct launch){ .path = NULL })

void launch_done(struct launch *launch);

/* Fails with ENOENT when a program is not on PATH. Uses a shell only for a line that needs one, or
 * if `force_shell`. */
int launch_make(struct launcher *launcher, const struct order *order, int slot, bool force_shell,
		struct launch *ret_launch, struct err *err);

#endif
