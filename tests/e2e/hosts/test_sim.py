"""The simulator: it replays exactly, and it finds seeded mistakes in the cores.

A mutant is a line or two of the cores replaced by wrong ones. What they are in is compiled anew, into a
program of its own; the product contains no trace of them."""

import shlex
import subprocess

import pytest

from tree import BUILD, MUSTER, ROOT, SANITIZER

SEEDS = 4000

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
            "agent.c",
            "\tif (agent->alive)\n\t\tact(s, AGENT_GROUP_KILL);\n\tset_state(agent, agent->alive",
            "\tset_state(agent, agent->alive",
        )
    ],
    "lease-and-death-swapped": [("roster.c", "node->period_ns * (node->lease_periods + 1)", "node->period_ns * (node->lease_periods - 2)")],
    "unreachable-is-dead": [("coordinator.c", "if (s->event->dead && !member->elsewhere)", "if (!member->elsewhere)")],
    "who-left-for-want-of-an-answer-is-dead": [("coordinator.c", "if (s->event->dead && !member->elsewhere)", "if (s->event->dead)")],
    "no-quorum": [("formation.c", "if (c->config.quorum == QUORUM_ANY)\n\t\treturn true;", "if (true)\n\t\treturn true;")],
    "half-is-enough-for-anyone": [("formation.c", "twice > alive || (twice == alive && half_is_enough)", "twice >= alive")],
    "old-coordinator-counted-out": [("formation.c", "tally->ready_witness == tally->ready_heard;", "true;")],
    "a-lost-round-stops-the-job": [("formation.c", "never_succeeds(c) &&", "false &&")],
    "takeover-without-waiting": [("coordinator.c", "return s->now_ns >= c->regather_ns ||", "return true ||")],
    "double-charge": [("coordinator.c", "\tc->restarts++;", "\tc->restarts += 2;")],
    "charge-for-members": [("coordinator.c", "if (!c->failed) {\n\t\tc->not_before_ns", "if (false) {\n\t\tc->not_before_ns")],
    "charge-for-every-report": [("coordinator.c", "\ts->c->failed = true;\n\tstep_stop_round", "\ts->c->restarts++;\n\tstep_stop_round")],
    "budget-ignored": [("coordinator.c", "if (c->cause.no_restart || c->restarts >= budget(c)) {", "if (c->cause.no_restart) {")],
    "rank-gap": [("ranks.c", "\tsize_t rank = 0;", "\tsize_t rank = 0;\n\tif (s->count > 2)\n\t\ts->nodes[0].group_rank++;")],
    "workers-overlap": [("ranks.c", "node->rank_base = world_size;", "node->rank_base = world_size - (rank > 3);")],
    "role-rank-gap": [("ranks.c", "node->role_rank_base = (uint32_t)in_role;", "node->role_rank_base = (uint32_t)in_role + (rank > 2);")],
    "node-rank-twice": [("admission.c", "if (!holder || agent_id_eq(holder->id, node->id))", "if (true)")],
    "any-min-max": [("admission.c", "return !c->has_job || (node->min_nodes", "return true || (node->min_nodes")],
    "too-many-nodes": [("formation.c", "return MIN(count, c->max_nodes);", "return count;")],
    "forgotten-spare": [
        (
            "formation.c",
            "if (c->roster.members[i]->status == MEMBER_READY)\n\t\t\tpicked",
            "if (c->roster.members[i]->status == MEMBER_READY && c->roster.members[i]->arrival <= c->max_nodes)\n\t\t\tpicked",
        )
    ],
    "members-without-pace": [("coordinator.c", "c->not_before_ns = pace_earliest_ns(&c->config.membership, 0);", "c->not_before_ns = 0;")],
    "nobody-stops-the-others": [("coordinator_step.c", "\t\tstep_send_stop(s, member, why);\n", "")],
    # rules that chance alone rarely puts to the test: src/sim/scripts.c has worlds for them
    "mail-before-lease": [
        ("agent.c", "\t\tif (pinging(agent) && now_ns >= lease_end_ns(agent))\n", "\t\tif (false)\n"),
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
        ("closing.c", "\tif (!formation_has_majority(c) && s->now_ns < c->tie_ns)\n\t\treturn;", ""),
    ],
    # how the machines are joined
    "outcome-not-held-back": [
        ("node.c", "node->ending = c && c->state == COORDINATOR_CLOSED && !node->finished;", "node->ending = false;"),
    ],
    "dead-endpoints-forgotten": [
        ("node.c", "\t\t\t\t\t     .dead_indexes = s->node->dead_indexes });", "\t\t\t\t\t     .dead_indexes = 0 });"),
    ],
    "never-was-linked": [
        ("node.c", "\tnode->was_linked = true;", ""),
    ],
    "link-state-stuck": [
        ("node.c", "\tnode->link_state = NODE_UNLINKED;\n\tnode->link = 0;\n\tseek_at", "\tnode->link = 0;\n\tseek_at"),
    ],
    "attach-while-ending": [
        ("node.c", "\tif (node->link_state != NODE_UNLINKED || agent_ended(node))\n\t\treturn;\n\tif (node->coordinator)", "\tif (node->link_state == NODE_LINKED)\n\t\treturn;\n\tif (node->coordinator)"),
    ],
    "local-message-lost": [
        ("node.c", "\t} else if (action->link == s->node->link) {\n\t\ttell_agent(s, &(struct agent_event){ .type = AGENT_MSG", "\t} else if (action->link == s->node->link && action->msg.type != MSG_CLOSED) {\n\t\ttell_agent(s, &(struct agent_event){ .type = AGENT_MSG"),
    ],
    "local-stop-lost": [
        ("node.c", "\t} else if (action->link == s->node->link) {\n\t\ttell_agent(s, &(struct agent_event){ .type = AGENT_MSG", "\t} else if (action->link == s->node->link && action->msg.type != MSG_STOP) {\n\t\ttell_agent(s, &(struct agent_event){ .type = AGENT_MSG"),
    ],
    "store-of-an-old-round": [
        ("node.c", "\tagent_set_store(&s->node->agent, s->event->host, s->event->port);", "\tif (!s->node->agent.config.node.store_port)\n\t\tagent_set_store(&s->node->agent, s->event->host, s->event->port);"),
    ],
    "join-before-the-store-has-a-place": [
        ("node.c", "\tif (node->config.kind == NODE_ALONE) {\n\t\tgo_up(s);\n\t\treturn;\n\t}\n\tnode->link_state = NODE_PLACING;", "\tgo_up(s);"),
    ],
    "held-back-forever": [
        ("node.c", "\ts->node->finished = true;\n\tif (s->node->ending)\n\t\trelease(s);", "\ts->node->finished = true;"),
    ],
    "not-tried-again": [
        ("node.c", "\tgo_unlinked(node, was_up ? s->now_ns : ns_add(s->now_ns, NODE_RETRY_NS));", "\tgo_unlinked(node, was_up ? s->now_ns : NS_NEVER);"),
    ],
    "reset-taken-for-unreachable": [
        ("node.c", ".type = AGENT_LINK_DOWN, .dead = dead });", ".type = AGENT_LINK_DOWN, .dead = false });"),
    ],
    "coordinator-hears-every-end-as-death": [
        ("node.c", "\t\t\t\t\t\t\t\t .link = s->event->link,\n\t\t\t\t\t\t\t\t .dead = s->event->dead,", "\t\t\t\t\t\t\t\t .link = s->event->link,\n\t\t\t\t\t\t\t\t .dead = true,"),
    ],
    "index-of-the-endpoint-lost": [
        ("node.c", "\t\t\tcoordinate(s, 0, node->finder.config.own);", "\t\t\tcoordinate(s, 0, -1);"),
    ],
    "coordinators-timer-forgotten": [
        ("node.c", "\tif (node->coordinator && s->now_ns >= coordinator_deadline_ns(node->coordinator))", "\tif (false)"),
    ],
}


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


def test_thousands_of_agents_form_one_round():
    result = sim(MUSTER, "--agents=3000")
    assert result.returncode == 0, result.stdout
    assert "1 rounds" in result.stdout


@pytest.mark.parametrize("args", [["--agents=-1"], ["--agents=2000000"], ["--runs=0"], ["--faults", "--agents=5000"], ["word"]])
def test_bad_values_are_usage_errors(args):
    assert sim(MUSTER, *args).returncode == 2


def mutate(directory, edits):
    for file, line, wrong in edits:
        changed = directory / file
        source = (changed if changed.exists() else ROOT / "src/core/rounds" / file).read_text()
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
    result = sim(program, "--faults", f"--runs={SEEDS}")
    assert result.returncode == 1, f"{name} survives {SEEDS} worlds"
    assert "replay: muster sim" in result.stdout
