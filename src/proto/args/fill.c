#include "proto/args/fill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/args/words.h"

/* What stays the same for all orders of a filling. */
struct filler {
	const struct arg_filling *filling;
	struct strv names, param_names;
	struct arg_template templates[3]; /* command, tag, output; without text: none */
	size_t rows, base_len;
};

static void filler_done(struct filler *filler)
{
	strv_done(&filler->names);
	strv_done(&filler->param_names);
}

static int filler_init(struct filler *filler, const struct arg_filling *filling, struct err *err)
{
	const char *plain[] = { filling->tag, filling->output };
	*filler = (struct filler){ .filling = filling, .rows = 1 };
	if (filling->sources)
		arg_sources_names(filling->sources, &filler->names);
	if (filling->params)
		arg_sources_names(filling->params, &filler->param_names);
	filler->templates[0] = filling->command;
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		filler->templates[i + 1] =
			(struct arg_template){ .text = plain[i], .raw = true, .closed = true };
	for (size_t i = 0; i < ARRAY_LEN(filler->templates); i++) {
		struct arg_template *template = &filler->templates[i];
		template->names = &filler->names;
		template->param_names = &filler->param_names;
		int r = template->text ? arg_template_check(template, err) : 0;
		if (r < 0)
			return r;
	}
	return filling->sources ? arg_sources_rows(filling->sources, &filler->rows, err) : 0;
}

/* ---- how many rows an order takes ---- */

static size_t expanded_len(const struct filler *filler, const struct arg_row *row)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct arg_values values = { .row = row, .number = ORDERS_MAX };
	arg_template_expand(&filler->templates[0], &values, &text);
	return buf_len(&text);
}

/* What a row adds to the line, without the blank before it where there is a place. */
static size_t row_cost(const struct filler *filler, size_t index)
{
	AUTO(arg_row_done) struct arg_row row = ARG_ROW_INIT;
	arg_sources_row(filler->filling->sources, index, &row);
	size_t len = expanded_len(filler, &row);
	return len > filler->base_len ? len - filler->base_len : 0;
}

/* The number of rows from `first` on for one order. */
static size_t take_rows(struct filler *filler, size_t first, struct err *err)
{
	const struct arg_filling *filling = filler->filling;
	size_t left = filler->rows - first, limit = filling->max_rows ? filling->max_rows : left;
	if (filling->fill == ARG_FILL_ROW)
		return MIN(left, filling->max_rows ? filling->max_rows : 1);
	if (filling->fill == ARG_FILL_SPREAD)
		limit = MIN(limit, (filler->rows + filling->jobs - 1) / MAX(filling->jobs, 1));
	size_t room = filling->max_chars ? filling->max_chars : ARG_LINE_MAX, count = 0;
	size_t used = filler->base_len + 1; /* and its end */
	bool has_place = arg_template_has_place(&filler->templates[0]);
	for (limit = MIN(limit, left); count < limit; count++) {
		size_t cost = row_cost(filler, first + count) + (has_place && count > 0);
		if (used + cost > room)
			break;
		used += cost;
	}
	if (count == 0)
		err_set(err, E2BIG, "argument %zu does not fit into a command of %zu bytes",
			first + 1, room);
	return count;
}

/* ---- orders ---- */

static void join_raw(const struct arg_row *row, struct buf *out)
{
	for (size_t i = 0; i < row->count; i++) {
		buf_append_str(out, i ? " " : "");
		buf_append_str(out, row->args[i]);
	}
}

static char *expand(const struct arg_template *template, const struct arg_values *values,
		    bool *ret_uses_slot)
{
	struct buf text = BUF_INIT;
	if (*template->text) {
		*ret_uses_slot = arg_template_expand(template, values, &text);
	} else {
		*ret_uses_slot = false;
		join_raw(values->row, &text);
	}
	return buf_take_str(&text);
}

static bool has_names(const struct filler *filler)
{
	for (size_t i = 0; i < filler->names.count; i++)
		if (*filler->names.items[i])
			return true;
	return filler->param_names.count > 0;
}

