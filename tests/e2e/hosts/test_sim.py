"""The simulator: it replays exactly, and it finds seeded mistakes in the cores.

A mutant is a line or two of the cores replaced by wrong ones. What they are in is compiled anew, into a
program of its own; the product contains no trace of them."""

import re
import shlex
import subprocess

import pytest

from tree import BUILD, MUSTER, ROOT, SANITIZER

SEEDS = 2000
CORES = [ROOT / "src/core" / name for name in ("rounds", "node", "worker", "pace", "checks")]

# name: lines of the cores as they are, and as they are not
MUTANTS = {
    "no-ballot-check": [
        ("agent.c", "if (ballot_compare(msg->ballot, agent->memory.heard.ballot) >= 0)", "if (true)"),
        ("agent.c", "if (ballot_compare(s->event->msg->ballot, memory->heard.ballot) <= 0)\n\t\treturn;", ""),
        ("coordinator_step.c", "return ballot_compare(ballot, c->roster.heard.ballot) > 0 &&", "return false &&"),
    ],
    "ballots-that-do-not-rise": [("formation.c", "heard.round + 1 }", "heard.round / 2 + 1 }")],
    "epochs-without-salt": [("formation.c", "(heard.epoch, c->config.salt)", "(heard.epoch, 0)")],
    "workers-outlive-the-link": [
        (
            "agent_step.c",
            "\tif (agent->alive)\n\t\tagent_act(s, AGENT_GROUP_KILL);\n\tagent_set_state(agent, agent->alive",
            "\tagent_set_state(agent, agent->alive",
        )
    ],
    "lease-and-death-swapped": [("roster.c", "node->period_ns * (node->lease_periods + 1)", "node->period_ns * (node->lease_periods - 2)")],
    "unreachable-is-dead": [("losses.c", "if (s->event->dead && !member->elsewhere)", "if (!member->elsewhere)")],
    "who-left-for-want-of-an-answer-is-dead": [("losses.c", "if (s->event->dead && !member->elsewhere)", "if (s->event->dead)")],
    "no-quorum": [("formation.c", "if (c->config.quorum == QUORUM_ANY)\n\t\treturn true;", "if (true)\n\t\treturn true;")],
    "half-is-enough-for-anyone": [("formation.c", "twice > alive || (twice == alive && half_is_enough)", "twice >= alive")],
    "old-coordinator-counted-out": [("formation.c", "tally->ready_witness == tally->ready_heard;", "true;")],
    "a-lost-round-stops-the-job": [("formation.c", "never_succeeds(c) &&", "false &&")],
    "takeover-without-waiting": [("advance.c", "return s->now_ns >= c->regather_ns ||", "return true ||")],
    "double-charge": [("advance.c", "\tc->restarts++;", "\tc->restarts += 2;")],
    "charge-for-members": [("advance.c", "\tif (!c->failed) {\n\t\tc->stall.reached", "\tif (false) {\n\t\tc->stall.reached")],
    "charge-for-every-report": [("coordinator.c", "\ts->c->failed = true;\n\tstep_stop_round", "\ts->c->restarts++;\n\tstep_stop_round")],
    "budget-ignored": [("advance.c", "if (c->cause.no_restart || used_up) {", "if (c->cause.no_restart) {")],
    "rank-gap": [("ranks.c", "\tsize_t rank = 0;", "\tsize_t rank = 0;\n\tif (s->count > 2)\n\t\ts->nodes[0].group_rank++;")],
    "workers-overlap": [("ranks.c", "node->rank_base = world_size;", "node->rank_base = world_size - (rank > 3);")],
    "role-rank-gap": [("ranks.c", "node->role_rank_base = (uint32_t)in_role;", "node->role_rank_base = (uint32_t)in_role + (rank > 2);")],
    "node-rank-twice": [("admission.c", "if (!holder || agent_id_eq(holder->id, node->id))", "if (true)")],
    "any-min-max": [("admission.c", "return !c->has_job || (node->min_nodes", "return true || (node->min_nodes")],
    "too-many-nodes": [("formation.c", "return MIN(count, c->max_nodes);", "return count;")],
    "forgotten-spare": [
        (
            "formation.c",
            "!c->roster.members[i]->excluded)\n\t\t\tpicked",
            "c->roster.members[i]->arrival <= c->max_nodes)\n\t\t\tpicked",
        )
    ],
    "unfit-beyond-min": [("formation.c", "MAX(c->roster.tally.ready_willing, c->min_nodes)", "(uint32_t)count")],
    "left-out-in-silence": [("inspection.c", "\tif (!told)\n", "\tif (false)\n")],
    "below-min-because-of-a-check": [("formation.c", "MAX(c->roster.tally.ready_willing, c->min_nodes)", "c->roster.tally.ready_willing")],
    "waits-for-a-measurement-that-hangs": [("pairing.c", "else if (pairing->waiting && s->now_ns < pairing->deadline_ns)", "else if (pairing->waiting)")],
    "partner-of-a-slow-wire-named": [("pairs.c", "is_worse(all[i], top, rule) && !is_its_own(pairs, i, all, rule)", "false")],
    "one-pair-is-enough": [("pairs.c", "return measured >= 2 && better > 0;", "return measured >= 1;")],
    "excluded-gets-workers": [("formation.c", "!c->roster.members[i]->excluded)", "true)")],
    "waits-for-a-checker-that-hangs": [("agent.c", "else if (s->now_ns >= s->agent->check_deadline_ns)", "else if (false)")],
    "members-without-pace": [("advance.c", "c->not_before_ns = pace_earliest_ns(&c->config.membership, 0);", "c->not_before_ns = 0;")],
    "nobody-stops-the-others": [("coordinator_step.c", "\t\tstep_send_stop(s, member, why, &cause);\n", "")],
    # one end, one cause
    "gives-a-lost-host-up-at-once": [("advance.c", "\tif (s->now_ns < c->lost_ns)\n\t\treturn;\n", "")],
    "waits-for-a-lost-host-for-ever": [("advance.c", "\tif (s->now_ns < c->lost_ns)\n", "\tif (true)\n")],
    "agents-give-up-before-their-coordinator": [("coordinator.c", "now_ns < c->not_before_ns || for_lost ||", "now_ns < c->not_before_ns ||"), ("coordinator.c", "\tbool for_lost = c->lost_ns != NS_NEVER && now_ns < c->lost_ns;\n", "")],
    "words-only-for-some": [("closing.c", "\tclosed->cause.age_ns =", "\tif (member->memory.work != WORK_FAILED)\n\t\t*closed->cause.words = 0;\n\tclosed->cause.age_ns =")],
    # rules that chance alone rarely puts to the test: src/sim/scripts.c has worlds for them
    "mail-before-lease": [
        ("agent.c", "\tif (agent_pinging(agent) && s->now_ns >= agent_lease_end_ns(agent))\n\t\ttable", "\tif (false)\n\t\ttable"),
    ],
    "links-not-counted": [
        ("admission.c", "(member && join->attempt < member->attempt)", "(false)"),
    ],
    "base-ignored": [
        ("formation.c", "\treturn ballot_eq(roster->base.ballot, roster->heard.ballot) ||", "\treturn true ||"),
    ],
    "old-join-believed": [
        ("admission.c", "\treturn death_ns && s->now_ns >= ns_add(s->event->greeted_ns, death_ns);", "\treturn false;"),
    ],
    "stamps-ignored": [
        ("coordinator.c", "\t\tmember->fresh_ns = MAX(member->fresh_ns, ping->ping.stamp);", "\t\tmember->fresh_ns = s->now_ns;"),
    ],
    "half-closes-at-once": [
        ("closing.c", "\tif (!formation_may_close(c, false) && s->now_ns < c->tie_ns)\n\t\treturn;", ""),
    ],
    "closes-without-the-predecessor": [
        ("formation.c", "\treturn enough(c, ruled, half_is_enough);", "\tstruct presence here = ready(c);\n\there.in_heard = ruled.in_heard;\n\treturn enough(c, here, half_is_enough);"),
    ],
    "the-next-term-does-not-wait-for-the-workers-of-the-last": [
        ("coordinator_step.c", "return roster_busy(&s->c->roster) > 0 ? ns_add(s->now_ns, s->c->fence_ns) : 0;", "(void)s;\n\treturn 0;"),
    ],
    "rivals-for-ever": [("finder.c", "\t\tif (!rival_stays(s))\n", "\t\tif (!rival_stays(s) || true)\n")],
    # the lease of an arbiter
    "fence-ignored": [
        ("losses.c", "\treturn ns_add(now_ns, c->fence_ns) < c->until_ns;", "\treturn c->until_ns > 0;"),
    ],
    "workers-until-the-end-of-the-lease": [
        ("losses.c", "\treturn ns_add(now_ns, c->fence_ns) < c->until_ns;", "\treturn now_ns < c->until_ns;"),
    ],
    "lease-not-renewed": [
        ("losses.c", "\tc->until_ns = MAX(c->until_ns, s->event->until_ns);", ""),
    ],
    "end-not-recorded": [
        ("closing.c", "if (formation_by_lease(c) && !c->recorded) {", "if (false) {"),
    ],
    "recorded-end-ignored": [
        ("admission.c", "\t       memory->heard.ballot.epoch <= c->config.past.epoch;", "\t       false;"),
    ],
    "record-not-repeated": [
        ("losses.c", "\tc->recording = false; /* the last RECORD may be lost */", ""),
    ],
    "ruled-too-early-and-gone": [
        ("admission.c", "(formation_by_lease(c) && heard.epoch < c->epoch);", "false;"),
        ("node_coordinator.c", "\tif (down->again)\n\t\tsearch_again(&node->search);\n", ""),
    ],
    # how the machines are joined
    "outcome-not-held-back": [
        ("node_coordinator.c", "node->ending = node_stays(node);", "node->ending = false;"),
    ],
    "dead-endpoints-forgotten": [
        ("node_link.c", ".dead_indexes = s->node->dead_indexes,", ".dead_indexes = 0,"),
    ],
    "never-was-linked": [
        ("node_link.c", "\tsearch_linked(&node->search);", ""),
    ],
    "link-state-stuck": [
        ("node_link.c", "\tnode->link_state = NODE_UNLINKED;\n\tnode->link = 0;\n\tnode_seek_at", "\tnode->link = 0;\n\tnode_seek_at"),
    ],
    "attach-while-ending": [
        ("node_search.c", "\tif (node->link_state != NODE_UNLINKED || node_agent_ended(node))\n\t\treturn;\n\tif (node->coordinator)", "\tif (node->link_state == NODE_LINKED)\n\t\treturn;\n\tif (node->coordinator)"),
    ],
    "local-message-lost": [
        ("node_exchange.c", "\telse if (action->link == s->node->link)\n\t\tnode_tell_agent(s, &(struct agent_event){ .type = AGENT_MSG", "\telse if (action->link == s->node->link && action->msg.type != MSG_CLOSED)\n\t\tnode_tell_agent(s, &(struct agent_event){ .type = AGENT_MSG"),
    ],
    "local-stop-lost": [
        ("node_exchange.c", "\telse if (action->link == s->node->link)\n\t\tnode_tell_agent(s, &(struct agent_event){ .type = AGENT_MSG", "\telse if (action->link == s->node->link && action->msg.type != MSG_STOP)\n\t\tnode_tell_agent(s, &(struct agent_event){ .type = AGENT_MSG"),
    ],
    "store-of-an-old-round": [
        ("node_link.c", "\tagent_set_store(&s->node->agent, s->event->host, s->event->port);", "\tif (!s->node->agent.config.node.store_port)\n\t\tagent_set_store(&s->node->agent, s->event->host, s->event->port);"),
    ],
    "join-before-the-store-has-a-place": [
        ("node_link.c", "\tif (node->config.kind == NODE_ALONE) {\n\t\tgo_up(s);\n\t\treturn;\n\t}\n\tnode->link_state = NODE_PLACING;", "\tgo_up(s);"),
    ],
    "held-back-forever": [
        ("node.c", "if (node->ending && !node_stays(node))", "if (false)"),
    ],
    "not-tried-again": [
        ("node_link.c", "\tgo_unlinked(node, was_up ? s->now_ns : ns_add(s->now_ns, SEARCH_RETRY_NS));", "\tgo_unlinked(node, was_up ? s->now_ns : NS_NEVER);"),
    ],
    "reset-taken-for-unreachable": [
        ("node_link.c", ".type = AGENT_LINK_DOWN, .dead = dead });", ".type = AGENT_LINK_DOWN, .dead = false });"),
    ],
    "coordinator-hears-every-end-as-death": [
        ("node_link.c", ".dead = s->event->dead,", ".dead = true,"),
    ],
    "index-of-the-endpoint-lost": [
        ("node_search.c", "node_begin_coordinator(s, action->epoch, action->index);", "node_begin_coordinator(s, action->epoch, -1);"),
    ],
    "coordinators-timer-forgotten": [
        ("node.c", "\tif (node->coordinator && s->now_ns >= coordinator_deadline_ns(node->coordinator))", "\tif (false)"),
    ],
    # clocks of other hosts
    "clocks-of-another-coordinator": [("agent.c", "\t\tagent->clock = (struct clock_offset){ .known = false };\n", "")],
    "answered-when-sent": [("clock_offset.c", "(sample->sent_ns + half_ns)", "sample->sent_ns")],
    # state that is kept over a restart
    "state-that-one-has": [("formation.c", "\t\tkept_meet(common, kept->states);", "")],
    "state-of-other-ranks": [("formation.c", "if (kept->rank_base != picked[i]->rank_base || kept->world_size != c->world_size)", "if (false)")],
    "states-known-by-their-step": [("kept.c", "\tif (by_round != 0)\n\t\treturn by_round;\n", "\tif (by_round != 0 && a->step == b->step && a->step == 0)\n\t\treturn by_round;\n")],
    "older-of-two-states": [("formation.c", "\treturn common[0];", "\treturn kept_is_none(&common[1]) ? common[0] : common[1];")],
    "state-of-a-round-before": [("agent.c", "\t\tmemcpy(agent->memory.kept.states, event->kept, sizeof(event->kept));\n", "")],
    "state-without-its-new-ranks": [("msg.c", "\t\t\t\t      .rank_base = formed->rank_base,\n", "\t\t\t\t      .rank_base = memory->kept.rank_base,\n")],
    # questions to the whole job
    "deadline-of-a-question-ignored": [
        ("questions.c", "\t\tif (q->deadline_ns <= now_ns)\n", "\t\tif (false)\n"),
    ],
    "hosts-named-twice": [
        ("questions.c", "\t\tif (!is_waited_for(&q->slots[i]))\n\t\t\tcontinue;", "\t\tif (q->slots[i].state == SLOT_FREE)\n\t\t\tcontinue;"),
    ],
    "lost-hosts-left-out": [
        ("questions.c", "\tbool there = member->link || (member->in_round && !member->left);", "\tbool there = member->link;"),
    ],
    "old-hosts-asked": [("questions.c", "\t\telse if (!host->answers)\n", "\t\telse if (false)\n")],
    "more-granted-than-taken": [
        ("questions.c", "{ q->number, taken->slot, (uint8_t)pieces };", "{ q->number, taken->slot, (uint8_t)(pieces + 1) };"),
    ],
    "answers-not-counted": [("questions.c", "\tif (answer->last)\n\t\tq->answered++;\n", "")],
    "one-number-for-all-questions": [("questions.c", "\tif (++s->questions->last_number == 0)\n", "\tif (s->questions->last_number == 0)\n")],
    "any-number-of-questions-per-link": [("questions.c", "\treturn of_asker < QUESTIONS_PER_ASKER && of_kind", "\treturn of_kind")],
    "question-of-an-asker-that-is-gone": [("questions.c", "\t\tif (q->number && q->asker == link)\n", "\t\tif (false)\n")],
    "question-passed-on-for-ever": [("asking.c", "\tif (msg->type == MSG_ENDED)\n\t\trelay->id = 0;\n", "")],
    "asker-not-told-of-a-lost-coordinator": [("asking.c", "\t\tif (asking->relays[i].id)\n\t\t\tend_relay", "\t\tif (false)\n\t\t\tend_relay")],
    "answers-outlive-the-link": [("asking.c", "\t\tif (asking->answers[i].question)\n\t\t\tdrop", "\t\tif (false)\n\t\t\tdrop")],
    "askers-forgotten-by-a-coordinator-that-gives-up": [
        ("node_asks.c", "\tquestions_give_up(node->questions, asks(s));\n", ""),
    ],
    "end-of-an-askers-link-not-passed-on": [("node_asks.c", "\telse if (node->asking)\n\t\tasking_asker_down", "\telse if (false)\n\t\tasking_asker_down")],
    # leaving and saving together
    "agreed-without-all-votes": [
        ("accord.c", "\tc->accord.voted = 0;\n", ""),
    ],
    "a-refusal-counts-as-a-vote": [("accord.c", "\telse if (furthest(c) > plan->step)\n\t\tpropose(s);\n", "")],
    "a-save-that-is-agreed-on-is-abandoned": [("accord.c", "accord->plan.phase == PLAN_COMMITTED) {\n\t\taccord->leave_wanted", "false) {\n\t\taccord->leave_wanted")],
    "workers-that-did-not-answer-count": [("leaving.c", "\t\treturn positions->unknown == 0;", "\t\treturn true;")],
    "votes-on-another-plan": [("leaving.c", "agent->voted || !plan_eq(&s->event->of, plan) ||", "agent->voted ||"), ("leaving.c", "\tagent_act(s, AGENT_PLAN)->plan = agent->plan;", "\tif (agent->plan.phase != PLAN_PROPOSED)\n\t\tagent_act(s, AGENT_PLAN)->plan = agent->plan;")],
    "deadline-of-a-notice-ignored": [("leaving.c", "agent->noticed && s->now_ns >= agent->notice_ns)", "agent->noticed && false)")],
    "next-round-in-spite-of-a-notice": [("leaving.c", "\treturn agent->noticed && agent->memory.ruling == RULING_NONE &&", "\treturn false &&")],
    "that-workers-left-is-forgotten": [("coordinator.c", "\tc->left |= s->event->msg->done.left;\n", "")],
    "that-workers-left-dies-with-the-coordinator": [("advance.c", "\t\tc->left = left(c);\n", "")],
    "that-workers-left-is-forgotten-with-the-round": [("leaving.c", "\toutcome.left = s->agent->memory.left || s->agent->workers_left;\n", "")],
    "that-workers-left-is-forgotten-when-they-are-killed": [("agent.c", "\t\tagent->memory.left |= event->left;\n\t\tagent->workers_left = event->left;\n", "")],
    "lost-workers-count-as-left": [("stop_plan.c", "\tleavers->lost += !ended_well && !saved;\n", "\t(void)saved;\n\t(void)ended_well;\n")],
    "worker-goes-on-after-the-proposed-step": [("stop_plan.c", "\t\tif (reached) {", "\t\tif (false) {")],
    "worker-does-not-say-where-it-is": [("stop_plan.c", "\t\tatomic_store(&page->at, pack(step + 1, plan.serial, 0));", "\t\tatomic_store(&page->at, pack(step, plan.serial, 0));")],
    # whether the job hangs
    "some-who-are-silent-are-enough": [("hang.c", "if (hosts && tally->silent == hosts && !tally->works) {", "if (hosts && tally->silent && !tally->works) {")],
    "nobody-judges-silence": [("silence.c", "\tset_signs(s->c, member, &s->event->msg->signs.signs);", "\tif (member)\n\t\treturn;")],
    "who-is-done-counts-as-going-on": [("silence.c", "c->roster.tally.count[MEMBER_ACTIVE],", "c->roster.heard.nodes,")],
    # who holds the others up
    "steps-on-the-clock-of-their-own-host": [
        ("agent_pass.c", "\t\t\tmark->last_ns = clock_offset_there(&agent->clock, mark->last_ns);\n\t\t\tmark->mean_ns = clock_offset_there(&agent->clock, mark->mean_ns);\n", ""),
    ],
    "clocks-taken-for-exact": [("straggler.c", "\treturn lag_ns >= MAX(least_ns, error_ns) ? lag_ns : 0;", "\t(void)error_ns;\n\treturn lag_ns >= least_ns ? lag_ns : 0;")],
    "verdict-of-the-round-before": [("coordinator_step.c", "\twait_groups_done(&c->pacing.groups);\n\tc->pacing = (struct pacing){ .steps.world_size = 0 };\n", "")],
    "nobody-is-late": [("straggler.c", "2 * news->times >= news->of &&", "news->times > news->of &&")],
    "named-at-every-step": [("waits.c", "if (is_named(w, s->named[i]) || !strag", "if (!strag")],
    "local-rank-taken-for-rank": [("host_steps.c", ".rank = steps->rank_base + local_rank,", ".rank = local_rank,")],
}


