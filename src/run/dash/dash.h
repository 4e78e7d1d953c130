/* The page of a whole job, served by the agent of any of its hosts.
 *
 * While pages are open, it asks all hosts for their states over and over, as `muster status` does,
 * and tells each page what has changed (proto/dash/board.h), no faster than HTTP_FEED_BYTES_PER_S;
 * while a page shows the log, all hosts tell what their workers print (proto/dash/log_feed.h). What
 * a page wants done is asked of all hosts, too, and the answer goes to all pages. While no page is
 * open it does nothing, and no timer runs.
 *
 * A page that does not keep up is left out until it does, and then told everything anew. */
#ifndef RUN_DASH_DASH_H
#define RUN_DASH_DASH_H

#include <event2/event.h>

#include "net/http.h"
#include "nodes/routes.h"
#include "proto/dash/board.h"

#define DASH_LOG_BYTES ((size_t)16 << 10) /* at a time; older lines are left out */

struct dash;

struct dash_hooks {
	/* A message for the node: a NODE_EV_MSG, always from the loop. Step it now. */
	void (*on_event)(void *arg, const struct node_event *event);
	/* Appends the part, as JSON. */
	void (*put_part)(void *arg, enum board_part part, struct buf *out);
	size_t (*world_size)(void *arg);
	/* The job is over: board_finish() and board_fail(). */
	void (*finish)(void *arg, struct board *board);
	void *arg;
};

struct dash *dash_new(struct event_base *base, struct http_server *server, struct routes *routes,
		      const struct dash_hooks *hooks);
void dash_free(struct dash *dash); /* NULL is fine */

/* A page wants to be told of the job, or of its log. */
void dash_open(struct dash *dash, struct http_stream *stream);
void dash_open_log(struct dash *dash, struct http_stream *stream);

/* A page wants something done: the body of a POST. */
void dash_wish(struct dash *dash, struct http_reply *reply);

/* The job is over and nothing more will come: the pages are told so. */
void dash_finish(struct dash *dash);

/* The parts once more: the last words of a worker may be read after the job is decided. */
void dash_complete(struct dash *dash);

#endif
