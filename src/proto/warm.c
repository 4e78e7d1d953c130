#include "proto/warm.h"

#include <errno.h>

#include "base/mem.h"
#include "base/str.h"

static int parse_pids(const char *text, struct warm_answer *ret)
{
	const char *rest = text, *piece;
	size_t len;
	while ((piece = str_split(&rest, ' ', &len))) {
		if (len == 0)
			continue;
		AUTO_FREE char *word = mem_strndup(piece, len);
		int64_t pid;
		if (ret->count == WARM_BATCH_MAX || str_to_i64(word, &pid) < 0 || pid <= 0 ||
		    pid > INT32_MAX)
			return -EPROTO;
		ret->pids[ret->count++] = (pid_t)pid;
	}
	return 0;
}

/* The text goes into a log line. */
static void copy_text(const char *text, char ret[WARM_TEXT_MAX])
{
	size_t i = 0;
	for (; text[i] && i < WARM_TEXT_MAX - 1; i++)
		ret[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
	ret[i] = '\0';
}

int warm_answer_parse(const char *data, size_t len, struct warm_answer *ret)
{
	AUTO_FREE char *text = mem_strndup(data, len);
	*ret = (struct warm_answer){ .type = WARM_READY };
	switch (text[0]) {
	case 'R':
		return text[1] ? -EPROTO : 0;
	case 'F':
		ret->type = WARM_FORKED;
		return parse_pids(text + 1, ret);
	case 'E':
		ret->type = WARM_REFUSED;
		copy_text(text + 1, ret->text);
		return 0;
	default:
		return -EPROTO;
	}
}
