/* Texts with names in them: "$name" and "${name}" are replaced, "$$" is a "$", anything else with a
 * "$" stays as it is. A name is a letter or "_" and then letters, digits, "_". */
#ifndef CORE_LINES_NAMED_TEMPLATE_H
#define CORE_LINES_NAMED_TEMPLATE_H

#include "base/buf.h"

struct template_name {
	const char *name;
	const char *value;
};

void template_render(const char *text, const struct template_name *names, size_t count,
		     struct buf *out);

#endif
