#include "run/checks/recheck.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/piped.h"
#include "proto/checks/check_json.h"
#include "run/checks/preflight.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define CHUNK 4096

struct recheck {
	struct event_base *base;
	const struct run_config *config;
	recheck_fn *on_done;
	void *arg;
	struct piped child; /* pid 0: none is under way */
	struct event *on_output, *on_end;
	struct buf output;
	struct err failed; /* it could not be started */
};

static void forget_child(struct recheck *r)
{
	if (r->on_output)
		event_free(r->on_output);
	if (r->on_end)
		event_free(r->on_end);
	r->on_output = r->on_end = NULL;
	fd_close(&r->child.out);
	fd_close(&r->child.err);
	fd_close(&r->child.pidfd);
	r->child = PIPED_INIT;
	buf_done(&r->output);
	r->output = BUF_INIT;
}

/* False: nothing more can be read now. */
static bool read_some(struct recheck *r)
{
	ssize_t n = read(r->child.out, buf_reserve(&r->output, CHUNK), CHUNK);
	if (n > 0)
		buf_commit(&r->output, (size_t)n);
	return n > 0 && buf_len(&r->output) < OUTPUT_MAX;
}

static void on_output(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct recheck *r = arg;
	if (!read_some(r))
		event_del(r->on_output);
}

static void on_end(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct recheck *r = arg;
	AUTO(check_list_done) struct check_list results = CHECK_LIST_INIT;
	struct err err = r->failed;
	bool read = false;
	if (r->child.pid) {
		while (read_some(r))
			;
		child_wait(r->child.pid);
		read = check_json_read_all(buf_str(&r->output), buf_len(&r->output), &results,
					   &err) == 0;
	}
	forget_child(r);
	r->on_done(r->arg, read ? &results : NULL, err.msg);
}

static int start(struct recheck *r, struct err *err)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	preflight_command(r->config, &argv);
	struct piped_spec spec = { .argv = argv.items, .envp = environ, .deaf = true };
	int rc = piped_start(&spec, &r->child, err);
	if (rc < 0)
		return rc;
	fd_close(&r->child.err);
	fd_set_nonblock(r->child.out, true);
	r->on_output = event_new(r->base, r->child.out, EV_READ | EV_PERSIST, on_output, r);
	r->on_end = event_new(r->base, r->child.pidfd, EV_READ, on_end, r);
	event_add(r->on_output, NULL);
	event_add(r->on_end, NULL);
	return 0;
}

void recheck_start(struct recheck *r)
{
	static const struct timeval now = { 0, 0 };
	if (r->on_end)
		return;
	r->failed = ERR_INIT;
	if (start(r, &r->failed) == 0)
		return;
	r->on_end = evtimer_new(r->base, on_end, r);
	event_add(r->on_end, &now);
}

struct recheck *recheck_new(struct event_base *base, const struct run_config *config,
			    recheck_fn *on_done, void *arg)
{
	struct recheck *r = NEW(struct recheck);
	*r = (struct recheck){ .base = base,
			       .config = config,
			       .on_done = on_done,
			       .arg = arg,
			       .child = PIPED_INIT,
			       .output = BUF_INIT };
	return r;
}

void recheck_free(struct recheck *r)
{
	if (!r)
		return;
	if (r->child.pid) {
		kill(r->child.pid, SIGKILL);
		child_wait(r->child.pid);
	}
	forget_child(r);
	free(r);
}
