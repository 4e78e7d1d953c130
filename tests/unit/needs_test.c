/* What orders need of a host, in words and as a comparison. */
#include "unit.h"

#include <string.h>

#include "core/dispatch/needs.h"

static char *const none[] = { NULL }, *const a[] = { "a", NULL }, *const ab[] = { "a", "b", NULL },
		   *const c[] = { "c", NULL };

TEST(needs_are_equal_if_hosts_and_features_are)
{
	static const struct needs all[] = {
		{ NULL, NULL }, { NULL, a }, { NULL, ab }, { NULL, c }, { a, NULL },
		{ ab, NULL },	{ a, a },    { ab, a },	   { a, ab },	{ a, c },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t j = 0; j < ARRAY_LEN(all); j++)
			ck_assert_msg(needs_equal(&all[i], &all[j]) == (i == j), "%zu %zu", i, j);
	char name[] = "a";
	char *const same[] = { name, NULL };
	ck_assert(needs_equal(&(struct needs){ same, NULL }, &(struct needs){ a, NULL }));
	ck_assert(needs_equal(&(struct needs){ none, NULL }, &(struct needs){ none, NULL }));
}

TEST(needs_read_as_a_phrase)
{
	static const struct {
		struct needs needs;
		const char *text;
	} cases[] = {
		{ { NULL, NULL }, "" },
		{ { a, NULL }, "host a" },
		{ { ab, NULL }, "host a or b" },
		{ { NULL, a }, "feature a" },
		{ { NULL, ab }, "features a and b" },
		{ { ab, c }, "host a or b with feature c" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		needs_describe(&cases[i].needs, &text);
		ck_assert_str_eq(buf_str(&text), cases[i].text);
	}
}

TEST(a_feature_is_a_short_word)
{
	static const char *const good[] = { "a", "A9", "x.y_z+q:w-e" };
	static const char *const bad[] = { "", "a b", "a,b", "a/b", "a=b", "\xc3\xa4" };
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ck_assert_msg(needs_feature_ok(good[i]) && needs_features_ok(good[i]), "%s",
			      good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(!needs_feature_ok(bad[i]), "%s", bad[i]);
	char longest[NEEDS_NAME_MAX + 1];
	memset(longest, 'a', sizeof(longest));
	longest[NEEDS_NAME_MAX] = '\0';
	ck_assert(!needs_feature_ok(longest));
	ck_assert(!needs_features_ok(longest));
	longest[NEEDS_NAME_MAX - 1] = '\0';
	ck_assert(needs_feature_ok(longest));
	ck_assert(needs_features_ok(longest));
	ck_assert(needs_features_ok("a,b"));
	ck_assert(!needs_features_ok("a,b c"));
	char list[NEEDS_FEATURES_MAX + 1];
	for (size_t i = 0; i < sizeof(list); i++)
		list[i] = i % 2 ? ',' : 'a';
	list[NEEDS_FEATURES_MAX] = '\0';
	ck_assert(!needs_features_ok(list));
	list[NEEDS_FEATURES_MAX - 1] = '\0';
	ck_assert(needs_features_ok(list));
}

TEST(a_host_is_able_if_it_has_all_that_the_kind_needs)
{
	const struct host_facts facts = { .max_width = 2, .memory = 100, .files = true };
	ck_assert(needs_host_able(&facts, &(struct order_kind){ .width = 2, .memory = 100 }));
	ck_assert(!needs_host_able(&facts, &(struct order_kind){ .width = 3 }));
	ck_assert(!needs_host_able(&facts, &(struct order_kind){ .width = 1, .memory = 101 }));
	ck_assert(needs_host_able(&facts, &(struct order_kind){ .width = 1, .files = true }));
	ck_assert(!needs_host_able(&(struct host_facts){ .max_width = 2 },
				   &(struct order_kind){ .width = 1, .files = true }));
	ck_assert(
		!needs_host_able(&facts, &(struct order_kind){ .width = 1, .needs = { a, NULL } }));
	ck_assert(
		!needs_host_able(&facts, &(struct order_kind){ .width = 1, .needs = { NULL, a } }));
}
