#include "core/fleet/fleet.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/worker/exit_code.h"

#define SIGNAL_TERM 15

void fleet_init(struct fleet *fleet, const struct fleet_config *config)
{
	*fleet = (struct fleet){ .config = *config, .grace_ns = NS_NEVER };
	fleet->hosts = NEW_ARRAY(struct fleet_host, config->hosts);
	uint32_t fanout = config->fanout;
	for (uint32_t i = 0; i < config->hosts; i++) {
		int32_t via = i < fanout ? FLEET_SELF : (int32_t)((i - fanout) / fanout);
		fleet->hosts[i] = (struct fleet_host){ .via = via,
						       .tree = via != FLEET_SELF,
						       .deadline_ns = NS_NEVER };
	}
}

void fleet_done(struct fleet *fleet)
{
	free(fleet->hosts);
	fleet->hosts = NULL;
}

static void act(struct fleet_actions *actions, struct fleet_action action)
{
	*fleet_actions_add(actions) = action;
}

uint32_t fleet_count(const struct fleet *fleet, enum fleet_state state)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < fleet->config.hosts; i++)
		count += fleet->hosts[i].state == state;
	return count;
}

static bool is_timed(const struct fleet_host *host)
{
	return host->state == FLEET_REACHING || host->state == FLEET_RUNS;
}

uint64_t fleet_deadline_ns(const struct fleet *fleet)
{
	uint64_t deadline_ns = fleet->over ? NS_NEVER : fleet->grace_ns;
	for (uint32_t i = 0; !fleet->over && i < fleet->config.hosts; i++)
		if (is_timed(&fleet->hosts[i]))
			deadline_ns = MIN(deadline_ns, fleet->hosts[i].deadline_ns);
	return deadline_ns;
}

void fleet_keep_near(struct fleet *fleet, uint32_t host)
{
	fleet->hosts[host].via = FLEET_SELF;
	fleet->hosts[host].tree = false;
}

size_t fleet_endpoints(const struct fleet *fleet, const enum fleet_nearness *nearness,
		       uint32_t ret_hosts[FLEET_ENDPOINTS_MAX])
{
	bool all_near = true;
	for (uint32_t i = 0; i < fleet->config.hosts; i++)
		if (fleet->hosts[i].state == FLEET_RUNS && nearness[i] != FLEET_NEAR_ONLY)
			all_near = false;
	enum fleet_nearness wanted = all_near ? FLEET_NEAR_ONLY : FLEET_NEAR_ALL;
	bool can_lose = fleet_count(fleet, FLEET_RUNS) > fleet->config.min_nodes;
	size_t count = 0, most = can_lose && !all_near ? FLEET_ENDPOINTS_MAX : 1;
	for (uint32_t i = 0; i < fleet->config.hosts && count < most; i++)
		if (fleet->hosts[i].state == FLEET_RUNS && nearness[i] == wanted)
			ret_hosts[count++] = i;
	return count;
}

/* ---- reaching ---- */

static bool can_reach(const struct fleet *fleet, const struct fleet_host *host)
{
	if (host->state != FLEET_WAITS)
		return false;
	if (host->via == FLEET_SELF)
		return fleet->direct < fleet->config.fanout;
	return fleet->hosts[host->via].state == FLEET_UP;
}

static void reach(struct fleet *fleet, uint64_t now_ns, struct fleet_actions *actions)
{
	for (uint32_t i = 0; i < fleet->config.hosts; i++) {
		struct fleet_host *host = &fleet->hosts[i];
		if (!can_reach(fleet, host))
			continue;
		host->state = FLEET_REACHING;
		host->deadline_ns = ns_add(now_ns, fleet->config.timeout_ns);
		fleet->direct += host->via == FLEET_SELF;
		act(actions, (struct fleet_action){ FLEET_DO_REACH, .host = i, .via = host->via });
	}
}

static void leave_attempt(struct fleet *fleet, const struct fleet_host *host)
{
	if (host->state == FLEET_REACHING && host->via == FLEET_SELF)
		fleet->direct--;
}

/* The starter tries itself, once. */
static void try_directly(struct fleet_host *host)
{
	*host = (struct fleet_host){ .state = FLEET_WAITS,
				     .via = FLEET_SELF,
				     .deadline_ns = NS_NEVER };
}

