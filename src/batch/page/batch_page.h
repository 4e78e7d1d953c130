/* --http: the page of a running batch (proto/dash/roster.h says what it is told).
 *
 * It says nothing without its token, which is in the address that people are told, and it changes
 * nothing. While no page is open no timer runs; the states of the orders are kept as they happen.
 * A page that does not keep up is left out until it does, and then told everything anew. */
#ifndef BATCH_PAGE_BATCH_PAGE_H
#define BATCH_PAGE_BATCH_PAGE_H

#include <event2/event.h>

#include "batch/printer.h"
#include "net/addr.h"
#include "proto/dash/roster.h"

struct batch_page;

struct batch_page_hooks {
	/* The whole so far; may also tell the roster what it has not been told. */
	void (*sum)(void *arg, struct roster *roster, struct roster_sum *ret_sum);
	roster_order_fn *order;
	void *arg;
	struct printer *printer; /* borrowed */
};

/* Listens, and says where on standard error. */
int batch_page_open(struct event_base *base, const struct addr *address, size_t count,
		    const struct batch_page_hooks *hooks, struct batch_page **ret_page,
		    struct err *err);

/* What happens, as in roster.h. All do nothing if there is no page (NULL). */
void batch_page_started(struct batch_page *page, size_t index, const char *host);
void batch_page_ended(struct batch_page *page, size_t index, const struct result *result,
		      bool final, bool again, const char *how);

/* The batch is over and its loop turns no more: open pages are told, as far as they listen. */
void batch_page_close(struct batch_page *page, int exit_code);

#endif
