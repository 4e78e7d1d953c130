#include "run/tell/happening.h"

/* The history first: what the others say depends on it. */
static const struct listener *const listeners[] = {
	&listen_log,	&listen_history,      &listen_steps,
	&listen_guard,	&listen_output,	      &listen_torch_metrics,
	&listen_events, &listen_torch_events, &listen_trainer,
};

void happening_tell(struct telling *telling, const struct happening *happening)
{
	struct happening told = *happening;
	if (!told.when_ns)
		told.when_ns = clock_now_ns();
	for (size_t i = 0; i < ARRAY_LEN(listeners); i++) {
		const struct listener *listener = listeners[i];
		if (listener->on[told.kind] &&
		    (!listener->is_wanted || listener->is_wanted(telling->config)))
			listener->on[told.kind](telling, &told);
	}
}
