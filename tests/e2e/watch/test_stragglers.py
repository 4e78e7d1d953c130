"""Stragglers: a rank that comes last too often is named, with the reason, on one host and on hosts with other clocks.

The workers write times into their pages (muster-page(7)) that they choose, so that a busy machine makes nobody late: step n
was told at a moment that all ranks agree on, by the slow one a while later."""

import json
import os
import re
import signal
import subprocess
import textwrap
import time

import pytest

from netns_job import PORT
from tree import MUSTER, python_env
from waits import DEADLINE, wait_for

STEP_MS, LATE_MS, SLOW = 100, 60, 2
JOB = f"slow-{os.getpid()}"  # others may run the same tests on this host

WORKER = f"""
    import ctypes, os, sys, time
    from muster._native import library

    began_ns, mend = int(sys.argv[1]), sys.argv[2]
    rank = int(os.environ["RANK"])
    address = ctypes.c_void_p()
    assert library().muster_page(ctypes.byref(address)) == 0
    page = memoryview((ctypes.c_char * 4096).from_address(address.value)).cast("B").cast("Q")

    def own_clock():  # what the clock of this host showed at that moment of the wall clock
        looks = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(50)]
        before, wall, after = min(looks, key=lambda look: look[2] - look[0])
        return (before + after) // 2 - (wall - began_ns)

    first_ns, mended = own_clock(), None
    for step in range(10**9):
        if mended is None and step % 8 == 0 and os.path.exists(mend):
            mended = True
        late = rank == {SLOW} and not mended
        when = first_ns + step * {STEP_MS} * 10**6 + late * {LATE_MS} * 10**6
        if step == 0:
            page[6], page[7] = step, when
        page[64 + ((step + 1) & 63)] = when
        page[3] = step
        page[2] = step + 1
        if step % 8 == 7:
            time.sleep(0.1)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(textwrap.dedent(WORKER))
    return path


def events(path, kind):
    return [event for event in map(json.loads, path.read_text().splitlines()) if event["event"] == kind] if path.exists() else []


def command(script, log, mend, *options, began_ns=0):
    return [MUSTER, "run", f"--events={log}", f"--rdzv-id={JOB}", "--shutdown-timeout=1", *options, str(script),
            str(began_ns or time.time_ns()), str(mend)]


def test_a_slow_rank_is_named_until_it_keeps_up(tmp_path, script):
    log, mend = tmp_path / "events", tmp_path / "mend"
    with subprocess.Popen(command(script, log, mend, "--nproc-per-node=4"),
                          env=python_env(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
        try:
            [found] = wait_for(lambda: events(log, "straggler.found"), "the slow rank to be named")
            assert found["rank"] == SLOW and 2 * found["times_last"] >= found["of_steps"] >= 16
            assert abs(found["lag_us"] - 1000 * LATE_MS) < 5000 and found["step"] >= 15
            status = subprocess.run([MUSTER, "status", JOB], env=python_env(), capture_output=True, text=True, timeout=DEADLINE).stdout
            assert re.search(rf"rank {SLOW} holds the others up: last in \d+ of \d+ steps, \d+\.\d ms after the others", status), status
            state = json.loads(subprocess.run([MUSTER, "status", "--json", JOB], env=python_env(), capture_output=True, text=True,
                                              timeout=DEADLINE).stdout)
            assert [worker["rank"] for worker in state[0]["workers"] if "straggler" in worker] == [SLOW]
            mend.touch()
            [gone] = wait_for(lambda: events(log, "straggler.gone"), "it to keep up again")
            assert gone["rank"] == SLOW
        finally:
            job.terminate()
            err = job.communicate(timeout=DEADLINE)[1]
    assert f"rank {SLOW} holds the others up: it came last in " in err
    assert [event["rank"] for event in events(log, "straggler.found")] == [SLOW]


def test_hosts_with_other_clocks_are_compared(make_lab, tmp_path, script):
    """node2's monotonic clock is 20 s ahead: without its offset every rank of node2 would be late."""
    lab = make_lab(2, clocks={2: 20})
    logs = [tmp_path / f"{host.name}.events" for host in lab.hosts]
    options = ["--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint=node1:{PORT}"]
    began_ns = time.time_ns()
    agents = [host.start(*command(script, log, tmp_path / "never", *options, began_ns=began_ns), env=python_env())
              for host, log in zip(lab.hosts, logs)]
    found = wait_for(lambda: [event for log in logs for event in events(log, "straggler.found")], "the slow rank to be named")
    assert {event["rank"] for event in found} == {SLOW}
    on = next(agent for agent, log in zip(agents, logs) if events(log, "straggler.found"))
    agents[0].says(f"holds the others up: rank {SLOW} came last in")  # the coordinator says on which host
    on.says(f"rank {SLOW} holds the others up: it came last in")
    assert abs(found[0]["lag_us"] - 1000 * LATE_MS) < 20000, found
    for agent in agents:
        agent.signal(signal.SIGTERM)
    for agent in agents:
        agent.wait()
