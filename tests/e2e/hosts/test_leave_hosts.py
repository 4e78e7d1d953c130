"""Leaving together on two hosts (namespaces) that lose each other before the workers have ended."""

import re
import signal

from tree import MUSTER, python_env
from waits import wait_for

# Has saved and left, but takes its time to end.
WORKER = """
import os, time, muster
rank = os.environ["RANK"]
for step in range(10**9):
    time.sleep(0.005)
    if muster.stop_after(step):
        muster.saved(step)
        print(f"rank {rank} left after {step}", flush=True)
        time.sleep(10**6)
    if step == 1:
        print(f"rank {rank} runs", flush=True)
"""


def test_workers_that_have_saved_have_left_though_their_hosts_lose_each_other(make_lab):
    lab = make_lab(2)
    script = lab.directory / "worker.py"
    script.write_text(WORKER)
    command = [MUSTER, "run", "--nnodes=2", "--nproc-per-node=2", "--rdzv-endpoint=node1:29400", "--rdzv-id=job", "--notice=1h"]
    one, two = agents = [host.start(*command, script, env=python_env()) for host in lab.hosts]

    def say(text):
        wait_for(lambda: all(agent.text().count(text) >= 2 for agent in agents), f"both hosts to say '{text}'")

    say("runs")
    two.signal(signal.SIGTERM)
    say("left after")
    two.host.freeze()
    assert one.wait() == 94, one.text()
    two.host.thaw()
    assert two.wait() == 94, two.text()
    assert all("2 of 2 here have saved it" in agent.text() for agent in agents)
    left = dict(re.findall(r"rank (\d) left after (\d+)", one.text() + two.text()))
    assert sorted(left) == ["0", "1", "2", "3"] and len(set(left.values())) == 1
