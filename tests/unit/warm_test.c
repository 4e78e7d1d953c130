#include "unit.h"

#include <errno.h>
#include <string.h>

#include "proto/warm.h"

static int parse(const char *text, struct warm_answer *ret)
{
	return warm_answer_parse(text, strlen(text), ret);
}

TEST(answers_of_a_template_are_understood)
{
	struct warm_answer answer;
	ck_assert_int_eq(parse("R", &answer), 0);
	ck_assert_int_eq(answer.type, WARM_READY);
	ck_assert_int_eq(parse("F 12 2147483647", &answer), 0);
	ck_assert_int_eq(answer.type, WARM_FORKED);
	ck_assert_uint_eq(answer.count, 2);
	ck_assert_int_eq(answer.pids[0], 12);
	ck_assert_int_eq(answer.pids[1], INT32_MAX);
	ck_assert_int_eq(parse("F", &answer), 0);
	ck_assert_uint_eq(answer.count, 0);
	ck_assert_int_eq(parse("Ecannot import x:\n\tno", &answer), 0);
	ck_assert_int_eq(answer.type, WARM_REFUSED);
	ck_assert_str_eq(answer.text, "cannot import x:  no");
}

TEST(invalid_answers_are_refused)
{
	static const char *const wrong[] = { "",    "x",    "Ready",	    "F -1",
					     "F 0", "F 1x", "F 2147483648", "F 1,2" };
	struct warm_answer answer;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_int_eq(parse(wrong[i], &answer), -EPROTO);
	char many[3 * (WARM_BATCH_MAX + 1) + 2] = "F";
	for (int i = 0; i <= WARM_BATCH_MAX; i++)
		strcat(many, " 7");
	ck_assert_int_eq(parse(many, &answer), -EPROTO);
	char long_text[2 * WARM_TEXT_MAX];
	memset(long_text, 'E', sizeof(long_text));
	ck_assert_int_eq(warm_answer_parse(long_text, sizeof(long_text), &answer), 0);
	ck_assert_uint_eq(strlen(answer.text), WARM_TEXT_MAX - 1);
}
