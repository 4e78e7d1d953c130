/* The invariants.
 *
 * 1. After every step, all agents that have joined on a live link run workers of one ballot only.
 * 2. When a round forms, older workers are dead everywhere, even on hosts that are cut off.
 *    Exceptions: frozen hosts, workers that cannot be killed, and for a moment hosts whose
 *    connection was reset on the path.
 * 3. The ranks of a round are exactly 0..n-1: of nodes, of workers, and of workers within each
 *    role. A given node rank is kept. MIN <= nodes <= MAX of all its members. Each ballot is
 *    formed once.
 * 4. Members start only the newest round, once, with their own ranks, and agree on master address,
 *    world size, restarts and ballot.
 * 5. The budget is never exceeded; it is charged at most once per ballot, and only when a worker's
 *    failure ended the round.
 * 6. Rounds for changes of members are bounded in time.
 * 7. Once faults stop, the job ends in bounded time. If no host was lost, a minute later no agent
 *    ends by a time-out, however long it waited before.
 * 8. All agents that hear the end of the job hear the same: success only when all members of the
 *    last round were done, failure only when one of its workers failed. No agent that was in a
 *    round is refused for its MIN:MAX, unless a job with another one has formed rounds too.
 * 9. A process that has closed the job ends by itself only when all others know it, or had the time
 *    to; its own agent hears of it too. Where a lease decides, that end is on record before.
 * 10. When nothing but the coordinator's process is lost, the others go on and hear the end.
 * 11 is in stash.c.
 * 12. Only a lame node, or with strikes one whose workers failed, is called unfit, by name, before
 *     a round leaves it out. A round has such a node only up to MIN, and only if no fit one waits;
 *     an excluded node is in none (checks.c).
 * 13. All workers of a round that leave or save because of a notice do so after the same step,
 * having been asked once. None waits for a decision for ever. All agents that hear that the job is
 * done hear the same of whether its workers left. An agent that is stopped says that its workers
 * left if some did and none was lost before it had saved or ended, and only then. Without faults
 * all leave.
 * 14 is in clocks.c, 15 in gaits.c, 16 in hushes.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/rounds/formation.h"
#include "sim/world.h"

#define EXCUSE_NS (2 * NS_PER_S) /* after a thaw or a torn connection */
#define CALM_NS (60 * NS_PER_S)	 /* after the last fault: present agents have a round by then */

/* Once another job has begun, the rest of the step is not judged. */
void check_broken(struct world *world, const char *fmt, ...)
{
	if (world->result->broken || world->over)
		return;
	va_list args;
	va_start(args, fmt);
	vsnprintf(world->result->why, sizeof(world->result->why), fmt, args);
	va_end(args);
	world->result->broken = true;
	world_trace(world, "BROKEN: %s", world->result->why);
}

struct round_record *check_round(struct world *world, struct ballot ballot)
{
	for (size_t i = world->round_count; i-- > 0;)
		if (ballot_eq(world->rounds[i].ballot, ballot))
			return &world->rounds[i];
	return NULL;
}

void check_done(struct world *world)
{
	for (size_t i = 0; i < world->round_count; i++)
		free(world->rounds[i].seats);
	free(world->rounds);
}

static bool excused(const struct world *world, const struct host *host)
{
	return host->stuck || world_frozen(world, host) ||
	       (host->thawed_ns && world->now_ns < host->thawed_ns + EXCUSE_NS) ||
	       (host->reset_ns && world->now_ns < host->reset_ns + EXCUSE_NS);
}

/* Seats. */

/* The group ranks that the coordinator assigned; false if they are not a numbering. */
static bool take_seats(struct world *world, const struct coordinator *c, struct round_record *round)
{
	uint32_t taken = 0;
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		if (!member->in_round)
			continue;
		struct seat *seat = &round->seats[MIN(member->group_rank, round->nodes - 1)];
		if (member->group_rank >= round->nodes || seat->nproc) {
			check_broken(world, "group rank %u twice or not below %u",
				     member->group_rank, round->nodes);
			return false;
		}
		*seat = (struct seat){
			.host = (uint32_t)member->id.hi - 1,
			.nproc = member->nproc,
			.rank_base = member->rank_base,
			.role_rank_base = member->role_rank_base,
			.role_world_size = member->role_world_size,
		};
		taken++;
	}
	if (taken != round->nodes)
		check_broken(world, "%u members in a round of %u nodes", taken, round->nodes);
	return taken == round->nodes;
}

