#include "run/ask/host_answers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

const char *ask_missed_text(enum ask_missed why)
{
	static const char *const reasons[] = {
		[ASK_MISSED_LOST] = "its connection is lost",
		[ASK_MISSED_LATE] = "it did not answer in time",
		[ASK_MISSED_UNASKED] = "its turn did not come in time",
		[ASK_MISSED_OLD] = "its muster is too old to answer",
	};
	static_assert(ARRAY_LEN(reasons) == ASK_MISSED_COUNT, "every reason needs words");
	return reasons[why];
}

void host_answers_done(struct host_answers *answers)
{
	for (size_t i = 0; i < answers->count; i++)
		buf_done(&answers->items[i].text);
	free(answers->items);
	*answers = HOST_ANSWERS_INIT;
}

static struct host_answer *add(struct host_answers *answers, const char *name, int32_t group_rank)
{
	ARRAY_RESERVE(answers->items, answers->count, answers->cap);
	struct host_answer *answer = &answers->items[answers->count++];
	*answer = (struct host_answer){ .group_rank = group_rank, .text = BUF_INIT };
	snprintf(answer->name, sizeof(answer->name), "%s", name);
	return answer;
}

static struct host_answer *answer_of(struct host_answers *answers, const struct msg_reply *reply)
{
	for (size_t i = answers->count; i-- > 0;) {
		struct host_answer *answer = &answers->items[i];
		if (!answer->whole && answer->slot == reply->slot &&
		    str_eq(answer->name, reply->name))
			return answer;
	}
	struct host_answer *answer = add(answers, reply->name, reply->group_rank);
	answer->slot = reply->slot;
	return answer;
}

void host_answers_take(struct host_answers *answers, const struct msg_reply *reply)
{
	struct host_answer *answer = answer_of(answers, reply);
	buf_append(&answer->text, reply->piece.data, reply->piece.len);
	answer->whole = reply->last;
	answer->failed = reply->failed;
}

void host_answers_miss(struct host_answers *answers, const struct msg_missed *missed)
{
	struct host_answer *answer = add(answers, missed->name, missed->group_rank);
	answer->whole = answer->failed = true;
	buf_append_str(&answer->text, ask_missed_text(missed->why));
}

static int compare(const void *a, const void *b)
{
	uint32_t x = (uint32_t)((const struct host_answer *)a)->group_rank;
	uint32_t y = (uint32_t)((const struct host_answer *)b)->group_rank;
	return (x > y) - (x < y);
}

void host_answers_sort(struct host_answers *answers)
{
	size_t kept = 0;
	for (size_t i = 0; i < answers->count; i++) {
		struct host_answer *answer = &answers->items[i];
		str_make_printable(answer->name);
		if (answer->whole)
			answers->items[kept++] = *answer;
		else
			buf_done(&answer->text);
	}
	answers->count = kept;
	if (kept > 0)
		qsort(answers->items, kept, sizeof(*answers->items), compare);
}
