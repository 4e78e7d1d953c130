#include "cli/count_opt.h"

#include <errno.h>

#include "base/str.h"
#include "batch/measure.h"

int count_opt_parse(const char *text, void *field, struct err *err)
{
	struct measure_options *measure = field;
	measure->count_auto = str_eq(text, "auto");
	if (measure->count_auto)
		return 0;
	for (int i = 0; i < COUNTER_SOURCE_COUNT; i++) {
		if (str_eq(text, counter_source_name((enum counter_source)i))) {
			measure->count = (enum counter_source)i;
			return 0;
		}
	}
	return err_set(err, EINVAL, "'%s' is not one of auto, perf, cachegrind, callgrind, none",
		       text);
}