static void check_seats(struct world *world, const struct round_record *round)
{
	uint32_t workers = 0, in_role[SIM_ROLES] = { 0 };
	for (uint32_t rank = 0; rank < round->nodes; rank++) {
		const struct seat *seat = &round->seats[rank];
		const struct host *host = &world->hosts[seat->host];
		uint32_t *role = &in_role[seat->host % SIM_ROLES];
		if (seat->rank_base != workers || seat->role_rank_base != *role)
			check_broken(world,
				     "rank %u begins at worker %u, %u in its role; expected %u, %u",
				     rank, seat->rank_base, seat->role_rank_base, workers, *role);
		workers += seat->nproc;
		*role += seat->nproc;
		if (host->node_rank >= 0 && (uint32_t)host->node_rank < round->nodes &&
		    rank != (uint32_t)host->node_rank)
			check_broken(world, "h%u has rank %u, not the %d it was given", seat->host,
				     rank, host->node_rank);
		world->misfit_formed |= host->max_nodes != world->max_nodes;
		if (round->nodes < host->min_nodes || round->nodes > host->max_nodes)
			check_broken(world, "a round of %u nodes with h%u, --nnodes=%u:%u",
				     round->nodes, seat->host, host->min_nodes, host->max_nodes);
	}
	if (workers != round->world_size)
		check_broken(world, "%u workers in a world of %u", workers, round->world_size);
	for (uint32_t rank = 0; rank < round->nodes; rank++)
		if (round->seats[rank].role_world_size !=
		    in_role[round->seats[rank].host % SIM_ROLES])
			check_broken(world, "rank %u was told a role of %u", rank,
				     round->seats[rank].role_world_size);
}

/* Rounds. */

/* There may be agents for two quorums that have no agent in common: two halves of MAX. With an
 * arbiter's lease there is never more than one. */
static bool may_part(const struct world *world)
{
	return world->mode != SIM_MODE_ENDPOINT && !world->fenced &&
	       world->count >= 2 * (world->max_nodes / 2 + 1);
}

/* first: no round came before it, or only one that is void. Agents that have never heard of a round
 * can begin one of their own where there are enough: another half of MAX, or of those that lost
 * their memory. That is another job. */
static bool may_be_another_job(const struct world *world, bool first)
{
	bool forgot = world->amnesia > 0 && world->mode != SIM_MODE_ENDPOINT && !world->fenced;
	return first && (forgot || may_part(world));
}

/* The coordinator lost its memory when it restarted, a moment ago: it cannot know of workers that
 * live out their lease. */
static bool is_unaware(struct world *world, const struct host *host, bool first)
{
	if (world->amnesia == 0 || world->fenced)
		return false;
	const struct round_record *base =
		check_round(world, host->node.coordinator->roster.base.ballot);
	return first || (base && base->unaware && base->term == host->term &&
			 world->now_ns < host->term_ns + host_longest_death_ns(world));
}

static void check_no_older_workers(struct world *world, const struct round_record *round,
				   bool first)
{
	struct ballot ballot = round->ballot;
	if (may_be_another_job(world, first) && world->round_count > 0) {
		world->over = true;
		return;
	}
	if (round->unaware)
		return;
	for (uint32_t i = 0; world->groups_alive > 0 && i < world->count; i++) {
		const struct host *host = &world->hosts[i];
		if (!host->group_alive || ballot_eq(host->group_ballot, ballot) ||
		    excused(world, host))
			continue;
		/* Two jobs, as long as no round has had enough members to confirm it. */
		bool apart = world->rounds[host->group_round].term != round->term;
		world->over |= apart && !world->confirmed && may_part(world);
		check_broken(world, "h%u has workers of %lu.%lu when %lu.%lu forms", i,
			     host->group_ballot.epoch, host->group_ballot.round, ballot.epoch,
			     ballot.round);
	}
}

