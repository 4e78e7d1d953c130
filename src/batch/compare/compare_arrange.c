/* Groups by label, as a tree, and what sorts inside them. */
#include "batch/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

/* ---- options ---- */

int compare_parse_groups(const char *text, struct compare_groups *ret_groups, struct err *err)
{
	size_t len;
	strv_done(&ret_groups->labels);
	ret_groups->given = true;
	if (str_eq(text, "none"))
		return 0;
	for (const char *piece; (piece = str_split(&text, ',', &len));) {
		AUTO_FREE char *label = mem_strndup(piece, len);
		if (!label_name_ok(label))
			return err_set(err, EINVAL, "'%s' is not the name of a label", label);
		strv_add(&ret_groups->labels, label);
	}
	return 0;
}

int compare_parse_sort(const char *text, struct compare_sort *ret_sort, struct err *err)
{
	static const struct {
		const char *name;
		enum compare_sort_by by;
	} words[] = { { "ratio", COMPARE_BY_RATIO },
		      { "listed", COMPARE_BY_LIST },
		      { "name", COMPARE_BY_NAME } };
	*ret_sort = (struct compare_sort){ .by = COMPARE_BY_LABEL, .label = text };
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(words[i].name, text))
			ret_sort->by = words[i].by;
	return label_name_ok(text)
		       ? 0
		       : err_set(err, EINVAL,
				 "'%s' is not ratio, listed, name or the name of a label", text);
}

/* ---- groups ---- */

static void set_labels(struct compare_row *row)
{
	const struct strv *labels = &row->a_order->labels;
	if (labels->count == 0)
		return;
	for (size_t i = 0; i + 1 < labels->count; i++)
		strv_add(&row->groups, label_shown(labels->items[i]));
	row->name = label_shown(labels->items[labels->count - 1]);
}

static void set_groups(struct compare_row *row, const struct compare_groups *groups)
{
	AUTO(buf_done) struct buf value = BUF_INIT;
	struct label_of of = samples_labels(row->a_order);
	for (size_t i = 0; i < groups->labels.count; i++) {
		const char *name = groups->labels.items[i];
		label_value(&of, name, &value);
		AUTO_FREE char *label = mem_printf("%s=%s", name, buf_str(&value));
		strv_add(&row->groups, label_shown(label));
	}
}

size_t compare_shared_groups(const struct compare_row *row, const struct compare_row *before)
{
	size_t shared = 0;
	if (!before || before->metric != row->metric)
		return 0;
	while (shared < row->groups.count && shared < before->groups.count &&
	       str_eq(row->groups.items[shared], before->groups.items[shared]))
		shared++;
	return shared;
}

/* ---- sorting ---- */

/* Where every group of a row was first seen in the list, from the outermost; then the row itself.
 */
struct arranged {
	struct compare_row row;
	uint32_t *places; /* row.groups.count of them */
	char *label;	  /* the value to sort by; NULL: another sort */
};

static void set_places(struct arranged *item, struct map *seen)
{
	AUTO(buf_done) struct buf path = BUF_INIT;
	item->places = NEW_ARRAY(uint32_t, item->row.groups.count + 1);
	for (size_t i = 0; i < item->row.groups.count; i++) {
		buf_append(&path, item->row.groups.items[i], strlen(item->row.groups.items[i]) + 1);
		uintptr_t place = (uintptr_t)map_get(seen, buf_data(&path), buf_len(&path));
		if (!place) {
			place = seen->count + 1;
			map_put(seen, buf_data(&path), buf_len(&path), (void *)place);
		}
		item->places[i] = (uint32_t)place;
	}
}

static int by_listed(const void *left, const void *right)
{
	const struct arranged *a = left, *b = right;
	size_t x = a->row.a_order->number, y = b->row.a_order->number;
	return (x > y) - (x < y);
}

static int by_ratio(const struct compare_row *a, const struct compare_row *b)
{
	double x = a->ratio.value, y = b->ratio.value;
	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x < y) - (x > y);
}

/* Numbers by their value, other texts by their bytes. */
static int by_text(const char *a, const char *b)
{
	double x, y;
	if (str_to_double(a, &x) == 0 && str_to_double(b, &y) == 0 && x != y)
		return (x > y) - (x < y);
	return strcmp(a, b);
}

static int by_sort(const struct arranged *a, const struct arranged *b,
		   const struct compare_sort *sort)
{
	switch (sort->by) {
	case COMPARE_BY_RATIO:
		return by_ratio(&a->row, &b->row);
	case COMPARE_BY_NAME:
		return by_text(a->row.name, b->row.name);
	case COMPARE_BY_LABEL:
		return by_text(a->label, b->label);
	case COMPARE_BY_LIST:
		break;
	}
	return 0;
}

static int by_all(const void *left, const void *right, void *arg)
{
	const struct arranged *a = left, *b = right;
	if (a->row.metric != b->row.metric)
		return (a->row.metric > b->row.metric) - (a->row.metric < b->row.metric);
	size_t depth = MIN(a->row.groups.count, b->row.groups.count);
	for (size_t i = 0; i < depth; i++)
		if (a->places[i] != b->places[i])
			return a->places[i] < b->places[i] ? -1 : 1;
	/* An order of the outer group comes before the inner groups. */
	if (a->row.groups.count != b->row.groups.count)
		return a->row.groups.count < b->row.groups.count ? -1 : 1;
	int order = by_sort(a, b, arg);
	return order ? order : by_listed(a, b);
}

static void prepare(struct arranged *item, const struct comparison *c)
{
	struct compare_row *row = &item->row;
	const struct compare_options *options = &c->options;
	AUTO(buf_done) struct buf value = BUF_INIT;
	row->name = compare_order_name(row->a_order);
	if (options->groups.given)
		set_groups(row, &options->groups);
	else
		set_labels(row);
	if (options->sort.by != COMPARE_BY_LABEL)
		return;
	struct label_of of = samples_labels(row->a_order);
	label_value(&of, options->sort.label, &value);
	item->label = buf_take_str(&value);
}

/* Two orders with the same labels are told apart by their own names. */
static void name_twins(struct comparison *c)
{
	for (size_t i = 1; i < c->row_count; i++) {
		struct compare_row *row = &c->rows[i], *before = row - 1;
		if (row->metric != before->metric || row->groups.count != before->groups.count ||
		    compare_shared_groups(row, before) < row->groups.count ||
		    !str_eq(row->name, before->name))
			continue;
		row->name = compare_order_name(row->a_order);
		before->name = compare_order_name(before->a_order);
	}
}

void compare_arrange(struct comparison *c)
{
	AUTO(map_done) struct map seen = MAP_INIT;
	AUTO_FREE struct arranged *items = mem_alloc((c->row_count + 1) * sizeof(*items));
	for (size_t i = 0; i < c->row_count; i++) {
		items[i].row = c->rows[i];
		prepare(&items[i], c);
	}
	qsort(items, c->row_count, sizeof(*items), by_listed);
	for (size_t i = 0; i < c->row_count; i++)
		set_places(&items[i], &seen);
	qsort_r(items, c->row_count, sizeof(*items), by_all, &c->options.sort);
	for (size_t i = 0; i < c->row_count; i++) {
		c->rows[i] = items[i].row;
		free(items[i].places);
		free(items[i].label);
	}
	name_twins(c);
}
