#include "run/checks/node_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/json_out.h"

void node_table_done(struct node_table *table)
{
	free(table->rows);
	*table = NODE_TABLE_INIT;
}

static struct node_row *add_row(struct node_table *table, bool unfit)
{
	if (table->count >= NODE_TABLE_MAX && !unfit)
		return NULL;
	ARRAY_RESERVE(table->rows, table->count, table->cap);
	return &table->rows[table->count++];
}

static void add_member(struct node_table *table, const struct member *member)
{
	struct node_row *row = add_row(table, member->bad);
	if (!row)
		return;
	*row = (struct node_row){ .in_round = member->in_round, .unfit = member->bad };
	snprintf(row->name, sizeof(row->name), "%s", member->name);
	str_make_printable(row->name);
	if (member->why)
		snprintf(row->why, sizeof(row->why), "%s", member->why);
	if (member->checks)
		row->checks = *member->checks;
}

static bool has_row(const struct node_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (str_eq(table->rows[i].name, name))
			return true;
	return false;
}

void node_table_update(struct node_table *table, const struct coordinator *c)
{
	struct node_table now = NODE_TABLE_INIT;
	bool any = table->count > 0;
	for (size_t i = 0; i < c->roster.count; i++)
		any |= c->roster.members[i]->checks || c->roster.members[i]->bad;
	if (!any)
		return;
	for (size_t i = 0; i < c->roster.count; i++)
		if (c->roster.members[i]->link)
			add_member(&now, c->roster.members[i]);
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].unfit && !has_row(&now, table->rows[i].name)) {
			table->rows[i].in_round = false;
			*add_row(&now, true) = table->rows[i];
		}
	node_table_done(table);
	*table = now;
}

static void put_row(const struct node_row *row, struct json_out *out)
{
	json_out_open(out, NULL, '{');
	json_out_text(out, "name", row->name);
	json_out_bool(out, "in_round", row->in_round);
	json_out_bool(out, "fit", !row->unfit);
	json_out_text_if(out, "why", row->why);
	json_out_open(out, "figures", '{');
	for (size_t i = 0; i < row->checks.figure_count; i++)
		json_out_real(out, row->checks.figures[i].name, row->checks.figures[i].value);
	json_out_close(out, '}');
	json_out_open(out, "facts", '{');
	for (size_t i = 0; i < row->checks.fact_count; i++)
		json_out_text(out, row->checks.facts[i].name, row->checks.facts[i].value);
	json_out_close(out, '}');
	json_out_close(out, '}');
}

void node_table_json(const struct node_table *table, struct json_out *out)
{
	if (table->count == 0)
		return;
	json_out_open(out, "nodes", '[');
	for (size_t i = 0; i < table->count; i++)
		put_row(&table->rows[i], out);
	json_out_close(out, ']');
}

size_t node_table_unfit(const struct node_table *table, struct buf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].unfit)
			buf_printf(out, "%s%.*s", count++ ? "," : "",
				   (int)strcspn(table->rows[i].name, "."), table->rows[i].name);
	return count;
}
