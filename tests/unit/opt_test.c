#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/opt.h"

struct values {
	bool flag, module;
	const char *text, *tee;
	int64_t number;
	uint64_t wait_ns;
	int choice;
	const char *later;
};

static const char *const colours[] = { "red", "green", NULL };

static const struct opt opts[] = {
	OPT_GROUP("Things"),
	OPT_FLAG("standalone", "TEST_STANDALONE", struct values, flag, "a flag"),
	{ OPT_FIELD(OPT_TYPE_FLAG, "module", NULL, struct values, module, NULL, "m"),
	  .short_name = 'm' },
	{ OPT_FIELD(OPT_TYPE_STR, "tee", NULL, struct values, tee, "T", "tee"), .short_name = 't' },
	OPT_STR("log-dir", NULL, struct values, text, "DIR", "a text"),
	OPT_INT("max-restarts", "TEST_MAX_RESTARTS", struct values, number, "N", "a number"),
	OPT_INT("max-retries", NULL, struct values, number, "N", "a number"),
	OPT_DURATION("wait", NULL, struct values, wait_ns, "TIME", "a duration"),
	OPT_CHOICE("colour", NULL, struct values, choice, colours, "a choice"),
	{ OPT_FIELD(OPT_TYPE_STR, "later", NULL, struct values, later, "X", "x"),
	  .later = "comes with Y" },
	OPT_END,
};

#define PARSE(mode, v, err, ...) \
	opt_parse(opts, mode, v, (int)ARRAY_LEN(((char *[]){ "prog", __VA_ARGS__ })), \
		  (char *[]){ "prog", __VA_ARGS__, NULL }, NULL, err)
#define STOP OPT_STOP_AT_POSITIONAL

TEST(options_accept_every_value_syntax_and_both_spellings)
{
	struct values v = { 0 };
	struct err err;
	ck_assert_int_eq(PARSE(STOP, &v, &err, "--log_dir", "a", "--max-restarts=-3", "-t3", "-m",
			       "s", "-x"),
			 6);
	ck_assert_str_eq(v.text, "a");
	ck_assert_int_eq(v.number, -3);
	ck_assert_str_eq(v.tee, "3");
	ck_assert(v.module);
	ck_assert_int_eq(
		PARSE(STOP, &v, &err, "-mt=2", "--colour", "green", "--wait=200ms", "--", "-s"), 6);
	ck_assert_str_eq(v.tee, "2");
	ck_assert_int_eq(v.choice, 1);
	ck_assert_uint_eq(v.wait_ns, 200 * NS_PER_MS);
}

TEST(options_refuse_with_the_name_and_the_remedy)
{
	static const struct {
		const char *argument, *message;
	} cases[] = {
		{ "--log-dri=x", "unknown option '--log-dri'; did you mean '--log-dir'?" },
		{ "--max-re=1",
		  "ambiguous option: --max-re could match --max-restarts, --max-retries" },
		{ "--standalone=1", "option '--standalone' takes no value, got '1'" },
		{ "--max-restarts=x", "option '--max-restarts': invalid integer 'x'" },
		{ "--colour=blue",
		  "option '--colour': invalid choice 'blue' (choose from red, green)" },
		{ "--log-dir", "option '--log-dir' needs a value: DIR" },
		{ "--later=1", "option '--later' is not supported yet: comes with Y" },
		{ "-x", "unknown option '-x'; options of your own program go behind its name" },
		{ "--learning-rate=1", "unknown option '--learning-rate'; options of your own "
				       "program go behind its name" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct values v = { 0 };
		struct err err = ERR_INIT;
		ck_assert_int_eq(PARSE(STOP, &v, &err, (char *)cases[i].argument), -EINVAL);
		ck_assert_str_eq(err.msg, cases[i].message);
	}
}

TEST(options_take_defaults_from_the_environment_and_argv_wins)
{
	struct values v = { 0 };
	struct err err;
	setenv("TEST_MAX_RESTARTS", "z", 1);
	ck_assert_int_eq(PARSE(STOP, &v, &err, "--max-restarts=1"), 2);
	ck_assert_int_eq(PARSE(STOP, &v, &err, "word"), -EINVAL);
	ck_assert_str_eq(err.msg,
			 "TEST_MAX_RESTARTS (default of '--max-restarts'): invalid integer 'z'");
	setenv("TEST_MAX_RESTARTS", "5", 1);
	setenv("TEST_STANDALONE", "1", 1);
	ck_assert_int_eq(PARSE(STOP, &v, &err, "word"), 1);
	ck_assert_int_eq(v.number, 5);
	ck_assert(v.flag);
}

TEST(permuted_options_keep_the_order_of_the_words)
{
	struct values v = { 0 };
	struct err err;
	char *argv[] = { "prog", "a", "--log-dir", "d", "b", "--", "--c", "e", NULL };
	int first = opt_parse(opts, OPT_PERMUTE, &v, 8, argv, NULL, &err);
	ck_assert_int_eq(first, 4);
	const char *expected[] = { "a", "b", "--c", "e" };
	for (int i = 0; i < 4; i++)
		ck_assert_str_eq(argv[first + i], expected[i]);
}

TEST(help_is_asked_for_only_before_the_first_word)
{
	struct values v = { 0 };
	struct err err;
	ck_assert_int_eq(PARSE(STOP, &v, &err, "--help"), OPT_WANTS_HELP);
	ck_assert_int_eq(PARSE(STOP, &v, &err, "script", "--help"), 1);
}
