#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	if (!err)
		return -code;

	va_list args;
	va_start(args, fmt);
	errno = code;
	vsnprintf(err->msg, sizeof(err->msg), fmt, args);
	va_end(args);
	err->code = code;
	return -code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	if (!err)
		return -EINVAL;

	char inner[ERR_MSG_MAX];
	memcpy(inner, err->msg, sizeof(inner));

	va_list args;
	va_start(args, fmt);
	int len = vsnprintf(err->msg, sizeof(err->msg), fmt, args);
	va_end(args);
	if (len >= 0 && (size_t)len < sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - (size_t)len, ": %s", inner);
	return -err->code;
}
