/* A probe: a link that asks one question. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "net/link_private.h"

struct link_probe {
	struct link *link;
	link_standing_fn *on_standing;
	void *arg;
};

/* Ends the probe before its user gets the answer. */
static void answer(struct link_probe *probe, const struct link_standing *standing)
{
	link_standing_fn *on_standing = probe->on_standing;
	void *arg = probe->arg;
	free(probe);
	on_standing(arg, standing);
}

static void probe_frame(struct link *link, const struct frame *frame)
{
	struct link_probe *probe = link->owner;
	struct frame_standing told;
	struct err err = ERR_INIT;
	if (frame_get_standing(frame, &told, &err) < 0) {
		link_end(link, LINK_BROKEN, false, "%s sent an invalid frame: %s", link->name,
			 err.msg);
		return;
	}
	link_hang_up(link);
	answer(probe, &(struct link_standing){
			      .answer = told.coordinates ? FINDER_COORDINATES : FINDER_STANDBY,
			      .ballot = told.ballot,
		      });
}

static void probe_end(struct link *link, const struct link_end *end)
{
	struct link_standing standing = {
		.answer = end->kind == LINK_NOBODY    ? FINDER_REFUSED
			  : end->kind == LINK_STANDBY ? FINDER_STANDBY
						      : FINDER_SILENT,
		.why = end->kind,
	};
	snprintf(standing.text, sizeof(standing.text), "%s", end->text);
	answer(link->owner, &standing);
}

static const struct link_hooks probe_hooks = {
	.role = ROLE_PROBE,
	.on_frame = probe_frame,
	.on_end = probe_end,
};

struct link_probe *link_probe(struct event_base *base, const struct link_self *self,
			      const struct link_target *target, link_standing_fn *on_standing,
			      void *arg)
{
	struct link_probe *probe = NEW(struct link_probe);
	probe->on_standing = on_standing;
	probe->arg = arg;
	probe->link = link_new_connecting(base, self, target, &probe_hooks, probe, FINDER_PROBE_NS,
					  FINDER_PROBE_NS);
	return probe;
}

void link_probe_cancel(struct link_probe *probe)
{
	if (!probe)
		return;
	link_drop(probe->link);
	free(probe);
}