NAMES = list(MUTANTS)
PACED = NAMES[NAMES.index("steps-on-the-clock-of-their-own-host") :]  # workers tell steps only where they are asked to
NOTICED = NAMES[NAMES.index("agreed-without-all-votes") : NAMES.index("some-who-are-silent-are-enough")]  # a third of all worlds may be too few


SILENT = NAMES[NAMES.index("some-who-are-silent-are-enough") : NAMES.index(PACED[0])]


def sim(program, *args):
    return subprocess.run([program, "sim", *args], stdout=subprocess.PIPE, text=True, timeout=120)


def test_the_same_seed_is_the_same_run():
    runs = [sim(MUSTER, "--faults", "--seed=7", "--trace").stdout for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(runs[0].splitlines()) > 10


def test_without_faults_every_agent_ends_well():
    result = sim(MUSTER, "--agents=20", "--runs=20")
    assert result.returncode == 0, result.stdout
    assert ", 0 failed, 0 by signal, 0 timed out, 0 refused, 0 unknown" in result.stdout


def test_without_faults_all_leave_together():
    result = sim(MUSTER, "--notices", "--runs=300")
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"(\d+) workers left together", result.stdout)[1]) > 300
    assert ", 0 by signal," in result.stdout


@pytest.mark.parametrize("faults", [[], ["--faults"]])
def test_the_slow_worker_and_no_other_is_named(faults):
    """Also when coordinators change. That every verdict is right is one of the invariants."""
    result = sim(MUSTER, "--pace", "--runs=500", *faults)
    assert result.returncode == 0, result.stdout
    late, judged = (int(n) for n in re.search(r"(\d+) times a worker named as late; (\d+) rounds", result.stdout).groups())
    assert late >= judged > 3


