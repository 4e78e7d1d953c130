#include "lib/last_error.h"

#include <string.h>

#include <muster/muster.h>

static _Thread_local struct err last;

int last_error(int r, const struct err *err)
{
	if (r >= 0)
		return r;
	if (err && err->code)
		last = *err;
	else
		err_set(&last, -r, "%m");
	return r;
}

const char *muster_error(void)
{
	return last.msg;
}
