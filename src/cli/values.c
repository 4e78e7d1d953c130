#include "cli/values.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "batch/measure.h"

int share_parse_len(const char *text, size_t len, double *ret_share, struct err *err)
{
	AUTO_FREE char *copy = mem_strndup(text, len);
	bool percent = str_ends(copy, "%");
	if (percent)
		copy[len - 1] = '\0';
	double value;
	if (str_to_double(copy, &value) < 0 || !(value >= 0) || !isfinite(value))
		return err_set(err, EINVAL, "'%.*s' is not a share such as 1%% or 0.01", (int)len,
			       text);
	*ret_share = percent ? value / 100 : value;
	return 0;
}

int share_parse(const char *text, void *field, struct err *err)
{
	return share_parse_len(text, strlen(text), field, err);
}

int share_parse_part(const char *text, void *field, struct err *err)
{
	double share;
	int r = share_parse(text, &share, err);
	if (r < 0)
		return r;
	if (share <= 0 || share >= 1)
		return err_set(err, EINVAL, "'%s' is not a share between 0 and 1", text);
	*(double *)field = share;
	return 0;
}

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