/* The coordinator has charged `count` restarts to the last round it heard of. */
void check_charge(struct world *world, struct host *host, struct ballot ballot, uint32_t count)
{
	struct round_record *round = check_round(world, ballot);
	bool by_members = round && round->ended_by_members && round->term == host->term;
	if (count > 1 || !round || round->charged_by == host->term)
		check_broken(world, "%lu.%lu charged more than once", ballot.epoch, ballot.round);
	else if (round->failed == 0 || by_members)
		check_broken(world, "%lu.%lu charged, but members had changed", ballot.epoch,
			     ballot.round);
	else
		round->charged_by = host->term;
	host->term_charged = true;
	const struct coordinator *c = host->node.coordinator;
	uint32_t used = world->by_progress ? c->stall.attempts : c->restarts;
	if (used > world->max_restarts)
		check_broken(world, "%u restarts with a budget of %u", used, world->max_restarts);
	world->result->restarts += count;
}

/* For one coordinator: another begins only after a fault. */
static void check_pace(struct world *world, struct host *host)
{
	const struct pace *pace = &world->pace;
	if (host->term_heard && !host->term_charged)
		host->term_rounds++;
	host->term_heard = true;
	host->term_charged = false;
	uint64_t allowed = pace->burst + (world->now_ns - host->term_ns) / pace->interval_ns + 1;
	if (host->term_rounds > allowed)
		check_broken(world, "%u rounds for members in %llu s", host->term_rounds,
			     (unsigned long long)((world->now_ns - host->term_ns) / NS_PER_S));
}

void check_formed(struct world *world, struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	struct round_record round = {
		.ballot = c->roster.heard.ballot,
		.term = host->term,
		.nodes = c->roster.heard.nodes,
		.world_size = c->world_size,
		.restarts = c->restarts,
		.master_port = c->master_port,
	};
	memcpy(round.master_host, c->master_host, sizeof(round.master_host));
	world_trace(world, "c%u forms %lu.%lu with %u nodes, restart %u, base %lu.%lu", host->index,
		    round.ballot.epoch, round.ballot.round, round.nodes, round.restarts,
		    c->roster.base.ballot.epoch, c->roster.base.ballot.round);
	if (check_round(world, round.ballot))
		check_broken(world, "%lu.%lu formed twice", round.ballot.epoch, round.ballot.round);
	round.seats = NEW_ARRAY(struct seat, round.nodes);
	if (take_seats(world, c, &round))
		check_seats(world, &round);
	/* Without a confirmed round before it, more than half of MAX agents are its quorum, and
	 * some of them may have lost their memory. */
	bool first = ballot_is_none(c->roster.base.ballot) &&
		     (round.ballot.round == 1 || !ballot_is_none(c->voided) || world->amnesia > 0);
	world->confirmed |= !ballot_is_none(c->roster.base.ballot);
	round.unaware = is_unaware(world, host, first);
	check_no_older_workers(world, &round, first);
	check_pace(world, host);
	stash_formed(world, c);
	if (world->closed && !first && !(may_part(world) && !world->confirmed))
		check_broken(world, "%lu.%lu formed after the job was closed", round.ballot.epoch,
			     round.ballot.round);
	/* Agents that never heard of the job begin it again. Its end may be on record before any
	 * agent acts on it. */
	world->over |= world->closed || (first && world->arbiter_past.epoch);
	ARRAY_RESERVE(world->rounds, world->round_count, world->round_cap);
	world->rounds[world->round_count++] = round;
	if (world->result->rounds++ == 0)
		world->result->formed_ns = world->now_ns - WORLD_BEGIN_NS;
}