@pytest.mark.parametrize("faults", [[], ["--faults"]])
def test_a_host_looks_why_the_job_hangs_when_all_are_silent_and_only_then(faults):
    result = sim(MUSTER, "--silence", "--runs=500", *faults)
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"silence: (\d+) times", result.stdout)[1]) > 100


def test_checks_of_thousands_of_nodes_name_none_that_is_well_and_cost_seconds():
    formed = []
    for options in ((), ("--checks",)):
        result = sim(MUSTER, "--agents=3000", "--seed=3", *options)
        assert result.returncode == 0 and "not fit" not in result.stdout, result.stdout
        formed.append(float(re.search(r"first rounds: (\S+) s", result.stdout)[1]))
    assert formed[0] + 1 < formed[1] < formed[0] + 4, formed  # in virtual time
    result = sim(MUSTER, "--checks", "--runs=300")
    assert result.returncode == 0 and "not fit" not in result.stdout, result.stdout


def test_thousands_of_agents_form_one_round():
    result = sim(MUSTER, "--agents=3000")
    assert result.returncode == 0, result.stdout
    assert "1 rounds" in result.stdout


def test_the_arbiters_lease_grows_with_the_job():
    """As that of the program does: agents of a large job live longer without an answer."""
    result = sim(MUSTER, "--agents=10000", "--seed=424230", "--coordination=arbiter")
    assert result.returncode == 0, result.stdout


