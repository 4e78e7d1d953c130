/* What was found when a host was checked: a list of results, each with its remedy. */
#ifndef CORE_CHECKS_CHECK_H
#define CORE_CHECKS_CHECK_H

#include "base/buf.h"

#define CHECK_NAME_MAX 64
#define CHECK_TEXT_MAX 512
#define CHECK_FIGURES_MAX 8
#define CHECK_FACTS_MAX 4

enum check_state {
	CHECK_OK,
	CHECK_UNKNOWN, /* the check itself failed: that says nothing about the host */
	CHECK_WARNING, /* workers can run here, perhaps badly */
	CHECK_BAD,     /* they cannot */
	CHECK_STATE_COUNT,
};

/* A number to compare with that of other hosts: "speed", 3.1, "GFLOP/s". */
struct check_figure {
	char name[CHECK_NAME_MAX];
	char unit[CHECK_NAME_MAX];
	double value;
};

/* A word that should be the same on all hosts: "torch", "2.13.0". */
struct check_fact {
	char name[CHECK_NAME_MAX];
	char value[CHECK_NAME_MAX];
};

struct check_result {
	char name[CHECK_NAME_MAX];
	enum check_state state;
	char text[CHECK_TEXT_MAX];
	char remedy[CHECK_TEXT_MAX]; /* "": none is needed */
	struct check_figure figures[CHECK_FIGURES_MAX];
	size_t figure_count;
	struct check_fact facts[CHECK_FACTS_MAX];
	size_t fact_count;
};

struct check_list {
	struct check_result *items;
	size_t count, cap;
};

#define CHECK_LIST_INIT ((struct check_list){ .items = NULL })
void check_list_done(struct check_list *list);
void check_list_add(struct check_list *list, const struct check_result *result);

/* Texts become printable and are cut at their limits. A finding replaces one that is less bad; the
 * other way round only its text is added. */
void check_say(struct check_result *result, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_find(struct check_result *result, enum check_state state, const char *remedy,
		const char *fmt, ...) PRINTF_LIKE(4, 5);
void check_measure(struct check_result *result, const char *name, double value, const char *unit);
void check_state_fact(struct check_result *result, const char *name, const char *value);
void check_make_printable(struct check_result *result);

const char *check_state_name(enum check_state state);
enum check_state check_list_worst(const struct check_list *list);

/* A line for each result, its remedy below it, and a line that counts. */
void check_list_print(const struct check_list *list, struct buf *out);

#endif