static void drop(uint32_t index, int32_t via, struct fleet_actions *actions)
{
	act(actions, (struct fleet_action){ FLEET_DO_DROP, .host = index, .via = via });
}

/* What a host was to reach, or has reached, is behind it no more. Before the start, the starter
 * tries them all itself. After it, their relays have lost the starter and end. */
static void cut_off(struct fleet *fleet, uint32_t index, struct fleet_actions *actions);

static void lose(struct fleet *fleet, uint32_t index, bool late, struct fleet_actions *actions)
{
	struct fleet_host *host = &fleet->hosts[index];
	host->state = fleet->started ? FLEET_LOST : FLEET_FAILED;
	act(actions, (struct fleet_action){ FLEET_DO_TELL, .host = index, .late = late,
					    .lost = fleet->started });
	cut_off(fleet, index, actions);
}

static void cut_off(struct fleet *fleet, uint32_t index, struct fleet_actions *actions)
{
	for (uint32_t i = 0; i < fleet->config.hosts; i++) {
		struct fleet_host *host = &fleet->hosts[i];
		if (host->via != (int32_t)index)
			continue;
		if (host->state == FLEET_RUNS) {
			lose(fleet, i, false, actions);
		} else if (host->state <= FLEET_UP) {
			try_directly(host);
			cut_off(fleet, i, actions);
		}
	}
}

/* An attempt failed, or a host that had answered is gone. */
static void fail(struct fleet *fleet, uint32_t index, bool late, struct fleet_actions *actions)
{
	struct fleet_host *host = &fleet->hosts[index];
	leave_attempt(fleet, host);
	if (host->state == FLEET_REACHING && host->tree) {
		try_directly(host);
		return;
	}
	lose(fleet, index, late, actions);
}

/* ---- the end ---- */

/* An agent that knows the ruling has the job's code. Where none is left that does, one whose
 * workers are done counts more than one that failed, and else the first that ended has the reason.
 */
static int weight(const struct fleet_host *host)
{
	return host->scope == FLEET_CODE_JOB ? 2 : host->status.value == EXIT_CODE_OK;
}

static int job_code(const struct fleet *fleet)
{
	const struct fleet_host *best = NULL;
	for (uint32_t i = 0; i < fleet->config.hosts; i++) {
		const struct fleet_host *host = &fleet->hosts[i];
		if (host->state != FLEET_ENDED || host->status.kind != EXIT_CODE)
			continue;
		if (!best || weight(host) > weight(best) ||
		    (weight(host) == weight(best) && host->order < best->order))
			best = host;
	}
	if (best)
		return best->status.value;
	return fleet->signal ? EXIT_CODE_SIGNAL_BASE + fleet->signal : EXIT_CODE_SYSTEM;
}

static void end(struct fleet *fleet, int code, struct fleet_actions *actions)
{
	fleet->over = true;
	act(actions, (struct fleet_action){ FLEET_DO_END, .code = code });
}

static void start(struct fleet *fleet, uint64_t now_ns, struct fleet_actions *actions)
{
	uint64_t run_ns = fleet->config.run_ns ? fleet->config.run_ns : NS_NEVER;
	uint32_t up = fleet_count(fleet, FLEET_UP);
	if (up < fleet->config.min_nodes) {
		act(actions, (struct fleet_action){ FLEET_DO_TOO_FEW });
		end(fleet, EXIT_CODE_TIMEOUT, actions);
		return;
	}
	for (uint32_t i = 0; i < fleet->config.hosts; i++) {
		struct fleet_host *host = &fleet->hosts[i];
		if (host->state != FLEET_UP)
			continue;
		host->state = FLEET_RUNS;
		host->deadline_ns = ns_add(now_ns, run_ns);
	}
	fleet->started = true;
	fleet->nodes = MIN(up, fleet->config.max_nodes);
	act(actions, (struct fleet_action){ FLEET_DO_START });
}

static void pass_signal(struct fleet *fleet, int signal, struct fleet_actions *actions)
{
	fleet->signal = signal;
	act(actions, (struct fleet_action){ FLEET_DO_SIGNAL, .signal = signal });
}

/* Hosts that have failed on their own or are lost do not come back: the others would wait for them
 * until their join_timeout. */