/* A round has ended: by a failure, or by a change of members? */
void check_round_ended(struct world *world, struct host *host, bool by_failure)
{
	struct round_record *round = check_round(world, host->term_ballot);
	if (round)
		round->ended_by_members = !by_failure;
}

/* Workers. */

/* A later round has formed. Not if its coordinator restarted alone: it cannot know of the round,
 * nor that FORMED of it may still be under way to an agent whose lease lasts. */
static bool is_past(const struct world *world, const struct round_record *round)
{
	while (++round < world->rounds + world->round_count)
		if (!round->unaware)
			return true;
	return false;
}

void check_group_start(struct world *world, struct host *host, const struct msg_formed *formed)
{
	struct round_record *round = check_round(world, host->group_ballot);
	if (!round) {
		check_broken(world, "h%u starts workers of a round that nobody formed",
			     host->index);
		return;
	}
	if (host->node.agent.noticed)
		check_broken(world, "h%u starts workers though it is to leave", host->index);
	if (is_past(world, round))
		check_broken(world, "h%u starts workers of %lu.%lu, which is past", host->index,
			     round->ballot.epoch, round->ballot.round);
	if (round->nodes != formed->nodes || round->world_size != formed->world_size ||
	    round->restarts != formed->restarts || round->master_port != formed->master_port ||
	    formed->max_restarts != world->max_restarts ||
	    strcmp(round->master_host, formed->master_host) != 0 ||
	    strcmp(formed->master_host,
		   world->hosts[round->seats[0].host].node.agent.config.node.name) != 0)
		check_broken(world, "h%u was told another %lu.%lu than was formed", host->index,
			     round->ballot.epoch, round->ballot.round);
	struct seat *seat = &round->seats[MIN(formed->group_rank, round->nodes - 1)];
	if (seat->host != host->index || seat->started || seat->rank_base != formed->rank_base ||
	    seat->nproc != host->node.agent.config.node.nproc ||
	    seat->role_rank_base != formed->role_rank_base ||
	    seat->role_world_size != formed->role_world_size ||
	    formed->hosts_store != (formed->group_rank == 0))
		check_broken(world, "h%u takes a seat that is not its own", host->index);
	if (formed->hosts_store && formed->master_port != host->store_port)
		check_broken(world, "h%u is to serve the store of another round", host->index);
	seat->started = true;
	host->group_round = (size_t)(round - world->rounds);
	round->alive++;
	world->groups_alive++;
	world->latest_round = host->group_round;
}

void check_group_end(struct world *world, struct host *host)
{
	world->rounds[host->group_round].alive--;
	world->groups_alive--;
}

void check_step(struct world *world)
{
	if (world->over || world->groups_alive == 0 ||
	    world->rounds[world->latest_round].alive == world->groups_alive)
		return;
	const struct host *first = NULL;
	for (uint32_t i = 0; i < world->count; i++) {
		const struct host *host = &world->hosts[i];
		if (!host->group_alive || !host->node.agent.joined || !net_live(world, host) ||
		    excused(world, host))
			continue;
		if (first && host->group_round != first->group_round)
			check_broken(world, "h%u runs %lu.%lu while h%u runs %lu.%lu", first->index,
				     first->group_ballot.epoch, first->group_ballot.round, i,
				     host->group_ballot.epoch, host->group_ballot.round);
		first = host;
	}
}

/* Ends. */

/* A host that was waited for is not back, and it was waited for long enough. */
static void check_lost(struct world *world, const struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	uint64_t now_ns = world_local_ns(world, host);
	if (roster_usable(&c->roster) >= c->min_nodes)
		check_broken(world, "c%u gives the job up for a lost host, and enough are here",
			     host->index);
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		if (member->loss == LOSS_NONE || strcmp(member->name, c->cause.name) != 0)
			continue;
		if (member->link)
			check_broken(world, "c%u says that h%lu is lost, which is here",
				     host->index, member->id.hi - 1);
		if (now_ns < ns_add(member->lost_ns, world->lost_timeout_ns))
			check_broken(world, "c%u did not wait for %s", host->index, member->name);
	}
}

