#include "unit.h"

#include <string.h>

#include "core/batch/label.h"

static struct strv labels_of(const char *const *texts)
{
	struct strv labels = STRV_INIT;
	for (; *texts; texts++)
		strv_add(&labels, *texts);
	return labels;
}

#define LABELS(...) labels_of((const char *const[]){ __VA_ARGS__, NULL })

static bool holds(const char *term, const struct label_of *of)
{
	AUTO(strv_done) struct strv filter = STRV_INIT;
	struct err err = ERR_INIT;
	ck_assert_msg(label_filter_add(&filter, term, &err) == 0, "%s", err.msg);
	return label_filter_holds(&filter, of);
}

TEST(given_labels_hide_those_that_every_order_has)
{
	AUTO(strv_done) struct strv labels = LABELS("1=pointwise", "program=p", "op=add");
	AUTO(strv_done) struct strv args = LABELS("x", "y");
	AUTO(buf_done) struct buf value = BUF_INIT;
	struct label_of of = { .labels = &labels, .args = &args, .id = "i", .program = "./a" };
	static const struct {
		const char *name, *value;
	} cases[] = { { "op", "add" },	  { "1", "pointwise" }, { "2", "y" },	  { "id", "i" },
		      { "program", "p" }, { "cores", "1" },	{ "source", "" }, { "3", "" } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool found = label_value(&of, cases[i].name, &value);
		ck_assert_str_eq(buf_str(&value), cases[i].value);
		ck_assert_int_eq(found, *cases[i].value != '\0');
	}
}

TEST(every_autolabel_has_a_name_that_a_filter_may_use)
{
	static const char *const names[] = {
		"id", "program", "source", "group", "variant", "cores"
	};
	AUTO(strv_done) struct strv none = STRV_INIT;
	struct label_of of = { .labels = &none,
			       .args = &none,
			       .id = "i",
			       .program = "p",
			       .source = "s",
			       .group = "g",
			       .variant = "v",
			       .cores = 2 };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO(buf_done) struct buf value = BUF_INIT;
		ck_assert_msg(label_name_ok(names[i]), "%s", names[i]);
		ck_assert_msg(label_value(&of, names[i], &value), "%s", names[i]);
	}
}

TEST(filters_have_patterns_and_can_be_turned_around)
{
	AUTO(strv_done) struct strv labels = LABELS("op=matmul", "language=C++");
	struct label_of of = { .labels = &labels, .cores = 2 };
	static const char *const yes[] = { "op=matmul",	   "op=mat*",	 "op=*",      "op=*m*l",
					   "op=?atmul",	   "op!=add",	 "missing=",  "cores=2",
					   "language=C++", "op=m*t*ul*", "missing!=x" };
	static const char *const no[] = { "op=mat",  "op=*x*", "op!=mat*", "missing=x",
					  "op=?mul", "op!=*",  "cores!=2" };
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		ck_assert_msg(holds(yes[i], &of), "%s", yes[i]);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		ck_assert_msg(!holds(no[i], &of), "%s", no[i]);
}

TEST(a_filter_that_is_none_is_refused)
{
	static const char *const bad[] = { "", "op", "=x", "a b=c", "op!x", "!=x" };
	AUTO(strv_done) struct strv filter = STRV_INIT;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;
		ck_assert_msg(label_filter_add(&filter, bad[i], &err) < 0, "%s", bad[i]);
		ck_assert_ptr_nonnull(strstr(err.msg, "is not LABEL=PATTERN"));
	}
	ck_assert_uint_eq(filter.count, 0);
}

TEST(labels_without_names_stand_alone_for_people)
{
	AUTO(strv_done)
	struct strv labels = LABELS("1=pointwise", "2=add", "language=C++", "12x=y");
	AUTO(buf_done) struct buf text = BUF_INIT;
	label_format(&labels, &text);
	ck_assert_str_eq(buf_str(&text), "pointwise, add, language=C++, 12x=y");
}

TEST(the_name_of_a_label_has_a_limit)
{
	char name[LABEL_NAME_MAX + 2];
	memset(name, 'x', sizeof(name));
	name[LABEL_NAME_MAX + 1] = '\0';
	ck_assert(!label_name_ok(name));
	name[LABEL_NAME_MAX] = '\0';
	ck_assert(label_name_ok(name));
	ck_assert(!label_name_ok(""));
}

TEST(arguments_are_labels_by_the_names_of_their_columns)
{
	AUTO(strv_done) struct strv args = LABELS("x", "y"), names = LABELS("lr", "batch", "seed");
	AUTO(buf_done) struct buf value = BUF_INIT;
	struct label_of of = { .args = &args, .arg_names = &names };
	ck_assert(label_value(&of, "batch", &value));
	ck_assert_str_eq(buf_str(&value), "y");
	ck_assert(!label_value(&of, "seed", &value)); /* a column without an argument */
}
