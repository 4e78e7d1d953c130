"""Stragglers: a rank that the others wait for again and again is named, with the reason, on one host and on hosts with other clocks;
and nobody where nobody waits."""

import json
import os
import re
import signal
import subprocess
import textwrap

import pytest

from netns_job import PORT
from tree import MUSTER, python_env
from waits import DEADLINE, wait_for

STEP_MS, LATE_MS, SLOW = 60, 90, 2
JOB = f"slow-{os.getpid()}"  # others may run the same tests on this host

WORKER = f"""
    import os, sys, time, muster

    kind, mend = sys.argv[1:]
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store, mended = muster.Store(), False

    def meet(step):
        store.barrier(str(step), world)

    for step in range(10**9):
        mended = mended or os.path.exists(mend)
        time.sleep({STEP_MS} / 1000)
        if rank == {SLOW} and not mended:
            time.sleep({LATE_MS} / 1000)
        if kind == "before":
            muster.step(step)
        if kind != "alone":
            meet(step)
        if kind != "before":
            muster.step(step)
        if kind == "alone" and step == 100:
            break
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(textwrap.dedent(WORKER))
    return path


def events(path, kind):
    return [event for event in map(json.loads, path.read_text().splitlines()) if event["event"] == kind] if path.exists() else []


def command(script, log, mend, *options, kind="after"):
    return [MUSTER, "run", f"--events={log}", f"--rdzv-id={JOB}", "--shutdown-timeout=1", *options, str(script), kind, str(mend)]


@pytest.mark.parametrize("kind", ["before", "after"])  # they wait for each other
def test_a_slow_rank_is_named_until_it_keeps_up(tmp_path, script, kind):
    log, mend = tmp_path / "events", tmp_path / "mend"
    with subprocess.Popen(command(script, log, mend, "--nproc-per-node=4", kind=kind),
                          env=python_env(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
        try:
            [found] = wait_for(lambda: events(log, "straggler.found"), "the slow rank to be named")
            assert found["rank"] == SLOW and 2 * found["times_last"] >= found["of_steps"] >= 16 and found["lag_us"] > 0
            status = subprocess.run([MUSTER, "status", JOB], env=python_env(), capture_output=True, text=True, timeout=DEADLINE).stdout
            assert re.search(rf"rank {SLOW} holds the others up: they waited for it at \d+ of \d+ looks, \d+\.\d ms a step", status), status
            state = json.loads(subprocess.run([MUSTER, "status", "--json", JOB], env=python_env(), capture_output=True, text=True,
                                              timeout=DEADLINE).stdout)
            assert [worker["rank"] for worker in state[0]["workers"] if "straggler" in worker] == [SLOW]
            mend.touch()
            [gone] = wait_for(lambda: events(log, "straggler.gone"), "it to keep up again")
            assert gone["rank"] == SLOW
        finally:
            job.terminate()
            err = job.communicate(timeout=DEADLINE)[1]
    assert re.search(rf"rank {SLOW} holds the others up: at \d+ of \d+ looks they waited for it", err)
    assert [event["rank"] for event in events(log, "straggler.found")] == [SLOW]


def test_where_nobody_waits_nobody_is_named(tmp_path, script):
    """A job without a collective or barrier, in which one rank is slower than the others."""
    log = tmp_path / "events"
    done = subprocess.run(command(script, log, tmp_path / "never", "--nproc-per-node=4", kind="alone"), env=python_env(), capture_output=True,
                          text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and "holds the others up" not in done.stderr, done.stderr


def test_hosts_with_other_clocks_are_compared(make_lab, tmp_path, script):
    """node2's monotonic clock is 20 s ahead: without its offset no look would be of the same moment."""
    lab = make_lab(2, clocks={2: 20})
    logs = [tmp_path / f"{host.name}.events" for host in lab.hosts]
    options = ["--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint=node1:{PORT}"]
    agents = [host.start(*command(script, log, tmp_path / "never", *options), env=python_env())
              for host, log in zip(lab.hosts, logs)]
    found = wait_for(lambda: [event for log in logs for event in events(log, "straggler.found")], "the slow rank to be named")
    assert {event["rank"] for event in found} == {SLOW}
    on = next(agent for agent, log in zip(agents, logs) if events(log, "straggler.found"))
    agents[0].says(f"holds the others up: the others waited for rank {SLOW} at ")  # the coordinator says on which host
    on.says(f"rank {SLOW} holds the others up: at ")
    for agent in agents:
        agent.signal(signal.SIGTERM)
    for agent in agents:
        agent.wait()
