#include "run/tell/happening.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The log first: it asks whether this is the first stop, which the history is about to record. Then
 * the history: what the others say depends on it. */
static const struct listener *const listeners[] = {
	&listen_log,	&listen_history,      &listen_steps,   &listen_output,
	&listen_events, &listen_torch_events, &listen_trainer,
};

static void tell(struct telling *telling, const struct happening *happening)
{
	for (size_t i = 0; i < ARRAY_LEN(listeners); i++) {
		const struct listener *listener = listeners[i];
		if (listener->on[happening->kind] &&
		    (!listener->is_wanted || listener->is_wanted(telling->config)))
			listener->on[happening->kind](telling, happening);
	}
}

/* What `data` points to, of the kinds that may be told later and have it. */
static size_t data_size(const struct happening *happening)
{
	static const size_t sizes[HAPPENING_COUNT] = {
		[HAPPENED_ROUND_FORMED] = sizeof(struct msg_formed),
		[HAPPENED_WORKER_NOT_STARTED] = sizeof(struct err),
		[HAPPENED_WORKER_EXITED] = sizeof(struct warden_event),
		[HAPPENED_AGREED] = sizeof(struct stop_plan),
		[HAPPENED_HOST_LOST] = sizeof(struct cause),
		[HAPPENED_GROUP_STOPPING] = sizeof(struct cause),
		[HAPPENED_SURVIVOR] = sizeof(struct warden_event),
	};
	if (happening->kind == HAPPENED_HANG_EXPLAINED)
		return strlen(happening->text) + 1;
	return sizes[happening->kind];
}

static struct happening timed(const struct happening *happening)
{
	struct happening told = *happening;
	if (!told.when_ns)
		told.when_ns = clock_now_ns();
	return told;
}

void happening_tell_later(struct telling *telling, const struct happening *happening)
{
	struct happening told = timed(happening);
	size_t size = data_size(happening);
	if (size && told.data)
		told.data = memcpy(mem_alloc(size), told.data, size);
	ARRAY_RESERVE(telling->later, telling->later_count, telling->later_cap);
	telling->later[telling->later_count++] = told;
}

void happening_flush(struct telling *telling)
{
	for (size_t i = 0; i < telling->later_count; i++) {
		struct happening *happening = &telling->later[i];
		tell(telling, happening);
		if (data_size(happening))
			free((void *)happening->data);
	}
	telling->later_count = 0;
}

void happening_tell(struct telling *telling, const struct happening *happening)
{
	struct happening told = timed(happening);
	happening_flush(telling);
	tell(telling, &told);
}
