#include "batch/results.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"

#define SKIPPED_TOLD 5 /* lines that are not results are told up to this number */

static int read_result(const char *line, size_t len, result_fn *on_result, void *arg,
		       struct err *err)
{
	AUTO(result_done) struct result result = RESULT_INIT;
	int r = result_read(line, len, &result, err);
	return r > 0 ? on_result(arg, &result, err) : r;
}

/* The line itself is wrong; the file goes on behind it. */
static bool is_bad_line(int r)
{
	return r == -EINVAL || r == -EFBIG;
}

static void tell_skipped(const struct err *err, size_t skipped)
{
	if (skipped <= SKIPPED_TOLD)
		log_warn("%s: the line is skipped%s", err->msg,
			 skipped == SKIPPED_TOLD ? "; further ones are not told" : "");
}

int results_read(const char *path, result_fn *on_result, void *arg, struct buf *ret_header,
		 uint64_t *ret_end, struct err *err)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return err_set(err, errno, "%s: %m", path);
	AUTO_FREE char *line = NULL;
	size_t cap = 0, number = 0, skipped = 0;
	uint64_t end = 0;
	int r = 0;
	errno = 0;
	for (ssize_t len;
	     r >= 0 && (len = getline(&line, &cap, file)) > 0 && line[len - 1] == '\n';) {
		number++;
		if ((size_t)len > RESULT_LINE_MAX)
			r = err_set(err, EFBIG, "longer than %zu bytes", RESULT_LINE_MAX);
		else
			r = read_result(line, (size_t)len, on_result, arg, err);
		if (r < 0)
			err_wrap(err, "%s:%zu", path, number);
		if (r < 0 && number > 1 && is_bad_line(r)) {
			tell_skipped(err, ++skipped);
			*err = ERR_INIT;
			r = 0;
		}
		if (number == 1 && ret_header)
			buf_append(ret_header, line, (size_t)len - 1);
		end += (uint64_t)len;
		errno = 0;
	}
	if (r >= 0 && ferror(file))
		r = err_set(err, errno ? errno : EIO, "%s: %m", path);
	fclose(file);
	if (r >= 0 && ret_end)
		*ret_end = end;
	return r < 0 ? r : 0;
}
