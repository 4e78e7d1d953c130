#include "batch/page/batch_page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/worker/exit_code.h"
#include "net/http.h"
#include "web/web.h"

#define HOST_MAX 256

struct batch_page {
	struct http_server *server;
	struct roster *roster;
	struct batch_page_hooks hooks;
	struct roster_sum sum; /* as it is told */
	struct event *tick;
};

/* ---- the stream ---- */

static void put_all(void *arg, struct buf *out)
{
	struct batch_page *page = arg;
	roster_put_all(page->roster, &page->sum, clock_now_ns(), out);
}

static bool put_changes(void *arg, struct buf *out)
{
	struct batch_page *page = arg;
	return roster_put_changes(page->roster, &page->sum, clock_now_ns(), out);
}

/* Returns how long to pause. */
static uint64_t tell(struct batch_page *page, int exit_code)
{
	const struct http_feed feed = { page->server, "batch", put_all, put_changes, page };
	uint64_t began_ns = clock_now_ns();
	page->sum = (struct roster_sum){ .left_ns = NS_NEVER, .exit_code = exit_code };
	page->hooks.sum(page->hooks.arg, page->roster, &page->sum);
	page->sum.state = exit_code < 0			      ? "running"
			  : exit_code == EXIT_CODE_OK	      ? "done"
			  : exit_code > EXIT_CODE_SIGNAL_BASE ? "stopped"
							      : "failed";
	return http_feed_tell(&feed, began_ns);
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct batch_page *page = arg;
	if (!http_streams_first(page->server))
		return;
	const struct timeval pause = clock_timeval(tell(page, -1));
	event_add(page->tick, &pause);
}

/* ---- routes ---- */

static void open_stream(void *arg, struct http_stream *stream UNUSED)
{
	struct batch_page *page = arg;
	event_active(page->tick, EV_TIMEOUT, 0);
}

static void show_file(enum web_file file, struct http_reply *reply)
{
	struct bytes text = web_text(file);
	reply->type = web_type(file);
	reply->policy = WEB_POLICY;
	buf_append(&reply->body, text.data, text.len);
}

static void show_page(void *arg UNUSED, struct http_reply *reply)
{
	show_file(WEB_BATCH_PAGE, reply);
}

static void show_style(void *arg UNUSED, struct http_reply *reply)
{
	show_file(WEB_STYLE, reply);
}

static void show_script(void *arg UNUSED, struct http_reply *reply)
{
	show_file(WEB_BATCH_SCRIPT, reply);
}

/* A question, but a POST: filters do not belong into addresses. */
static void show_orders(void *arg, struct http_reply *reply)
{
	const struct batch_page *page = arg;
	AUTO(roster_query_done) struct roster_query query;
	struct err err = ERR_INIT;
	if (roster_query_parse(reply->sent, &query, &err) < 0) {
		reply->code = 400;
		buf_printf(&reply->body, "%s\n", err.msg);
		return;
	}
	reply->type = "application/json";
	roster_put_rows(page->roster, &query, &reply->body);
}

static const struct http_route routes[] = {
	{ .path = "/", .handle = show_page },
	{ .path = "/page.css", .handle = show_style },
	{ .path = "/page.js", .handle = show_script },
	{ .path = "/api/stream", .guarded = true, .open = open_stream },
	{ .path = "/api/orders", .post = true, .guarded = true, .handle = show_orders },
	{ .path = NULL },
};

/* ---- beginning and end ---- */

static int listen_and_say(struct batch_page *page, const struct addr *address, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	char host[HOST_MAX] = "";
	struct addr there;
	int r = http_listen_tcp(page->server, address, HTTP_OPEN, &there, err);
	if (r < 0)
		return err_wrap(err, "--http");
	gethostname(host, sizeof(host) - 1);
	buf_append_str(&text, "muster batch: its page is ");
	http_page_address(page->server, &there, host, &text);
	buf_append_char(&text, '\n');
	printer_text(page->hooks.printer, STDERR_FILENO, buf_data(&text), buf_len(&text));
	return 0;
}

int batch_page_open(struct event_base *base, const struct addr *address, size_t count,
		    const struct batch_page_hooks *hooks, struct batch_page **ret_page,
		    struct err *err)
{
	struct batch_page *page = NEW(struct batch_page);
	page->hooks = *hooks;
	page->server = http_server_new(base, routes, page);
	page->tick = evtimer_new(base, on_tick, page);
	page->roster = roster_new(count, hooks->order, hooks->arg, clock_now_ns(),
				  clock_wall_ns() / NS_PER_MS);
	int r = listen_and_say(page, address, err);
	if (r < 0) {
		http_server_free(page->server);
		event_free(page->tick);
		roster_free(page->roster);
		free(page);
		return r;
	}
	*ret_page = page;
	return 0;
}

void batch_page_started(struct batch_page *page, size_t index, const char *host)
{
	if (page)
		roster_started(page->roster, index, host, clock_now_ns());
}

void batch_page_ended(struct batch_page *page, size_t index, const struct result *result,
		      bool final, bool again, const char *how)
{
	if (page)
		roster_ended(page->roster, index, result, final, again, how, clock_now_ns());
}

void batch_page_close(struct batch_page *page, int exit_code)
{
	if (!page)
		return;
	if (http_streams_first(page->server))
		tell(page, exit_code);
	http_server_free(page->server);
	event_free(page->tick);
	roster_free(page->roster);
	free(page);
}
