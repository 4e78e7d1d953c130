"""Stragglers by the order of arrival at collectives: with the flight recorder of the real PyTorch, muster names a rank that comes last to
them by itself, though no worker tells steps.

A rank that is late sleeps for much longer than a busy machine holds anybody up, so who comes last is certain."""

import json
import os
import re
import signal
import urllib.request

import pytest

from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

LATE_S = 0.2
JOB = f"late-{os.getpid()}"  # others may run the same tests on this host
WARM = "--preload=torch,torch.distributed"

WORKER = f"""
import os, sys, time
import torch, torch.distributed as dist
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo")
tensor = torch.ones(4)
for step in range(10**9):
    late = rank == 1 if sys.argv[1] == "slow" else rank == step % ranks
    time.sleep({LATE_S} if late else 0)
    dist.all_reduce(tensor)
"""


@pytest.fixture
def env():
    return clean_env(LOGLEVEL="DEBUG", OMP_NUM_THREADS="1")


def events(path, kind):
    return [event for event in map(json.loads, path.read_text().splitlines()) if event["event"] == kind] if path.exists() else []


def stragglers(port):
    """The metric of each rank."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port.number}/metrics", timeout=DEADLINE) as answer:
        text = answer.read().decode()
    return {int(rank): float(value) for rank, value in re.findall(r'^muster_worker_straggler\{rank="(\d+)".*\} (\S+)$', text, re.M)}


def test_a_rank_that_comes_last_is_named_in_the_log_an_event_a_metric_and_the_status(start, muster, place, env, tmp_path, port):
    log, said = tmp_path / "events", tmp_path / "said"
    with open(said, "w") as stderr:
        job = start("run", "--nproc-per-node=3", "--flight-recorder", WARM, f"--rdzv-id={JOB}", f"--events={log}", f"--http=127.0.0.1:{port.number}",
                    place("worker.py", WORKER), "slow", env=env, stderr=stderr)
    [found] = wait_for(lambda: events(log, "straggler.found"), "rank 1 to be named")
    assert found["rank"] == 1 and found["group"] == "default_pg" and "of_steps" not in found
    assert 2 * found["times_last"] >= found["of_collectives"] >= 16 and found["lag_us"] > 1e6 * LATE_S / 2
    assert stragglers(port) == {0: 0, 1: 1, 2: 0}
    status = muster("status", JOB, env=env).stdout
    assert re.search(r"rank 1 holds the others up: it came last to \d+ of \d+ collectives of group 'default_pg', \d+\.\d ms after the others", status), status
    job.send_signal(signal.SIGTERM)
    job.wait(DEADLINE)
    assert re.search(r"rank 1 holds the others up: it came last to \d+ of \d+ collectives of group 'default_pg' that were waited for, ", said.read_text())
    assert [event["rank"] for event in events(log, "straggler.found")] == [1]


def test_ranks_that_come_last_in_turn_are_not_named(start, place, env, tmp_path):
    log, said = tmp_path / "events", tmp_path / "said"
    with open(said, "w") as stderr:
        job = start("run", "--nproc-per-node=3", "--flight-recorder", WARM, f"--rdzv-id={JOB}", f"--events={log}", place("worker.py", WORKER), "turns",
                    env=env, stderr=stderr)

    def judged():  # collectives, in all looks so far
        return sum(map(int, re.findall(r"when ranks came to (\d+) collectives of group 'default_pg'", said.read_text())))

    wait_for(lambda: judged() >= 40, "the order of arrival to be judged")
    job.send_signal(signal.SIGTERM)
    job.wait(DEADLINE)
    assert not events(log, "straggler.found") and "holds the others up" not in said.read_text()


def test_ranks_of_hosts_with_other_clocks_are_compared(make_lab, place, env, tmp_path):
    """node2's monotonic clock is 20 s ahead: without its offset the ranks of one host would be late."""
    lab = make_lab(2, clocks={2: 20})
    script, logs = place("worker.py", WORKER), [tmp_path / f"{host.name}.events" for host in lab.hosts]
    agents = [host.start(MUSTER, "run", "--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint={lab.hosts[0].name}:29400", f"--rdzv-id={JOB}",
                         "--flight-recorder", WARM, f"--events={log}", script, "slow", env=env) for host, log in zip(lab.hosts, logs)]
    found = wait_for(lambda: [event for log in logs for event in events(log, "straggler.found")], "rank 1 to be named")
    assert [event["rank"] for event in found] == [1] and found[0]["group"] == "default_pg"
    assert found[0]["lag_us"] > 1e6 * LATE_S / 2
    agents[0].says("holds the others up: rank 1 came last to")  # the coordinator says on which host
    next(agent for agent, log in zip(agents, logs) if events(log, "straggler.found")).says("rank 1 holds the others up: it came last to")
    for agent in agents:
        agent.signal(signal.SIGTERM)
    for agent in agents:
        agent.wait()
    assert [event["rank"] for log in logs for event in events(log, "straggler.found")] == [1]
