#include "proto/args/words.h"

#include <errno.h>

#include "base/buf.h"
#include "base/str.h"
#include "proto/shell.h"

static bool is_separator(const char *word, struct arg_list *ret_list)
{
	static const struct {
		const char *word;
		struct arg_list list;
	} separators[] = {
		{ ":::", { .files = false } },
		{ "::::", { .files = true } },
		{ ":::+", { .linked = true } },
		{ "::::+", { .files = true, .linked = true } },
	};
	for (size_t i = 0; *word == ':' && i < ARRAY_LEN(separators); i++)
		if (str_eq(word, separators[i].word)) {
			*ret_list = separators[i].list;
			return true;
		}
	return false;
}

int arg_words_parse(struct arg_words *words, int argc, char *const *argv, struct err *err)
{
	struct arg_list list;
	*words = (struct arg_words){ .command = argv };
	for (int i = 0; i < argc; i++) {
		if (!is_separator(argv[i], &list)) {
			*(words->list_count ? &words->lists[words->list_count - 1].count
					    : &words->command_count) += 1;
			continue;
		}
		if (words->list_count == ARG_SOURCES_MAX)
			return err_set(err, E2BIG, "more than %d lists of arguments",
				       ARG_SOURCES_MAX);
		if (list.linked && words->list_count == 0)
			return err_set(err, EINVAL, "'%s' has no list before it to go along with",
				       argv[i]);
		list.words = argv + i + 1;
		words->lists[words->list_count++] = list;
	}
	return 0;
}

char *arg_words_command(const struct arg_words *words, bool quote)
{
	struct buf text = BUF_INIT;
	for (size_t i = 0; i < words->command_count; i++) {
		if (i > 0)
			buf_append_char(&text, ' ');
		if (quote)
			shell_quote(&text, words->command[i]);
		else
			buf_append_str(&text, words->command[i]);
	}
	return buf_take_str(&text);
}

int arg_sources_add_words(struct arg_sources *sources, const struct arg_list *list,
			  const struct arg_cutter *cutter, struct err *err)
{
	struct arg_source *source = arg_sources_append(sources, err);
	if (!source)
		return -E2BIG;
	source->linked = list->linked;
	for (size_t i = 0; i < list->count; i++) {
		int r = arg_records_add(&source->records, cutter, list->words[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}
