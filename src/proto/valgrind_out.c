#include "proto/valgrind_out.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

#define NUMBER_MAX 24 /* digits of a sum, and the NUL */

/* A line, or the words left of it. */
struct piece {
	const char *at;
	size_t len;
};

static bool next_line(struct piece *text, struct piece *ret_line)
{
	if (text->len == 0)
		return false;
	const char *newline = memchr(text->at, '\n', text->len);
	size_t len = newline ? (size_t)(newline - text->at) : text->len;
	*ret_line = (struct piece){ text->at, len };
	size_t taken = MIN(len + 1, text->len);
	text->at += taken;
	text->len -= taken;
	return true;
}

static bool next_word(struct piece *line, struct piece *ret_word)
{
	while (line->len && (*line->at == ' ' || *line->at == '\t' || *line->at == '\r'))
		line->at++, line->len--;
	ret_word->at = line->at;
	while (line->len && *line->at != ' ' && *line->at != '\t' && *line->at != '\r')
		line->at++, line->len--;
	ret_word->len = (size_t)(line->at - ret_word->at);
	return ret_word->len > 0;
}

static bool takes_key(struct piece *line, const char *key)
{
	size_t len = strlen(key);
	if (line->len < len || memcmp(line->at, key, len) != 0)
		return false;
	line->at += len;
	line->len -= len;
	return true;
}

/* The place of "Ir" among the events; -1 if it is not one. */
static int instruction_column(struct piece line)
{
	struct piece word;
	for (int column = 0; next_word(&line, &word); column++)
		if (word.len == 2 && memcmp(word.at, "Ir", 2) == 0)
			return column;
	return -1;
}

static bool number_at(struct piece line, int column, uint64_t *ret_number)
{
	struct piece word = { 0 };
	for (int i = 0; i <= column; i++)
		if (!next_word(&line, &word))
			return false;
	char digits[NUMBER_MAX];
	if (word.len >= sizeof(digits))
		return false;
	memcpy(digits, word.at, word.len);
	digits[word.len] = '\0';
	return str_to_u64(digits, ret_number) == 0;
}

int valgrind_out_instructions(const char *text, size_t len, uint64_t *ret_count, struct err *err)
{
	struct piece rest = { text, len }, line;
	int column = -1;
	bool found = false, total = false;
	uint64_t count = 0;
	while (next_line(&rest, &line)) {
		if (takes_key(&line, "events:"))
			column = instruction_column(line);
		else if (column >= 0 && !total && takes_key(&line, "summary:"))
			found |= number_at(line, column, &count);
		else if (column >= 0 && takes_key(&line, "totals:"))
			found |= total = number_at(line, column, &count);
	}
	if (column < 0)
		return err_set(err, EINVAL, "no instruction counts in it");
	if (!found)
		return err_set(err, ENODATA, "no total in it: the program was killed");
	*ret_count = count;
	return 0;
}
