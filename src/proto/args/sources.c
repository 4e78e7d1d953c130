#include "proto/args/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/args/regex.h"
#include "proto/orders.h"

#define DECIMALS_MAX 9

/* ---- records ---- */

#define CSV_SEPARATOR ','

int arg_cutter_init(struct arg_cutter *cutter, const struct arg_format *format, struct err *err)
{
	*cutter = (struct arg_cutter){ .format = *format };
	if (!format->colsep)
		return 0;
	if (format->csv)
		return strlen(format->colsep) == 1 || str_eq(format->colsep, "\\t")
			       ? 0
			       : err_set(err, EINVAL, "--csv needs a single character as --colsep");
	int r = regex_compile(&cutter->regex, format->colsep, 0, NULL, err);
	cutter->has_regex = r == 0;
	return r < 0 ? err_wrap(err, "--colsep '%.64s'", format->colsep) : 0;
}

void arg_cutter_done(struct arg_cutter *cutter)
{
	if (cutter->has_regex)
		regfree(&cutter->regex);
	cutter->has_regex = false;
}

void arg_records_done(struct arg_records *records)
{
	for (size_t i = 0; i < records->count; i++)
		strv_done(&records->items[i]);
	free(records->items);
	*records = ARG_RECORDS_INIT;
}

/* ---- one record ---- */

static int check_text(const char *text, size_t len, size_t number, struct err *err)
{
	if (memchr(text, '\0', len))
		return err_set(err, EINVAL, "argument %zu contains a NUL byte (see -0)", number);
	if (memchr(text, ORDER_SLOT_MARK, len))
		return err_set(err, EINVAL, "an argument contains the byte 1");
	return 0;
}

static struct strv *new_record(struct arg_records *records)
{
	ARRAY_RESERVE(records->items, records->count, records->cap);
	struct strv *record = &records->items[records->count++];
	*record = STRV_INIT;
	return record;
}

static int cut_columns(struct strv *record, const struct arg_cutter *cutter, const char *text,
		       struct err *err)
{
	regmatch_t match;
	while (cutter->has_regex && regexec(&cutter->regex, text, 1, &match, 0) == 0) {
		if (match.rm_eo == 0 || record->count >= ARG_COLUMNS_MAX)
			return err_set(err, EINVAL, "--colsep matches nothing at '%.32s'", text);
		strv_take(record, mem_strndup(text, (size_t)match.rm_so));
		text += match.rm_eo;
	}
	strv_add(record, text);
	return 0;
}

/* ---- CSV ---- */

static char csv_separator(const struct arg_cutter *cutter)
{
	const char *colsep = cutter->format.colsep;
	if (!colsep)
		return CSV_SEPARATOR;
	return str_eq(colsep, "\\t") ? '\t' : *colsep;
}

/* One column from `text` on: returns the byte behind it, the separator, the end of the record, or
 * `end`; NULL if a quote stays open. */
static const char *csv_column(const char *text, const char *end, char separator, char record_end,
			      struct buf *ret_column)
{
	bool quoted = false;
	const char *start = text;
	for (; text < end; text++) {
		if (*text == '"' && (quoted || text == start)) {
			if (quoted && text + 1 < end && text[1] == '"')
				buf_append_char(ret_column, *++text);
			else
				quoted = !quoted;
		} else if (!quoted && (*text == separator || *text == record_end)) {
			break;
		} else {
			buf_append_char(ret_column, *text);
		}
	}
	return quoted ? NULL : text;
}

static int read_csv(struct arg_records *records, const struct arg_cutter *cutter, const char *text,
		    size_t len, struct err *err)
{
	const char *end = text + len;
	char separator = csv_separator(cutter), record_end = cutter->format.end;
	struct strv *record = NULL;
	while (text < end || record) {
		AUTO(buf_done) struct buf column = BUF_INIT;
		if (records->count >= ARG_RECORDS_MAX)
			return err_set(err, E2BIG, "more than %d records", ARG_RECORDS_MAX);
		if (!record)
			record = new_record(records);
		const char *behind = csv_column(text, end, separator, record_end, &column);
		if (!behind)
			return err_set(err, EINVAL, "record %zu: a quote is not closed",
				       records->count);
		bool last = behind == end || *behind == record_end;
		size_t size = buf_len(&column);
		if (last && record_end == '\n' && size > 0 && buf_data(&column)[size - 1] == '\r')
			size--;
		int r = check_text(buf_str(&column), size, records->count, err);
		if (r < 0)
			return r;
		strv_take(record, mem_strndup(buf_str(&column), size));
		text = behind == end ? end : behind + 1;
		record = last ? NULL : record;
	}
	return 0;
}

