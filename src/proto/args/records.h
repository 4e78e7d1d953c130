/* Arguments of a template, read from a text: records, each of one or more columns. */
#ifndef PROTO_ARGS_RECORDS_H
#define PROTO_ARGS_RECORDS_H

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

#endif
