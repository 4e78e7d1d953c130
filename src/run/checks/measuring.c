#include "run/checks/measuring.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/piped.h"

#define SLACK_NS \
	(1500 * NS_PER_MS) /* of the child, beside the streams: less than the coordinator's */
#define SHARES 6	   /* of struct msg_pair's `ms`, likewise */

struct measuring {
	struct event_base *base;
	bool has_token;
	struct token token;
	measuring_fn *on_done;
	void *arg;
	int listener;
	uint32_t serial;
	struct piped child; /* pid 0: none is under way */
	struct event *on_end;
	struct err failed; /* it could not be started */
};

static void forget_child(struct measuring *m)
{
	if (m->on_end)
		event_free(m->on_end);
	m->on_end = NULL;
	piped_done(&m->child);
}

void measuring_stop(struct measuring *m)
{
	if (m->child.pid) {
		kill(m->child.pid, SIGKILL);
		child_wait(m->child.pid);
	}
	forget_child(m);
}

/* What it found is smaller than a pipe. */
static bool read_found(struct measuring *m, struct wire_found *ret_found)
{
	fd_set_nonblock(m->child.out, true);
	return read(m->child.out, ret_found, sizeof(*ret_found)) == (ssize_t)sizeof(*ret_found);
}

static void on_end(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct measuring *m = arg;
	struct wire_found found = { .known = false };
	struct msg_paired paired = { .serial = m->serial };
	const char *why = m->failed.msg;
	if (m->child.pid) {
		child_wait(m->child.pid);
		why = read_found(m, &found) ? found.why : "the measurement itself failed";
	}
	forget_child(m);
	paired.known = found.known;
	paired.bandwidth = found.bandwidth;
	paired.latency_ns = found.latency_ns;
	m->on_done(m->arg, &paired, why);
}

static void fill(const struct measuring *m, const struct msg_pair *pair, struct wire_spec *spec)
{
	*spec = (struct wire_spec){
		.calls = pair->calls,
		.serial = pair->serial,
		.secret = pair->secret,
		.has_token = m->has_token,
		.token = m->token,
		.ms = pair->ms,
		.deadline_ns = ns_add(clock_now_ns(), SLACK_NS + SHARES * pair->ms * NS_PER_MS),
		.addr_count = pair->addr_count,
	};
	for (size_t i = 0; i < pair->addr_count; i++) {
		addr_of_msg(&pair->addrs[i], &spec->addrs[i]);
		addr_set_port(&spec->addrs[i], pair->port);
	}
}

static int start(struct measuring *m, const struct msg_pair *pair, struct err *err)
{
	char *const argv[] = { "/proc/self/exe", WIRE_COMMAND, NULL };
	struct piped_spec piped = {
		.argv = argv, .envp = environ, .extra = &m->listener, .extra_count = 1
	};
	struct wire_spec spec;
	int r = piped_start(&piped, &m->child, err);
	if (r < 0)
		return r;
	fill(m, pair, &spec);
	fd_write_all(m->child.in, &spec, sizeof(spec));
	token_forget(&spec.token);
	fd_close(&m->child.in);
	m->on_end = event_new(m->base, m->child.pidfd, EV_READ, on_end, m);
	event_add(m->on_end, NULL);
	return 0;
}

void measuring_start(struct measuring *m, const struct msg_pair *pair)
{
	static const struct timeval now = { 0, 0 };
	measuring_stop(m);
	m->serial = pair->serial;
	m->failed = ERR_INIT;
	if (start(m, pair, &m->failed) == 0)
		return;
	m->on_end = evtimer_new(m->base, on_end, m);
	event_add(m->on_end, &now);
}

struct measuring *measuring_new(struct event_base *base, const struct token *token,
				measuring_fn *on_done, void *arg, uint16_t *ret_port,
				struct err *err)
{
	int listener = wire_listen(ret_port, err);
	if (listener < 0)
		return NULL;
	struct measuring *m = NEW(struct measuring);
	*m = (struct measuring){ .base = base,
				 .has_token = token,
				 .on_done = on_done,
				 .arg = arg,
				 .listener = listener,
				 .child = PIPED_INIT };
	if (token)
		m->token = *token;
	return m;
}

void measuring_free(struct measuring *m)
{
	if (!m)
		return;
	measuring_stop(m);
	fd_close(&m->listener);
	token_forget(&m->token);
	free(m);
}