/* ---- whole texts ---- */

int arg_records_add(struct arg_records *records, const struct arg_cutter *cutter, const char *word,
		    struct err *err)
{
	int r = check_text(word, strlen(word), records->count + 1, err);
	if (r < 0)
		return r;
	if (cutter->format.csv && *word)
		return read_csv(records, cutter, word, strlen(word), err);
	return cut_columns(new_record(records), cutter, word, err);
}

int arg_records_read(struct arg_records *records, const struct arg_cutter *cutter, const char *text,
		     size_t len, struct err *err)
{
	const struct arg_format *format = &cutter->format;
	if (format->csv)
		return read_csv(records, cutter, text, len, err);
	for (const char *end = text + len; text < end;) {
		const char *stop = memchr(text, format->end, (size_t)(end - text));
		size_t size = (size_t)((stop ? stop : end) - text);
		if (records->count >= ARG_RECORDS_MAX)
			return err_set(err, E2BIG, "more than %d arguments", ARG_RECORDS_MAX);
		int r = check_text(text, size, records->count + 1, err);
		if (r < 0)
			return r;
		AUTO_FREE char *record = mem_strndup(text, size);
		if (format->eof && str_eq(record, format->eof))
			return 0;
		text += size + 1;
		if (size == 0 && format->skip_empty)
			continue;
		r = cut_columns(new_record(records), cutter, record, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- sources ---- */

void arg_sources_done(struct arg_sources *sources)
{
	for (size_t i = 0; i < sources->count; i++) {
		arg_records_done(&sources->items[i].records);
		strv_done(&sources->items[i].names);
	}
	sources->count = 0;
}

void arg_row_done(struct arg_row *row)
{
	free(row->args);
	*row = ARG_ROW_INIT;
}

struct arg_source *arg_sources_append(struct arg_sources *sources, struct err *err)
{
	if (sources->count == ARG_SOURCES_MAX) {
		err_set(err, E2BIG, "more than %d lists of arguments", ARG_SOURCES_MAX);
		return NULL;
	}
	struct arg_source *source = &sources->items[sources->count++];
	*source = (struct arg_source){ .records = ARG_RECORDS_INIT };
	return source;
}

/* ---- names ---- */

static void cut_to(struct strv *record, size_t columns)
{
	while (record->count < columns)
		strv_add(record, "");
	while (record->count > columns) {
		free(record->items[--record->count]);
		record->items[record->count] = NULL;
	}
}

int arg_sources_take_header(struct arg_sources *sources, struct err *err)
{
	for (size_t i = 0; i < sources->count; i++) {
		struct arg_source *source = &sources->items[i];
		struct arg_records *records = &source->records;
		if (source->names.count > 0)
			continue; /* a parameter */
		if (records->count == 0)
			return err_set(err, EINVAL, "--header: list %zu of the arguments is empty",
				       i + 1);
		source->names = records->items[0];
		records->count--;
		memmove(records->items, records->items + 1,
			records->count * sizeof(*records->items));
		for (size_t k = 0; k < records->count; k++)
			cut_to(&records->items[k], source->names.count);
	}
	return 0;
}

void arg_sources_names(const struct arg_sources *sources, struct strv *ret_names)
{
	for (size_t i = 0; i < sources->count; i++) {
		const struct arg_source *source = &sources->items[i];
		if (source->names.count > 0)
			strv_add_all(ret_names, strv_argv(&source->names));
		else
			strv_add(ret_names, "");
	}
}

/* ---- parameters ---- */

static void add_value(struct arg_source *source, char *text)
{
	struct arg_records *records = &source->records;
	ARRAY_RESERVE(records->items, records->count, records->cap);
	records->items[records->count] = STRV_INIT;
	strv_take(&records->items[records->count++], text);
}

/* A decimal number as a count of its last digit: "1.25" is 125 with two decimals. */
static int read_decimal(const char *text, int decimals, int64_t *ret_units)
{
	double value;
	if (str_to_double(text, &value) < 0 || !(value > -1e9 && value < 1e9))
		return -EINVAL;
	for (int i = 0; i < decimals; i++)
		value *= 10;
	*ret_units = (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
	return 0;
}

static int decimals_of(const char *text)
{
	const char *point = strchr(text, '.');
	return point ? (int)strlen(point + 1) : 0;
}

static char *decimal_text(int64_t units, int decimals)
{
	int64_t one = 1;
	for (int i = 0; i < decimals; i++)
		one *= 10;
	if (decimals == 0)
		return mem_printf("%lld", (long long)units);
	uint64_t size = units < 0 ? (uint64_t)-units : (uint64_t)units;
	return mem_printf("%s%llu.%0*llu", units < 0 ? "-" : "",
			  (unsigned long long)(size / (uint64_t)one), decimals,
			  (unsigned long long)(size % (uint64_t)one));
}

int arg_source_scan(struct arg_source *source, const char *name, const char *min, const char *max,
		    const char *step, struct err *err)
{
	int64_t from, to, by;
	int decimals = MAX(MAX(decimals_of(min), decimals_of(max)), decimals_of(step));
	if (decimals > DECIMALS_MAX || read_decimal(min, decimals, &from) < 0 ||
	    read_decimal(max, decimals, &to) < 0 || read_decimal(step, decimals, &by) < 0)
		return err_set(err, EINVAL, "'%.24s %.24s %.24s' are not three numbers", min, max,
			       step);
	if (by <= 0 || from > to)
		return err_set(err, EINVAL, "no number of steps of %.24s leads from %.24s to %.24s",
			       step, min, max);
	if ((to - from) / by >= ARG_RECORDS_MAX)
		return err_set(err, E2BIG, "more than %d values", ARG_RECORDS_MAX);
	strv_add(&source->names, name);
	for (int64_t value = from; value <= to; value += by)
		add_value(source, decimal_text(value, decimals));
	return 0;
}

void arg_source_list(struct arg_source *source, const char *name, const char *values)
{
	struct buf value = BUF_INIT;
	strv_add(&source->names, name);
	for (const char *p = values;; p++) {
		if (*p == '\\' && p[1] == ',') {
			buf_append_char(&value, *++p);
		} else if (*p == ',' || !*p) {
			add_value(source, buf_take_str(&value));
			if (!*p)
				return;
		} else {
			buf_append_char(&value, *p);
		}
	}
}

/* ---- rows ---- */

/* The sources from `first` on that go along with it: returns the first one behind them, and how
 * many records they have in common. */
static size_t linked_end(const struct arg_sources *sources, size_t first, size_t *ret_records)
{
	size_t records = sources->items[first].records.count, i = first + 1;
	for (; i < sources->count && sources->items[i].linked; i++)
		records = MIN(records, sources->items[i].records.count);
	*ret_records = records;
	return i;
}

static size_t longest(const struct arg_sources *sources)
{
	size_t records = 0;
	for (size_t i = 0; i < sources->count; i++) {
		if (sources->items[i].records.count == 0)
			return 0;
		records = MAX(records, sources->items[i].records.count);
	}
	return records;
}

int arg_sources_rows(const struct arg_sources *sources, size_t *ret_rows, struct err *err)
{
	size_t rows = sources->count > 0;
	if (sources->all_linked) {
		*ret_rows = longest(sources);
		return 0;
	}
	for (size_t i = 0, records; i < sources->count;) {
		i = linked_end(sources, i, &records);
		if (__builtin_mul_overflow(rows, records, &rows) || rows > ORDERS_MAX)
			return err_set(err, E2BIG, "more than %d orders", ORDERS_MAX);
	}
	*ret_rows = rows;
	return 0;
}

static void add_record(const struct arg_source *source, size_t record, struct arg_row *row)
{
	const struct strv *columns = &source->records.items[record];
	for (size_t i = 0; i < columns->count; i++) {
		ARRAY_RESERVE(row->args, row->count, row->cap);
		row->args[row->count++] = columns->items[i];
	}
}

void arg_sources_row(const struct arg_sources *sources, size_t index, struct arg_row *row)
{
	size_t chosen[ARG_SOURCES_MAX], starts[ARG_SOURCES_MAX], sizes[ARG_SOURCES_MAX], parts = 0;
	if (sources->all_linked) {
		for (size_t i = 0; i < sources->count; i++)
			add_record(&sources->items[i], index % sources->items[i].records.count,
				   row);
		return;
	}
	for (size_t i = 0; i < sources->count; parts++) {
		starts[parts] = i;
		i = linked_end(sources, i, &sizes[parts]);
	}
	for (size_t p = parts; p-- > 0;) {
		chosen[p] = index % sizes[p];
		index /= sizes[p];
	}
	for (size_t p = 0; p < parts; p++) {
		size_t end = p + 1 < parts ? starts[p + 1] : sources->count;
		for (size_t i = starts[p]; i < end; i++)
			add_record(&sources->items[i], chosen[p], row);
	}
}
