/* Any bytes as arguments and template: no crash, and every row gives one order, in which no
 * argument can end the quotes around it. The first byte chooses how to cut, the text up to the next
 * NUL is the template, the rest the input. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/args/fill.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct arg_sources *sources, const char *text, uint8_t choice)
{
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	struct err err = ERR_INIT;
	size_t rows = 0;
	struct arg_filling filling = {
		.command = { .text = text,
			     .context = choice & 16,
			     .replace = choice & 32 ? "," : NULL },
		.sources = sources,
		.fill = choice & 16 ? ARG_FILL_SPREAD : ARG_FILL_ROW,
		.jobs = 3,
		.max_rows = choice & 64 ? 2 : 0,
		.tag = choice & 128 ? "{}{1}" : NULL,
	};
	if (orders_add_filled(&orders, &filling, &err) < 0)
		return;
	arg_sources_rows(sources, &rows, &err);
	if (filling.fill == ARG_FILL_ROW && filling.max_rows == 0 && orders.count != rows)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arg_cutter_done) struct arg_cutter cutter = { .has_regex = false };
	AUTO(arg_sources_done) struct arg_sources sources = ARG_SOURCES_INIT;
	struct err err = ERR_INIT;
	if (size < 2)
		return 0;
	uint8_t choice = data[0];
	AUTO_FREE char *text = mem_strndup((const char *)data + 1, size - 1);
	size_t used = 1 + strlen(text) + 1;
	static const char *const separators[] = { NULL, ",", " +", "\\t" };
	struct arg_format format = { .end = choice & 1 ? '\0' : '\n',
				     .csv = choice & 2,
				     .skip_empty = choice & 4,
				     .colsep = separators[choice % ARRAY_LEN(separators)] };
	if (used > size || arg_cutter_init(&cutter, &format, &err) < 0)
		return 0;
	struct arg_source *source = arg_sources_append(&sources, &err);
	if (arg_records_read(&source->records, &cutter, (const char *)data + used, size - used,
			     &err) < 0)
		return 0;
	if (choice & 8 && arg_sources_take_header(&sources, &err) < 0)
		return 0;
	check(&sources, text, choice);
	return 0;
}
