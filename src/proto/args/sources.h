/* Input sources of a template: lists of records that are combined into rows of arguments.
 *
 * Sources give all combinations, the last one changes fastest. A linked source (":::+") goes along
 * with the one before it, record by record, as far as the shorter one reaches. */
#ifndef PROTO_ARGS_SOURCES_H
#define PROTO_ARGS_SOURCES_H

#include <regex.h>

#include "base/err.h"
#include "base/strv.h"

#define ARG_RECORDS_MAX 10000000
#define ARG_COLUMNS_MAX 10000

/* How a text is cut. */
struct arg_format {
	char end;	    /* of a record: '\n', or '\0' (-0) */
	bool csv;	    /* columns as in a CSV file; a quoted one may contain the end */
	bool skip_empty;    /* an empty record is not one */
	const char *colsep; /* extended regular expression (csv: a character); NULL: one column */
	const char *eof;    /* this record and what follows it are not read; NULL: none */
};

/* The same, ready for use. */
struct arg_cutter {
	struct arg_format format;
	regex_t regex;
	bool has_regex;
};

int arg_cutter_init(struct arg_cutter *cutter, const struct arg_format *format, struct err *err);
void arg_cutter_done(struct arg_cutter *cutter);

/* Arguments of a template, read from a text: each of one or more columns. */
struct arg_records {
	struct strv *items; /* columns */
	size_t count, cap;
};

#define ARG_RECORDS_INIT ((struct arg_records){ .items = NULL })

void arg_records_done(struct arg_records *records);

/* Appends the records of a text. A record with a NUL or ORDER_SLOT_MARK is an error. */
int arg_records_read(struct arg_records *records, const struct arg_cutter *cutter, const char *text,
		     size_t len, struct err *err);

/* Appends one record: a word of the command line. */
int arg_records_add(struct arg_records *records, const struct arg_cutter *cutter, const char *word,
		    struct err *err);

#define ARG_SOURCES_MAX 64

struct arg_source {
	struct arg_records records;
	struct strv names; /* of its columns, from --header or a parameter; may be empty */
	bool linked;
};

struct arg_sources {
	struct arg_source items[ARG_SOURCES_MAX];
	size_t count;
	bool all_linked; /* --link: one record of each, short ones begin again */
};

#define ARG_SOURCES_INIT ((struct arg_sources){ .count = 0 })

void arg_sources_done(struct arg_sources *sources);

/* Appends an empty source; NULL and an error when there are too many. */
struct arg_source *arg_sources_append(struct arg_sources *sources, struct err *err);

/* The first record of every source names its columns; the other records then have as many columns
 * as there are names. */
int arg_sources_take_header(struct arg_sources *sources, struct err *err);

/* A source with the numbers from `min` to `max`, every `step`, as hyperfine's --parameter-scan.
 * Whole numbers, unless one of the three is not. */
int arg_source_scan(struct arg_source *source, const char *name, const char *min, const char *max,
		    const char *step, struct err *err);

/* A source with the values between the commas of `values`; "\," is a comma. */
void arg_source_list(struct arg_source *source, const char *name, const char *values);

/* How many rows there are: 0 if a source is empty; E2BIG beyond ORDERS_MAX. */
int arg_sources_rows(const struct arg_sources *sources, size_t *ret_rows, struct err *err);

/* Appends the arguments of a row: the columns of one record of each source. Borrowed pointers. */
struct arg_row {
	const char **args;
	size_t count, cap;
};

#define ARG_ROW_INIT ((struct arg_row){ .args = NULL })

void arg_row_done(struct arg_row *row);
void arg_sources_row(const struct arg_sources *sources, size_t index, struct arg_row *row);

/* All names, by position in a row; "" for a column without one. */
void arg_sources_names(const struct arg_sources *sources, struct strv *ret_names);

#endif
