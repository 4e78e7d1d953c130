#include "core/lines/stream_map.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

static bool is_mask(const char *text)
{
	return text[0] >= '0' && text[0] <= '0' + STREAM_BOTH && text[1] == '\0';
}

/* "RANK:MASK", cut in place. */
static int parse_pair(char *pair, uint32_t nproc, uint8_t *masks)
{
	char *colon = strchr(pair, ':');
	uint64_t rank;
	if (!colon || !is_mask(colon + 1))
		return -EINVAL;
	*colon = '\0';
	if (str_to_u64(pair, &rank) < 0)
		return -EINVAL;
	if (rank < nproc)
		masks[rank] = (uint8_t)(colon[1] - '0');
	return 0;
}

int stream_map_parse(const char *text, uint32_t nproc, uint8_t *ret_masks, struct err *err)
{
	memset(ret_masks, 0, nproc);
	if (is_mask(text)) {
		memset(ret_masks, text[0] - '0', nproc);
		return 0;
	}
	const char *rest = text, *piece;
	size_t len;
	while ((piece = str_split(&rest, ',', &len))) {
		AUTO_FREE char *pair = mem_strndup(piece, len);
		if (parse_pair(pair, nproc, ret_masks) < 0)
			return err_set(err, EINVAL,
				       "'%.64s' is neither 0, 1 (stdout), 2 (stderr), 3 (both) nor "
				       "a list such as 0:1,12:3",
				       text);
	}
	return 0;
}

int stream_ranks_parse(const char *text, uint32_t nproc, bool *ret_chosen, struct err *err)
{
	bool all = *text == '\0';
	for (uint32_t i = 0; i < nproc; i++)
		ret_chosen[i] = all;
	const char *rest = all ? NULL : text, *piece;
	size_t len;
	while (rest && (piece = str_split(&rest, ',', &len))) {
		AUTO_FREE char *number = mem_strndup(piece, len);
		int64_t rank;
		if (str_to_i64_python(number, &rank) < 0)
			return err_set(err, EINVAL,
				       "'%.64s' is not a list of local ranks such as 0,3", text);
		if (rank >= 0 && rank < nproc)
			ret_chosen[rank] = true;
	}
	return 0;
}

void stream_filters_parse(const char *text, struct strv *ret_filters)
{
	struct buf item = BUF_INIT;
	for (;; text++) {
		bool comma = *text == ',' && text[1] == ',';
		if (*text == '\0' || (*text == ',' && !comma)) {
			strv_take(ret_filters, buf_take_str(&item));
			if (*text == '\0')
				return;
			continue;
		}
		buf_append_char(&item, *text);
		text += comma;
	}
}
