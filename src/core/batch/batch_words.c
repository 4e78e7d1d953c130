#include "core/batch/batch_words.h"

enum batch_words batch_words_decide(const struct batch_words_facts *facts)
{
	if (facts->has_sources)
		return BATCH_WORDS_SOURCES;
	if (!facts->has_words)
		return facts->stdin_is_data ? BATCH_WORDS_STDIN_LIST : BATCH_WORDS_NONE;
	if (facts->is_list && facts->is_program)
		return BATCH_WORDS_BOTH;
	if (facts->is_list)
		return BATCH_WORDS_LISTS;
	if (!facts->is_program)
		return BATCH_WORDS_UNKNOWN;
	return facts->measures ? BATCH_WORDS_COMMANDS : BATCH_WORDS_STDIN_ARGS;
}
