/* Discovery by a program (etcd, exec:PROGRAM): it names the coordinator and its epoch, and this
 * process listens from the start on its own port, in case it is chosen. muster-discovery(7) is the
 * contract. */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "net/discover_exec.h"
#include "nodes/discovery.h"
#include "nodes/resolved_name.h"

/* Nothing is sent there: the route to it tells which of our addresses leads to other hosts. */
#define FAR_AWAY "192.0.2.1" /* reserved for documentation */
#define ANY_PORT 9
#define LOOKUP_PATIENCE_NS (5 * NS_PER_S)

struct program {
	struct discovery base;
	struct discover_exec *exec; /* NULL: not started yet */
	struct strv argv, envp;
	struct event begin; /* the route to the service is known, or we stop waiting for it */
	struct event again; /* looks the leader's name up once more */
	struct resolved_name reached; /* a host of the service */
	struct resolved_name own;     /* where we listen */
	struct resolved_name leader;  /* the coordinator, while epoch is not 0 */
	bool has_reached, has_own;
	uint64_t epoch;
	bool chosen;		     /* the leader is this process */
	char trouble[LINK_TEXT_MAX]; /* the program's last line for users */
};

static struct program *program_of(const struct discovery *discovery)
{
	return container_of(discovery, struct program, base);
}

/* ---- what the program says ---- */

static void program_seek(struct discovery *discovery, int32_t index UNUSED)
{
	struct program *p = program_of(discovery);
	resolved_name_forget(&p->leader); /* its name may stand for another host by now */
	if (p->leader.count == 0) {
		resolved_name_look_up(&p->leader);
		return;
	}
	struct link_target target = resolved_name_target(&p->leader);
	discovery->handler->on_target(discovery->arg, &target);
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct program *p = arg;
	resolved_name_look_up(&p->leader);
}

/* A name that cannot be looked up now may be known later. */
static void on_leader_known(void *arg, struct resolved_name *resolved)
{
	struct program *p = arg;
	static const struct timeval later = { .tv_sec = 1 };
	if (resolved->count > 0) {
		struct link_target target = resolved_name_target(resolved);
		p->base.handler->on_target(p->base.arg, &target);
		return;
	}
	log_warn("%s", resolved->trouble);
	event_add(&p->again, &later);
}

static void tell_term(struct program *p, const struct discovery_line *line)
{
	p->base.handler->on_event(p->base.arg,
				  &(struct node_event){ .type = NODE_EV_TERM,
							.term = { line->epoch, p->chosen,
								  line->until_ns, line->past } });
}

/* A lease is renewed, or the end of the job recorded; only the coordinator cares. */
static void on_renewed(void *arg, const struct discovery_line *line)
{
	struct program *p = arg;
	if (!p->chosen)
		return;
	tell_term(p, line);
	if (line->past.epoch == line->epoch)
		p->base.handler->on_event(p->base.arg,
					  &(struct node_event){ .type = NODE_EV_RECORDED,
								.term.epoch = line->epoch });
}

static void on_coordinator(void *arg, const struct addr_name *name,
			   const struct discovery_line *line)
{
	struct program *p = arg;
	if (p->epoch)
		resolved_name_done(&p->leader);
	event_del(&p->again);
	resolved_name_init(&p->leader, name, p->base.base, on_leader_known, p);
	p->chosen = str_eq(p->leader.text, p->own.text);
	p->epoch = line->epoch;
	log_info("%s coordinates, epoch %" PRIu64, p->leader.text, p->epoch);
	tell_term(p, line);
}

static void on_note(void *arg, const char *text)
{
	struct program *p = arg;
	snprintf(p->trouble, sizeof(p->trouble), "%s", text);
	log_warn("discovery: %s", text);
}

static const struct discover_exec_handler exec_handler = { on_coordinator, on_renewed, on_note };

/* ---- beginning ---- */

/* How long workers may live without answers from the coordinator, in seconds. */
static uint64_t fence_s(const struct rendezvous *rdzv)
{
	struct node_info node = { .period_ns = rendezvous_period_ns(rdzv, rdzv->max_nodes),
				  .lease_periods = rdzv->lease_periods };
	return (node_death_ns(&node) + NS_PER_S - 1) / NS_PER_S;
}

/* Different in every process, the same whenever this process restarts the program. */
static void set_environment(struct program *p)
{
	const struct rendezvous *rdzv = p->base.rdzv;
	strv_add_all(&p->envp, environ);
	env_setf(&p->envp, "MUSTER_DISCOVERY_ID", "%016" PRIx64 "%016" PRIx64, random_u64(),
		 random_u64());
	if (rdzv->endpoint_text && *rdzv->endpoint_text)
		env_set(&p->envp, "MUSTER_RDZV_ENDPOINT", rdzv->endpoint_text);
	if (rdzv->quorum == QUORUM_LEASE)
		env_setf(&p->envp, "MUSTER_DISCOVERY_FENCE", "%" PRIu64, fence_s(rdzv));
}

static void start_program(struct program *p)
{
	const struct rendezvous *rdzv = p->base.rdzv;
	struct err err = ERR_INIT;
	strv_add_all(&p->argv, strv_argv(&rdzv->program));
	strv_add(&p->argv, rdzv->run_id);
	strv_add(&p->argv, p->own.text);
	set_environment(p);
	const struct discover_exec_config exec = { strv_argv(&p->argv), strv_argv(&p->envp) };
	if (discover_exec_new(p->base.base, &exec, &exec_handler, p, &p->exec, &err) < 0)
		p->base.handler->on_barred(p->base.arg, err.msg);
}