def test_a_question_costs_each_agent_the_same_however_many_there_are():
    """Messages per agent and pieces on their way to the asker: from one size on, they do not grow with the job."""
    costs = []
    for agents in (500, 2000, 10000):
        result = sim(MUSTER, f"--agents={agents}", "--askers=2")
        assert result.returncode == 0, result.stdout
        costs.append([int(n) for n in re.findall(r"at most (\d+) messages .* and (\d+) pieces", result.stdout)[0]])
    for messages, pieces in costs:
        assert messages <= 2 + 2 * 6  # of the longest answers there
        assert pieces <= 1024  # hosts that are asked at a time, by the pieces of each
    assert costs[0][0] == costs[1][0] == costs[2][0]


@pytest.mark.parametrize("args", [["--agents=-1"], ["--agents=2000000"], ["--askers=2000"], ["--runs=0"], ["--faults", "--agents=5000"], ["word"]])
def test_bad_values_are_usage_errors(args):
    assert sim(MUSTER, *args).returncode == 2


def mutate(directory, edits):
    for file, line, wrong in edits:
        changed = directory / file
        folder = next(folder for folder in CORES if (folder / file).exists())
        source = (changed if changed.exists() else folder / file).read_text()
        assert source.count(line) == 1, f"{file} has {source.count(line)} of: {line}"
        changed.write_text(source.replace(line, wrong))
    return sorted({file for file, _, _ in edits})


