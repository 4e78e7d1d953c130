"""Checks: what --preflight=quick adds to the start of a job, on four hosts made of network namespaces (tests/e2e/lib/netns.py), which
share the CPUs of this machine, and in the simulator on 10,000, whose checks take 1 to 2 s of virtual time. torchrun checks nothing."""

import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import time

from table import ROOT, head, row

sys.path.insert(0, str(ROOT / "tests" / "e2e" / "lib"))

from netns import Lab, Unavailable  # noqa: E402
from netns_job import PORT  # noqa: E402
from tree import MUSTER, clean_env  # noqa: E402
from waits import wait_for  # noqa: E402

JOBS = 10  # of each kind, in turn
AGENTS = 10000
SEEDS = (3, 6, 9)  # in these worlds nobody checks anything unless told to


def formed(path):
    """When the host's first round was formed."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    for event in (json.loads(line) for line in lines if line.endswith("\n")):
        if event["event"] == "round.formed":
            return datetime.datetime.fromisoformat(event["ts"]).timestamp()
    return None


def start_job(lab, number, *options):
    """Seconds from the start of four agents to the round on the last of them."""
    events = [lab.directory / f"{host.name}-{number}.events" for host in lab.hosts]
    began = time.time()
    agents = [host.start(MUSTER, "run", "--nnodes=4", f"--rdzv-endpoint=node1:{PORT}", "--rdzv-id=job", f"--events={path}",
                         "--log-dir=/dev/null", *options, "true", env=clean_env()) for host, path in zip(lab.hosts, events)]
    last = max(wait_for(lambda: (times := [formed(path) for path in events]) and all(times) and times, "a round of 4 nodes"))
    if any(agent.wait() for agent in agents):
        sys.exit("a job failed:\n" + "".join(agent.text() for agent in agents))
    return last - began


def measure_hosts():
    plain, quick = [], []
    with Lab(4) as lab:
        for number in range(0, 2 * JOBS, 2):
            plain.append(start_job(lab, number))
            quick.append(start_job(lab, number + 1, "--preflight=quick"))
    row(f"4 hosts, start to the first round, median of {JOBS}", f"{statistics.median(plain):.3f}", None, "s")
    row("  with --preflight=quick", f"{statistics.median(quick):.3f}", None, "s")
    row("  quick adds", f"{statistics.median(quick) - statistics.median(plain):.3f}", None, "s", "<= 2")


def simulate(seed, *options):
    """Virtual seconds to the first round, and the simulator's CPU time."""
    process = subprocess.Popen([MUSTER, "sim", f"--agents={AGENTS}", f"--seed={seed}", *options], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"muster sim ended with {status}:\n{text}")
    return float(re.search(r"first rounds: (\S+) s", text)[1]), usage.ru_utime + usage.ru_stime


def main():
    head("checks")
    try:
        measure_hosts()
    except Unavailable as why:
        print(f"network namespaces cannot be made here: {why}")
    plain, checked = [simulate(seed) for seed in SEEDS], [simulate(seed, "--checks") for seed in SEEDS]
    added = [b[0] - a[0] for a, b in zip(plain, checked)]
    row(f"10,000 simulated hosts: quick adds, median of {len(SEEDS)} worlds", f"{statistics.median(added):.3f}", None, "s", "<= 2 + pairs")
    row("  CPU time of all agents and the coordinator, of each host",
        f"{statistics.median(b[1] - a[1] for a, b in zip(plain, checked)) / AGENTS * 1e6:.0f}", unit="us")


if __name__ == "__main__":
    main()
