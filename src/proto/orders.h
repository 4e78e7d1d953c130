/* Work orders: the commands of `muster batch`. muster-batch(5) describes the file format.
 *
 * A list comes from lines (plain, or JSON objects), from a template with arguments (":::"), or from
 * earlier results. It is complete, checked and final before anything runs. */
#ifndef PROTO_ORDERS_H
#define PROTO_ORDERS_H

#include "base/buf.h"
#include "base/strv.h"
#include "base/err.h"
#include "core/batch/label.h"

#define ORDER_HASH_BYTES 16
#define ORDER_HASH_TEXT 33
#define ORDER_ID_MAX 200
#define ORDER_VARIANT_MAX 15
#define ORDERS_MAX 10000000
#define ORDER_RUNS_MAX 1000000
#define ORDER_CORES_MAX 4096
#define ORDER_NEEDS_MAX 64 /* hosts, or features, that it names */

/* Members that few orders have, apart so that the others stay small. */
struct order_extra {
	struct strv env; /* "NAME=value" sets, "NAME" alone unsets */
	/* the arguments of its template, one of every list; not part of its identity */
	struct strv args;
	struct strv labels; /* "NAME=value", see core/batch/label.h; not part of its identity */
	char *cwd, *stdin_path, *group;
	/* what the command line does first to set up its environment, ". env.sh"; the command
	 * begins with it */
	char *source;
	char *variant; /* of the measurement that has the same id; not part of its identity */
	struct strv arg_names; /* of each of args, "" for none; empty: none has one */
	char *tag;	       /* --tagstring, filled in; NULL: none */
	char *output_path;     /* --results, filled in; NULL: none */
	/* what it needs of a host, see core/dispatch/needs.h; not part of its identity */
	struct strv hosts, features;
	uint64_t memory; /* bytes; 0: any */
	/* files that move with it, see core/deal/files.h; not part of its identity */
	struct strv transfer, returns;
	bool cleanup; /* and the host removes them in the end */
};

struct order {
	char *id;		   /* NULL: the beginning of the hash */
	char *shell;		   /* a line for the shell, or NULL */
	char **argv;		   /* words to execute, NULL-terminated, or NULL */
	struct order_extra *extra; /* or NULL */
	uint64_t timeout_ns;	   /* 0: not given */
	uint64_t cpu_timeout_ns;   /* 0: not given */
	uint32_t timeout_percent;  /* of the median; 0: not given */
	uint32_t line;		   /* of its file; for a template the number of the order */
	int32_t cores;		   /* 0: not given */
	int32_t retries;	   /* -1: not given */
	int32_t runs;		   /* 0: not given */
	bool named;		   /* its id is what people shall see, not its command */
	bool uses_slot;		   /* the command has ORDER_SLOT_MARK where "{%}" stood */
	/* of what it runs: command, environment, directory, input */
	unsigned char hash[ORDER_HASH_BYTES];
};

/* Stands for "{%}" in a command; no argument may contain it. */
#define ORDER_SLOT_MARK '\001'

struct orders {
	struct order *items;
	size_t count, cap;
};

#define ORDERS_INIT ((struct orders){ .items = NULL })

void orders_done(struct orders *orders);

/* Adds the order on one line of a file; blank lines and lines that begin with # add none. A line
 * that begins with { is JSON. The caller adds the line number to an error. */
int orders_add_line(struct orders *orders, const char *line, size_t len, uint32_t number,
		    struct err *err);

/* Appends a new order, to be filled in and then closed, which computes its identity. */
struct order *orders_append(struct orders *orders);
struct order_extra *order_extra(struct order *order); /* made when needed */
void order_close(struct order *order);

/* Empties one of the list, to be filled in and closed like a new one. */
struct order *orders_renew(struct orders *orders, size_t index);

/* Makes it another one than those that run the same and have another number, from 1. */
void order_set_copy(struct order *order, uint64_t copy);

/* Makes a line for the shell its command, in place of the one it has. Owns the line. */
void order_set_shell(struct order *order, char *line);

/* Call it after all are added: rejects two orders that run the same with the same id on the same
 * number of cores, by line, unless allowed. A number in their identity tells apart those that run
 * the same. Always rejects two equal ids. */
int orders_check_unique(struct orders *orders, bool allow_duplicates, struct err *err);

/* Drops the orders for which a filter (core/batch/label.h) does not hold. */
void orders_filter(struct orders *orders, const struct strv *filter);

void order_hash_text(const struct order *order, char text[ORDER_HASH_TEXT]);

/* Appends its id, given or derived. */
void order_append_id(const struct order *order, struct buf *out);

/* Appends the command for display and logs; slot 0 shows "{%}". */
void order_append_command(const struct order *order, int slot, struct buf *out);

static inline bool order_moves_files(const struct order *order)
{
	return order->extra && (order->extra->transfer.count || order->extra->returns.count);
}

const char *order_group(const struct order *order);  /* "" for none */
const char *order_source(const struct order *order); /* "" for none */

/* The first word of the command after its source command; the caller frees it. */
char *order_program(const struct order *order);

/* The labels of the order, for label_value(). `program` is what order_program() said, or NULL. */
struct label_of order_labels(const struct order *order, const char *program);

/* "60", "1.5s", or with a percentage "200%": of the median. */
int order_parse_timeout(const char *text, uint64_t *ret_ns, uint32_t *ret_percent, struct err *err);

#endif
