#include "core/lines/parting.h"

void parting_round(struct parting *parting)
{
	parting->asked = false;
}

void parting_asked(struct parting *parting)
{
	parting->asked = true;
	parting->deaf = false;
}

bool parting_begin(struct parting *parting, uint64_t now_ns)
{
	if (parting->deaf)
		return false;
	if (!parting->waits)
		parting->since_ns = now_ns;
	parting->waits = true;
	return true;
}

bool parting_over(struct parting *parting, bool sent, uint64_t now_ns)
{
	bool late = now_ns >= parting_deadline_ns(parting);
	if (!parting->waits || (!late && !(parting->asked && sent)))
		return false;
	parting->deaf = late && !parting->asked;
	parting->waits = false;
	return true;
}

uint64_t parting_deadline_ns(const struct parting *parting)
{
	if (!parting->waits)
		return NS_NEVER;
	return ns_add(parting->since_ns, parting->asked ? PARTING_NS : PARTING_UNASKED_NS);
}