def compile_mutant(directory, edits):
    files = mutate(directory, edits)
    objects = [BUILD / "obj/cli/main.o", BUILD / "core.a"]  # what the mutant defines is not taken from the archive
    flags = ["-D_GNU_SOURCE", "-std=gnu17", "-O1", "-I" + str(ROOT / "src"), "-pthread"]
    flags += ["-fsanitize=" + SANITIZER] if SANITIZER else []
    packages = "libevent_core libevent_extra hwloc libsodium".split()
    libraries = shlex.split(subprocess.run(["pkg-config", "--libs", *packages], stdout=subprocess.PIPE, text=True, check=True).stdout)
    program = directory / "muster"
    sources = [str(directory / file) for file in files]
    subprocess.run(["gcc", *flags, "-o", str(program), *sources, *map(str, objects), *libraries, "-lm"], check=True)
    return str(program)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_mistake_is_found(name, tmp_path):
    program = compile_mutant(tmp_path, MUTANTS[name])
    result = sim(program, "--faults", f"--runs={SEEDS}", *(["--pace"] if name in PACED else ["--silence"] if name in SILENT else []))
    if result.returncode == 0 and name in NOTICED:
        result = sim(program, "--faults", "--notices", f"--runs={SEEDS}")
    assert result.returncode == 1, f"{name} survives {SEEDS} worlds"
    assert "replay: muster sim" in result.stdout
