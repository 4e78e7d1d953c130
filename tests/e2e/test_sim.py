"""The simulator: it replays exactly, and it finds seeded mistakes in the cores.

A mutant is one line of a core replaced by a wrong one. The core is compiled anew with it, into a program of
its own; the product contains no trace of them."""

import os
import pathlib
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSTER = os.environ["MUSTER"]
BUILD = pathlib.Path(os.environ["BUILD"])
SEEDS = 2000

# name: (file, the line as it is, the line as it is not)
MUTANTS = {
    "ballots-that-do-not-rise": ("formation.c", "heard.round + 1 }", "heard.round / 2 + 1 }"),
    "workers-outlive-the-link": (
        "agent.c",
        "\tif (agent->alive)\n\t\tact(s, AGENT_GROUP_KILL);\n\tset_state(agent, agent->alive",
        "\tset_state(agent, agent->alive",
    ),
    "lease-and-death-swapped": (
        "roster.c",
        "node->period_ns * (node->lease_periods + 1)",
        "node->period_ns * (node->lease_periods - 2)",
    ),
    "no-quorum": (
        "formation.c",
        "if (c->config.quorum == QUORUM_ANY)\n\t\treturn true;",
        "if (true)\n\t\treturn true;",
    ),
    "half-is-enough-for-anyone": (
        "formation.c",
        "twice > alive || (twice == alive && half_is_enough)",
        "twice >= alive",
    ),
    "double-charge": ("coordinator.c", "\tc->restarts++;", "\tc->restarts += 2;"),
    "charge-for-members": (
        "coordinator.c",
        "if (!c->failed) {\n\t\tc->not_before_ns",
        "if (false) {\n\t\tc->not_before_ns",
    ),
    "budget-ignored": (
        "coordinator.c",
        "if (c->cause.no_restart || c->restarts >= budget(c)) {",
        "if (c->cause.no_restart) {",
    ),
    "rank-gap": ("ranks.c", "\tsize_t rank = 0;", "\tsize_t rank = 0;\n\tif (s->count > 2)\n\t\ts->nodes[0].group_rank++;"),
    "too-many-nodes": ("formation.c", "return MIN(count, c->max_nodes);", "return count;"),
    "forgotten-spare": (
        "formation.c",
        "if (c->roster.members[i]->status == MEMBER_READY)\n\t\t\tpicked",
        "if (c->roster.members[i]->status == MEMBER_READY && c->roster.members[i]->arrival <= c->max_nodes)\n\t\t\tpicked",
    ),
    "nobody-stops-the-others": (
        "coordinator_step.c",
        "if (!step_stoppable(member))\n\t\t\tcontinue;\n\t\tstep_send_stop(s, member, why);",
        "if (!step_stoppable(member))\n\t\t\tcontinue;",
    ),
    "takeover-without-waiting": (
        "coordinator.c",
        "return s->now_ns >= c->regather_ns ||",
        "return true || s->now_ns >= c->regather_ns ||",
    ),
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


def compile_mutant(directory, file, line, wrong):
    source = (ROOT / "src/core" / file).read_text()
    assert source.count(line) == 1, f"{file} has {source.count(line)} of: {line}"
    mutant = directory / file
    mutant.write_text(source.replace(line, wrong))
    program = directory / "muster"
    objects = [str(path) for path in sorted((BUILD / "obj").glob("*/*.o")) if path != BUILD / "obj/core" / (file[:-1] + "o")]
    sanitizer = os.environ.get("SAN")
    flags = ["-D_GNU_SOURCE", "-std=gnu17", "-O1", "-I" + str(ROOT / "src"), "-pthread"]
    flags += ["-fsanitize=" + sanitizer] if sanitizer else []
    packages = "libevent_core libevent_extra jansson hwloc libsodium".split()
    libraries = shlex.split(subprocess.run(["pkg-config", "--libs", *packages], stdout=subprocess.PIPE, text=True, check=True).stdout)
    subprocess.run(["gcc", *flags, "-o", str(program), str(mutant), *objects, *libraries, "-lm"], check=True)
    return str(program)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_mistake_is_found(name, tmp_path):
    program = compile_mutant(tmp_path, *MUTANTS[name])
    result = sim(program, "--faults", f"--runs={SEEDS}")
    assert result.returncode == 1, f"{name} survives {SEEDS} worlds"
    assert "replay: muster sim" in result.stdout