void check_ruling(struct world *world, const struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	if (c->ruling == RULING_FAILED && c->has_cause && failure_reason_is_host(c->cause.reason) &&
	    !c->cause_is_ruled) {
		check_lost(world, host);
		return;
	}
	const struct round_record *round = check_round(world, c->roster.heard.ballot);
	bool right = round && (c->ruling == RULING_DONE ? round->done == round->nodes
							: round->failed > 0 || c->cause_is_ruled);
	if (!right)
		check_broken(world, "c%u rules %lu.%lu %s, which it was not", host->index,
			     c->roster.heard.ballot.epoch, c->roster.heard.ballot.round,
			     c->ruling == RULING_DONE ? "done" : "failed");
}

/* Where a lease decides, what is closed is on record. A later leader may have recorded another end
 * since, of a job that was begun again. */
void check_closes(struct world *world, const struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	const struct recorded_end *past = &world->arbiter_past;
	if (ballot_compare(c->roster.heard.ballot, world->last) > 0)
		world->last = c->roster.heard.ballot;
	if (world->fenced && c->until_ns &&
	    (past->epoch < c->epoch || (past->epoch == c->epoch && past->ruling != c->ruling)))
		check_broken(world, "c%u closes the job with an end that is not on record",
			     host->index);
}

/* A worker saves, perhaps to leave then, because of the plan that it sees. */
void check_acts(struct world *world, struct host *host, size_t rank, uint64_t step)
{
	struct round_record *round = check_round(world, host->group_ballot);
	struct stop_plan *acted = &round->acted;
	bool leaves = host->shown.kind == PLAN_LEAVE;
	struct sim_stepper *stepper = &host->steppers[rank];
	world_trace(world, "h%u worker %zu saves after step %lu", host->index, rank, step);
	if (acted->serial == host->shown.serial && acted->step != step)
		check_broken(world, "h%u %s after step %lu, another after %lu", host->index,
			     leaves ? "leaves" : "saves", step, acted->step);
	else if (acted->serial > host->shown.serial)
		check_broken(world, "h%u acts on notice %u, another has acted on %u", host->index,
			     host->shown.serial, acted->serial);
	if (acted->serial != host->shown.serial)
		round->acted_before = acted->serial;
	if (stepper->acted != round->acted_before)
		check_broken(world, "h%u did not act on notice %u, another did", host->index,
			     round->acted_before);
	*acted = host->shown;
	acted->step = step;
	stepper->acted = acted->serial;
	world->any_left |= leaves;
	*(leaves ? &world->result->left : &world->result->saved) += 1;
}

/* The end of the job that is done as far as it was to be. Where an arbiter has it on record, who
 * did not hear of it in time hears only that it is done. If others went on and ended the job with a
 * later round, what this one's workers did is past: all hear the same. */
static void check_left(struct world *world, const struct host *host, const struct outcome *outcome)
{
	const struct memory *memory = &host->node.agent.memory;
	if (outcome->left && !world->any_left)
		check_broken(world, "h%u hears that workers left, and none did", host->index);
	if (!outcome->left && memory->left &&
	    ballot_compare(memory->heard.ballot, world->last) >= 0)
		check_broken(world, "h%u does not hear that its workers left", host->index);
	*(outcome->left ? &world->heard_left : &world->heard_all) = true;
	if (world->heard_left && world->heard_all && !world->fenced)
		check_broken(world, "h%u hears that workers %s, another the opposite", host->index,
			     outcome->left ? "left" : "are done");
}

/* Workers of its last round left, and each has saved or ended well. */
static bool all_left(const struct host *host)
{
	bool any = false;
	for (size_t i = 0; i < host->group.count; i++) {
		const struct sim_process *worker = &host->workers[i];
		const struct sim_stepper *stepper = &host->steppers[i];
		any |= stepper->leaving;
		if (!(stepper->leaving && stepper->tells) && (worker->code || worker->signal))
			return false;
	}
	return any;
}

