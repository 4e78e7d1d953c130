#include "batch/show/table.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"

/* What the ranking needs of an order. */
struct rank {
	char *name;
	double mean, stddev;
};

struct table {
	struct buf *out;
	bool blocks; /* a block for each order, not a line */
	struct rank *ranks;
	size_t count, cap;
	size_t entries, repeated;
};

static void table_done(struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->ranks[i].name);
	free(table->ranks);
}

static void count_entry(const struct export_entry *entry, void *arg)
{
	struct table *table = arg;
	table->entries++;
	table->repeated += entry->n > 1;
}

struct unit {
	double scale;
	const char *name;
};

static struct unit unit_for(double seconds)
{
	return seconds < 1 ? (struct unit){ 1000, "ms" } : (struct unit){ 1, "s" };
}

static void put_block(struct buf *out, const struct export_entry *entry, size_t number,
		      const char *name)
{
	struct unit unit = unit_for(entry->mean);
	double k = unit.scale;
	const char *u = unit.name;
	int digits = k > 1 ? 1 : 3;
	buf_printf(out, "Benchmark %zu: %s\n", number, name);
	if (entry->n > 1)
		buf_printf(out, "  Time (mean ± σ):   %8.*f %s ± %5.*f %s", digits, k * entry->mean,
			   u, digits, k * entry->stddev, u);
	else
		buf_printf(out, "  Time (abs ≡):      %8.*f %s          ", digits, k * entry->mean,
			   u);
	if (isfinite(entry->user) && isfinite(entry->system))
		buf_printf(out, "    [User: %.*f %s, System: %.*f %s]", digits, k * entry->user, u,
			   digits, k * entry->system, u);
	buf_append_char(out, '\n');
	if (entry->n > 1)
		buf_printf(out, "  Range (min … max): %8.*f %s … %5.*f %s    %zu runs\n", digits,
			   k * entry->min, u, digits, k * entry->max, u, entry->n);
	if (entry->left_out)
		buf_printf(out, "  %zu suspect run%s left out: the host was not quiet\n",
			   entry->left_out, entry->left_out == 1 ? "" : "s");
	if (entry->all_suspect)
		buf_append_str(out, "  all runs are suspect: the host was not quiet\n");
	buf_append_char(out, '\n');
}

static void put_line(struct buf *out, const struct export_entry *entry, const char *name)
{
	struct unit unit = unit_for(entry->mean);
	buf_printf(out, "%8.1f %s ± %.1f, %.1f … %.1f, %zu runs%s: %s\n", entry->mean * unit.scale,
		   unit.name, entry->stddev * unit.scale, entry->min * unit.scale,
		   entry->max * unit.scale, entry->n, entry->all_suspect ? ", all suspect" : "",
		   name);
}

static void put_entry(const struct export_entry *entry, void *arg)
{
	struct table *table = arg;
	AUTO(buf_done) struct buf name = BUF_INIT;
	export_name(entry, &name);
	utf8_make_rest_printable(&name, 0, "");
	if (table->blocks)
		put_block(table->out, entry, table->count + 1, buf_str(&name));
	else
		put_line(table->out, entry, buf_str(&name));
	ARRAY_RESERVE(table->ranks, table->count, table->cap);
	table->ranks[table->count++] =
		(struct rank){ buf_take_str(&name), entry->mean, entry->n > 1 ? entry->stddev : 0 };
}

static int compare_means(const void *a, const void *b)
{
	double x = ((const struct rank *)a)->mean, y = ((const struct rank *)b)->mean;
	return (x > y) - (x < y);
}

/* The spread of a ratio from those of both sides, which are independent of each other. */
static double ratio_spread(const struct rank *slow, const struct rank *fast)
{
	double ratio = slow->mean / fast->mean;
	return ratio * hypot(slow->stddev / slow->mean, fast->stddev / fast->mean);
}

static void put_ranking(struct table *table)
{
	const struct rank *fast = table->ranks;
	if (table->count < 2)
		return;
	qsort(table->ranks, table->count, sizeof(*table->ranks), compare_means);
	if (!(fast->mean > 0))
		return;
	buf_printf(table->out, "Summary\n  %s ran\n", fast->name);
	for (size_t i = 1; i < table->count; i++)
		buf_printf(table->out, "%8.2f ± %.2f times faster than %s\n",
			   table->ranks[i].mean / fast->mean, ratio_spread(&table->ranks[i], fast),
			   table->ranks[i].name);
}

void table_format(const struct export_source *source, struct buf *out)
{
	AUTO(table_done) struct table table = { .out = out };
	export_each(source, count_entry, &table);
	if (table.repeated == 0)
		return;
	table.blocks = table.entries <= TABLE_BLOCKS_MAX;
	export_each(source, put_entry, &table);
	put_ranking(&table);
}
