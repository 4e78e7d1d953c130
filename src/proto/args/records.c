#include "proto/args/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/orders.h"
#include "proto/args/regex.h"

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