static void check_stopped(struct world *world, const struct host *host,
			  const struct outcome *outcome)
{
	bool heard = host->node.agent.memory.ruling == RULING_DONE;
	if (!outcome->left && all_left(host))
		check_broken(world, "h%u is stopped and forgets that its workers left",
			     host->index);
	if (outcome->left && !all_left(host) && !heard)
		check_broken(world, "h%u is stopped and says that its workers left", host->index);
}

/* Whoever lives when the job ends hears the same cause, and ends with the same code. Where an
 * arbiter has the end on record, who did not hear of it in time hears only how it ended.
 * rule: one-cause */
static void check_cause(struct world *world, const struct host *host, const struct outcome *outcome)
{
	struct cause *first = &world->first_cause;
	const struct cause *heard = &outcome->cause;
	if (world->fenced || outcome->stuck)
		return;
	if (!world->heard_failed)
		*first = *heard;
	if (!cause_is_same(first, heard) || !exit_status_eq(&first->status, &heard->status) ||
	    strcmp(first->words, heard->words) != 0 ||
	    strcmp(first->blame.text, heard->blame.text) != 0)
		check_broken(world,
			     "h%u hears of rank %d on %s (%s; %d %d; %s), another of rank %d on %s "
			     "(%s; %d %d; %s)",
			     host->index, heard->rank, heard->name, heard->words,
			     heard->status.kind, heard->status.value, heard->blame.text,
			     first->rank, first->name, first->words, first->status.kind,
			     first->status.value, first->blame.text);
}

/* An agent that got CLOSED; one with workers that cannot be killed ends on its own. */
static void check_closed(struct world *world, const struct host *host, bool done)
{
	if (host->stuck && !done)
		return;
	*(done ? &world->heard_done : &world->heard_failed) = true;
	if (world->heard_done && world->heard_failed)
		check_broken(world, "h%u %s, another the opposite", host->index,
			     done ? "done" : "failed");
	world->closed = true;
}

void check_exit(struct world *world, const struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	if (c && c->state == COORDINATOR_CLOSED && c->close_ns != NS_NEVER && !host->stopped)
		check_broken(world, "h%u ends before the others know the end of the job",
			     host->index);
}

/* Its coordinator waits for lost hosts, and would end the job for all of them at once. Connections
 * that are only believed to be there do not count. rule: lost-host */
static void check_no_ruling_is_due(struct world *world, const struct host *host)
{
	const struct agent *agent = &host->node.agent;
	bool answered = agent->joined &&
			world_local_ns(world, host) <
				ns_add(agent->answered_ns, 2 * agent->config.node.period_ns);
	for (uint32_t i = 0; i < world->count; i++) {
		const struct host *other = &world->hosts[i];
		const struct coordinator *c = other->node.coordinator;
		const struct member *member =
			c ? roster_by_id(&c->roster, host->node.agent.config.node.id) : NULL;
		if (member && member->link && answered && c->lost_ns != NS_NEVER &&
		    (world_local_ns(world, other) < c->lost_ns || formation_has_quorum(c)) &&
		    roster_busy(&c->roster) == 0 && !world_frozen(world, other))
			check_broken(world, "h%u gives up alone, while c%u waits for a lost host",
				     host->index, i);
	}
}

static void check_in_vain(struct world *world, const struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	if (c && c->state == COORDINATOR_CLOSED)
		check_broken(world, "h%u has closed the job and waits for its end", host->index);
	check_no_ruling_is_due(world, host);
	bool was_in = !ballot_is_none(host->node.agent.memory.member_of[0]);
	if (world->script == SCRIPT_WIDOW && was_in && !world->misfit &&
	    world->now_ns > world->faults_end_ns)
		check_broken(world, "h%u gives up, though only a coordinator was lost",
			     host->index);
}

/* FORMED was lost twice in a row: not all members of `base` were told to start it, or no more than
 * half of MAX have heard of no round and the first is not confirmed. Then perhaps only the
 * coordinator that formed the rounds knows who was in them. */