static bool is_short(const struct fleet *fleet)
{
	uint32_t left = 0, missing = 0;
	for (uint32_t i = 0; i < fleet->config.hosts; i++) {
		const struct fleet_host *host = &fleet->hosts[i];
		bool alone = host->state == FLEET_ENDED && host->scope == FLEET_CODE_OWN &&
			     !exit_status_ok(&host->status);
		left += host->state == FLEET_RUNS;
		missing += host->state == FLEET_LOST || alone;
	}
	return left > 0 && missing > 0 && left < fleet->config.min_nodes;
}

static void check_enough(struct fleet *fleet, uint64_t now_ns)
{
	if (fleet->short_of_hosts || !is_short(fleet))
		return;
	fleet->short_of_hosts = true;
	fleet->grace_ns = ns_add(now_ns, FLEET_GRACE_NS);
}

/* After each event: what has become possible. */
static void go_on(struct fleet *fleet, uint64_t now_ns, struct fleet_actions *actions)
{
	if (fleet->over)
		return;
	if (!fleet->started) {
		reach(fleet, now_ns, actions);
		if (!fleet_count(fleet, FLEET_WAITS) && !fleet_count(fleet, FLEET_REACHING))
			start(fleet, now_ns, actions);
		return;
	}
	if (!fleet_count(fleet, FLEET_RUNS))
		end(fleet, job_code(fleet), actions);
	else
		check_enough(fleet, now_ns);
}

/* ---- events ---- */

static void on_up(struct fleet *fleet, uint32_t index, struct fleet_actions *actions)
{
	struct fleet_host *host = &fleet->hosts[index];
	if (host->state == FLEET_FAILED)
		drop(index, host->via, actions);
	if (host->state != FLEET_REACHING)
		return;
	leave_attempt(fleet, host);
	host->state = FLEET_UP;
}

static void on_down(struct fleet *fleet, uint32_t index, struct fleet_actions *actions)
{
	enum fleet_state state = fleet->hosts[index].state;
	if (state == FLEET_REACHING || state == FLEET_UP || state == FLEET_RUNS)
		fail(fleet, index, false, actions);
	else if (state == FLEET_ENDED)
		cut_off(fleet, index, actions);
}

static void on_agent(struct fleet *fleet, const struct fleet_event *event)
{
	struct fleet_host *host = &fleet->hosts[event->host];
	if (host->state != FLEET_RUNS)
		return;
	host->state = FLEET_ENDED;
	host->status = event->status;
	host->scope = event->scope;
	host->order = fleet->ended++;
}

static void on_signal(struct fleet *fleet, int signal, struct fleet_actions *actions)
{
	if (fleet->started)
		pass_signal(fleet, signal, actions);
	else
		end(fleet, EXIT_CODE_SIGNAL_BASE + signal, actions);
}

static void on_timer(struct fleet *fleet, uint64_t now_ns, struct fleet_actions *actions)
{
	for (uint32_t i = 0; i < fleet->config.hosts; i++) {
		struct fleet_host *host = &fleet->hosts[i];
		if (!is_timed(host) || host->deadline_ns > now_ns)
			continue;
		drop(i, host->via, actions);
		fail(fleet, i, true, actions);
	}
	if (fleet->grace_ns <= now_ns) {
		fleet->grace_ns = NS_NEVER;
		act(actions, (struct fleet_action){ FLEET_DO_TOO_FEW });
		pass_signal(fleet, SIGNAL_TERM, actions);
	}
}

void fleet_step(struct fleet *fleet, const struct fleet_event *event, uint64_t now_ns,
		struct fleet_actions *actions)
{
	if (fleet->over || event->host >= fleet->config.hosts)
		return;
	switch (event->type) {
	case FLEET_EV_BEGIN:
		break;
	case FLEET_EV_UP:
		on_up(fleet, event->host, actions);
		break;
	case FLEET_EV_DOWN:
		on_down(fleet, event->host, actions);
		break;
	case FLEET_EV_AGENT:
		on_agent(fleet, event);
		break;
	case FLEET_EV_SIGNAL:
		on_signal(fleet, event->signal, actions);
		break;
	case FLEET_EV_TIMER:
		on_timer(fleet, now_ns, actions);
		break;
	}
	go_on(fleet, now_ns, actions);
}