static void note_args(struct order *order, const struct filler *filler,
		      const struct arg_values *values)
{
	struct order_extra *extra = order_extra(order);
	const struct arg_row *rows[] = { values->params, values->row };
	const struct strv *names[] = { &filler->param_names, &filler->names };
	bool named = has_names(filler);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; rows[i] && k < rows[i]->count; k++) {
			strv_add(&extra->args, rows[i]->args[k]);
			if (named)
				strv_add(&extra->arg_names,
					 k < names[i]->count ? names[i]->items[k] : "");
		}
}

static void fill_order(struct order *order, const struct filler *filler,
		       const struct arg_values *values)
{
	bool unused;
	order->line = (uint32_t)values->number;
	order->shell = expand(&filler->templates[0], values, &order->uses_slot);
	bool has_args = (values->row->count > 0 && filler->filling->sources) || values->params;
	if (has_args && *filler->templates[0].text)
		note_args(order, filler, values);
	if (filler->templates[1].text)
		order_extra(order)->tag = expand(&filler->templates[1], values, &unused);
	if (filler->templates[2].text)
		order_extra(order)->output_path = expand(&filler->templates[2], values, &unused);
	order_close(order);
}

static int add_order(struct orders *orders, const struct filler *filler,
		     const struct arg_values *values, struct err *err)
{
	struct arg_values numbered = *values;
	if (orders->count >= ORDERS_MAX)
		return err_set(err, E2BIG, "more than %d orders", ORDERS_MAX);
	numbered.number = orders->count + 1;
	fill_order(orders_append(orders), filler, &numbered);
	return 0;
}

int orders_refill(struct orders *orders, size_t index, const struct arg_filling *filling,
		  uint64_t number, struct err *err)
{
	AUTO(filler_done) struct filler filler;
	int r = filler_init(&filler, filling, err);
	if (r < 0)
		return r;
	struct order *order = orders_renew(orders, index);
	const char *nothing = "";
	struct arg_row row = { .args = &nothing, .count = 1 };
	fill_order(order, &filler, &(struct arg_values){ .row = &row, .number = (size_t)number });
	order_set_copy(order, number);
	return 0;
}

static int add_orders(struct orders *orders, struct filler *filler, const struct arg_row *params,
		      struct err *err)
{
	for (size_t first = 0, count; first < filler->rows; first += count) {
		AUTO(arg_row_done) struct arg_row row = ARG_ROW_INIT;
		count = take_rows(filler, first, err);
		if (count == 0)
			return -E2BIG;
		for (size_t i = 0; i < count && filler->filling->sources && !filler->filling->drop;
		     i++)
			arg_sources_row(filler->filling->sources, first + i, &row);
		struct arg_values values = { .row = &row, .params = params };
		int r = add_order(orders, filler, &values, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int orders_add_filled(struct orders *orders, const struct arg_filling *filling, struct err *err)
{
	AUTO(filler_done) struct filler filler;
	size_t sets = 1;
	int r = filler_init(&filler, filling, err);
	if (r >= 0 && filling->params)
		r = arg_sources_rows(filling->params, &sets, err);
	filler.base_len = r >= 0 ? expanded_len(&filler, &ARG_ROW_INIT) : 0;
	for (size_t i = 0; r >= 0 && i < sets; i++) {
		AUTO(arg_row_done) struct arg_row params = ARG_ROW_INIT;
		if (filling->params)
			arg_sources_row(filling->params, i, &params);
		r = add_orders(orders, &filler, filling->params ? &params : NULL, err);
	}
	return r;
}

int orders_add_template(struct orders *orders, int argc, char *const *argv, struct err *err)
{
	struct arg_words words;
	AUTO(arg_sources_done) struct arg_sources sources = ARG_SOURCES_INIT;
	const struct arg_cutter whole = { .format = { .end = '\n' } };
	int r = arg_words_parse(&words, argc, argv, err);
	for (size_t i = 0; r >= 0 && i < words.list_count; i++)
		r = words.lists[i].files
			    ? err_set(err, EINVAL, "files of arguments (::::) do not work here")
			    : arg_sources_add_words(&sources, &words.lists[i], &whole, err);
	if (r < 0)
		return r;
	AUTO_FREE char *command = arg_words_command(&words, false);
	struct arg_filling filling = { .command = { .text = command }, .sources = &sources };
	return orders_add_filled(orders, &filling, err);
}