/* Other nodes get our host name, with the port that the kernel chose. */
static void listen_here(struct program *p)
{
	struct err err = ERR_INIT;
	struct addr addr;
	char text[LINK_TEXT_MAX];
	struct addr_name name = p->own.name;
	int fd = resolved_name_listen(&p->own, true);
	if (fd < 0) {
		snprintf(text, sizeof(text), "cannot listen on %s: %s", name.host, strerror(-fd));
		p->base.handler->on_barred(p->base.arg, text);
		return;
	}
	if (addr_of_socket(fd, &addr, &err) < 0) {
		close(fd);
		p->base.handler->on_barred(p->base.arg, err.msg);
		return;
	}
	name.port = addr_port(&addr);
	resolved_name_done(&p->own);
	resolved_name_init(&p->own, &name, p->base.base, NULL, NULL);
	p->base.handler->on_listen(p->base.arg, fd, &name);
	start_program(p);
}

static void on_own_known(void *arg, struct resolved_name *resolved UNUSED)
{
	listen_here(arg);
}

static bool ip_towards(const struct addr *peer, char host[ADDR_HOST_MAX])
{
	struct addr local;
	char text[ADDR_TEXT_MAX];
	if (addr_towards(peer, &local, NULL) < 0 || addr_is_loopback(&local))
		return false;
	addr_format_ip(&local, text);
	snprintf(host, ADDR_HOST_MAX, "%s", text);
	return true;
}

/* Our address on the route to the service, else to distant hosts, else any, else loopback: a
 * service on this host tells nothing about the route to the others. */
static void choose_host(const struct program *p, char host[ADDR_HOST_MAX])
{
	struct addr far_away, any;
	addr_from_ip(FAR_AWAY, ANY_PORT, &far_away);
	for (size_t i = 0; p->has_reached && i < p->reached.count; i++)
		if (ip_towards(&p->reached.addrs[i], host))
			return;
	if (ip_towards(&far_away, host))
		return;
	char text[ADDR_TEXT_MAX] = "127.0.0.1";
	if (addr_of_interfaces(&any, 1, NULL) > 0)
		addr_format_ip(&any, text);
	snprintf(host, ADDR_HOST_MAX, "%s", text);
}

static void on_begin(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct program *p = arg;
	const char *given = p->base.rdzv->local_addr;
	struct addr_name name = { .port = 0 };
	if (p->has_own)
		return;
	if (given)
		snprintf(name.host, sizeof(name.host), "%s", given);
	else
		choose_host(p, name.host);
	p->has_own = true;
	resolved_name_init(&p->own, &name, p->base.base, on_own_known, p);
	if (p->own.numeric)
		listen_here(p);
	else
		resolved_name_look_up(&p->own);
}

static void begin_in(struct program *p, uint64_t ns)
{
	struct timeval patience = { .tv_sec = (time_t)(ns / NS_PER_S) };
	event_add(&p->begin, &patience);
}

static void on_reached_known(void *arg, struct resolved_name *resolved UNUSED)
{
	begin_in(arg, 0);
}

/* ---- operations ---- */

static void program_listen(struct discovery *discovery)
{
	struct program *p = program_of(discovery);
	const struct rendezvous *rdzv = discovery->rdzv;
	event_assign(&p->begin, discovery->base, -1, 0, on_begin, p);
	event_assign(&p->again, discovery->base, -1, 0, on_again, p);
	if (rdzv->local_addr || !*rdzv->program_reaches) {
		begin_in(p, 0);
		return;
	}
	struct addr_name service = { .port = ANY_PORT };
	snprintf(service.host, sizeof(service.host), "%s", rdzv->program_reaches);
	p->has_reached = true;
	resolved_name_init(&p->reached, &service, discovery->base, on_reached_known, p);
	resolved_name_look_up(&p->reached);
	begin_in(p, p->reached.numeric ? 0 : LOOKUP_PATIENCE_NS);
}

static void program_record(struct discovery *discovery, const struct recorded_end *end)
{
	struct program *p = program_of(discovery);
	if (p->exec && end->epoch == p->epoch)
		discover_exec_tell(p->exec, discovery_end_name(end->ruling));
}

static void program_explain(const struct discovery *discovery, struct buf *out)
{
	const struct program *p = program_of(discovery);
	const char *name = discovery->rdzv->backend;
	if (p->epoch)
		buf_printf(out, "%s says that %s coordinates", name,
			   p->chosen ? "this node" : p->leader.text);
	else
		buf_printf(out, "%s has named no coordinator yet", name);
	if (*p->trouble)
		buf_printf(out, "; it said: %s", p->trouble);
}

static void program_done(struct discovery *discovery)
{
	struct program *p = program_of(discovery);
	discover_exec_free(p->exec);
	if (event_initialized(&p->begin)) {
		event_del(&p->begin);
		event_del(&p->again);
	}
	if (p->has_reached)
		resolved_name_done(&p->reached);
	if (p->has_own)
		resolved_name_done(&p->own);
	if (p->epoch)
		resolved_name_done(&p->leader);
	strv_done(&p->argv);
	strv_done(&p->envp);
}

const struct discovery_ops discovery_program = {
	.name = "program",
	.size = sizeof(struct program),
	.listen = program_listen,
	.seek = program_seek,
	.record = program_record,
	.explain = program_explain,
	.done = program_done,
};