static bool too_few_were_told(const struct world *world)
{
	struct round_ref base = { .nodes = 0 };
	uint32_t told = 0, unaware = 0;
	for (uint32_t i = 0; i < world->count; i++) {
		const struct memory *memory = &world->hosts[i].node.agent.memory;
		if (world->hosts[i].process && ballot_compare(memory->base.ballot, base.ballot) > 0)
			base = memory->base;
	}
	for (uint32_t i = 0; i < world->count; i++) {
		const struct memory *memory = &world->hosts[i].node.agent.memory;
		told += world->hosts[i].process && memory_was_in(memory, base.ballot);
		unaware += world->hosts[i].process && ballot_is_none(memory->heard.ballot);
	}
	return base.nodes ? told < base.nodes : 2 * unaware <= world->max_nodes;
}

/* Agents that have had time to join. */
static uint32_t count_present(const struct world *world)
{
	uint32_t present = 0;
	for (uint32_t i = 0; i < world->count; i++) {
		const struct host *host = &world->hosts[i];
		present += host->process && host->node_rank < 0 && !host->excluded &&
			   world->now_ns > host->booted_ns + CALM_NS;
	}
	return present;
}

/* Enough agents are here for a round. Where no majority is needed, those that were lost do not
 * matter. */
static bool could_go_on(const struct world *world)
{
	if (world->fenced)
		return count_present(world) >= world->min_nodes;
	return world->amnesia == 0 && !too_few_were_told(world);
}

/* Scripts that take nobody away for good. */
static bool all_may_go_on(const struct world *world)
{
	return !world->script || world->script == SCRIPT_LOST || world->script == SCRIPT_RIVALS ||
	       world->script == SCRIPT_RELIC;
}

void check_outcome(struct world *world, struct host *host, const struct outcome *outcome)
{
	static const char *const names[] = { "done",	  "failed",  "signal",
					     "timed out", "refused", "unknown" };
	static_assert(ARRAY_LEN(names) == OUTCOME_KIND_COUNT, "every outcome needs a name");
	uint32_t *counts = world->result->outcomes;
	world_trace(world, "h%u ends: %s", host->index, names[outcome->kind]);
	counts[outcome->kind]++;
	if (outcome->stalled && (!world->by_progress || outcome->kind != OUTCOME_FAILED))
		check_broken(world, "h%u ends without progress, which did not count", host->index);
	if (host->group_alive && !host->stuck)
		check_broken(world, "h%u ends with workers alive", host->index);
	if (outcome->kind == OUTCOME_FAILED)
		check_cause(world, host, outcome);
	if (outcome->kind == OUTCOME_DONE || outcome->kind == OUTCOME_FAILED)
		check_closed(world, host, outcome->kind == OUTCOME_DONE);
	if (outcome->kind == OUTCOME_DONE)
		check_left(world, host, outcome);
	if (outcome->kind == OUTCOME_SIGNAL && !host->stuck)
		check_stopped(world, host, outcome);
	if (outcome->kind == OUTCOME_SIGNAL && !world->options.faults)
		check_broken(world, "h%u is stopped, though all could have left together",
			     host->index);
	if (outcome->kind == OUTCOME_REFUSED && host->node_rank < 0 && !world->misfit_formed &&
	    !ballot_is_none(host->node.agent.memory.member_of[0]))
		check_broken(world, "h%u has been in a round and is refused", host->index);
	if (outcome->kind == OUTCOME_TIMED_OUT || outcome->kind == OUTCOME_UNKNOWN)
		check_in_vain(world, host);
	bool first = counts[OUTCOME_TIMED_OUT] == 1 && counts[OUTCOME_UNKNOWN] == 0;
	if (outcome->kind == OUTCOME_TIMED_OUT && first && !world->misfit && all_may_go_on(world) &&
	    !world->closed && world->now_ns > world->faults_end_ns + CALM_NS && could_go_on(world))
		check_broken(world, "h%u timed out although enough agents are here", host->index);
	if (outcome->kind != OUTCOME_DONE)
		world->amnesia++;
}
