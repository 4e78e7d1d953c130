/* The part of the list that a page asks for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/dash/roster_private.h"
#include "proto/json_value.h"

void roster_query_done(struct roster_query *query)
{
	free(query->text);
	strv_done(&query->labels);
	*query = ROSTER_QUERY_INIT;
}

/* NULL: it is absent or empty. */
static int read_text(struct json_value root, const char *key, char **ret_text, struct err *err)
{
	struct json_value value = json_value_get(root, key);
	*ret_text = NULL;
	if (value.kind == JSON_NONE)
		return 0;
	AUTO_FREE char *text = json_value_text(value);
	if (!text || strlen(text) > ROSTER_QUERY_TEXT)
		return err_set(err, EINVAL, "\"%s\" is not a text of at most %d bytes", key,
			       ROSTER_QUERY_TEXT);
	if (*text)
		*ret_text = mem_strdup(text);
	return 0;
}

static int read_state(struct json_value root, struct roster_query *query, struct err *err)
{
	AUTO_FREE char *name = NULL;
	int r = read_text(root, "state", &name, err);
	if (r < 0 || !name)
		return r;
	for (int i = 0; i < ROSTER_STATE_COUNT; i++)
		if (str_eq(name, roster_state_name((enum roster_state)i)))
			query->state = i;
	return query->state < 0 ? err_set(err, EINVAL, "\"state\" is not the name of one") : 0;
}

/* Of letters only those of ASCII have a lower case here. */
static void make_lower(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text - 'A' + 'a');
}

int roster_query_parse(struct bytes text, struct roster_query *ret_query, struct err *err)
{
	struct json_value root;
	AUTO_FREE char *label = NULL;
	int64_t from = 0;
	*ret_query = ROSTER_QUERY_INIT;
	if (text.len == 0 || json_value_parse((const char *)text.data, text.len, &root) < 0 ||
	    root.kind != JSON_OBJECT)
		return err_set(err, EINVAL, "this is not a JSON object");
	struct json_value at = json_value_get(root, "from");
	if (at.kind != JSON_NONE && (!json_value_int(at, &from) || from < 0))
		return err_set(err, EINVAL, "\"from\" is not a place in the list");
	ret_query->from = (uint64_t)from;
	int r = read_state(root, ret_query, err);
	if (r >= 0)
		r = read_text(root, "text", &ret_query->text, err);
	if (r >= 0 && ret_query->text)
		make_lower(ret_query->text);
	if (r >= 0)
		r = read_text(root, "label", &label, err);
	if (r >= 0 && label)
		r = label_filter_add(&ret_query->labels, label, err);
	return r < 0 ? r : 0;
}

static bool has_text(const struct order *order, const char *text)
{
	AUTO(buf_done) struct buf all = BUF_INIT;
	order_append_id(order, &all);
	buf_append_char(&all, '\n');
	order_append_command(order, 0, &all);
	if (order->extra) {
		buf_append_char(&all, '\n');
		label_format(&order->extra->labels, &all);
	}
	AUTO_FREE char *lower = buf_take_str(&all);
	make_lower(lower);
	return strstr(lower, text) != NULL;
}

static bool passes(const struct roster *roster, const struct roster_query *query, size_t index)
{
	if (query->state >= 0 && roster->rows[index].state != query->state)
		return false;
	if (!query->text && query->labels.count == 0)
		return true;
	const struct order *order = roster->order(roster->arg, index);
	if (query->text && !has_text(order, query->text))
		return false;
	if (query->labels.count == 0)
		return true;
	AUTO_FREE char *program = order_program(order);
	const struct label_of of = order_labels(order, program);
	return label_filter_holds(&query->labels, &of);
}

void roster_put_rows(const struct roster *roster, const struct roster_query *query,
		     struct buf *text)
{
	struct json_out out = JSON_OUT(text, .ascii = true);
	uint64_t count = 0;
	json_out_open(&out, NULL, '{');
	json_out_open(&out, "rows", '[');
	for (size_t i = 0; i < roster->count; i++) {
		if (!passes(roster, query, i))
			continue;
		uint64_t at = count++;
		if (at < query->from || at - query->from >= ROSTER_ROWS)
			continue;
		json_out_open(&out, NULL, '[');
		roster_put_row(roster, i, &out);
		roster_put_order(roster->order(roster->arg, i), true, &out);
		json_out_close(&out, ']');
	}
	json_out_close(&out, ']');
	json_out_int(&out, "count", (int64_t)count);
	json_out_int(&out, "from", (int64_t)query->from);
	json_out_close(&out, '}');
}
