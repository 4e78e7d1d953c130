"""Hosts: how soon the others go on when one of four is lost. The hosts are network namespaces on a switch
(tests/e2e/lib/netns.py); what hosts_scenarios.py says of torchrun in the same place is in docs/differences.md."""

import datetime
import json
import os
import signal
import statistics
import sys
import time

from table import ROOT, head, row

sys.path.insert(0, str(ROOT / "tests" / "e2e" / "lib"))

from tree import MUSTER, clean_env  # noqa: E402
from waits import wait_for  # noqa: E402
from netns import Lab, Unavailable  # noqa: E402
from netns_job import PORT  # noqa: E402

WORKERS = 2  # on each host
JOBS = 5  # each loses every host but the coordinator's once; more changes of members would be paced


class Job:
    """Sleeping workers on every host of a lab, and when their rounds were formed."""

    def __init__(self, lab):
        self.lab, self.agents, self.events = lab, {}, {}
        for host in lab.hosts:
            self.start(host)
        self.wait_for_round(lab.hosts, 4)

    def start(self, host):
        self.events[host] = self.lab.directory / f"{host.name}-{len(host.started)}.events"
        self.agents[host] = host.start(
            MUSTER, "run", "--nnodes=2:4", f"--nproc-per-node={WORKERS}", f"--rdzv-endpoint=node1:{PORT}", "--rdzv-id=job",
            "--rdzv-conf=scale_up_delay=0", f"--events={self.events[host]}", "--log-dir=/dev/null", "sleep", "1000", env=clean_env())

    def formed(self, host, nodes):
        """When the host's last round was formed, if it has so many nodes."""
        lines = self.events[host].read_text().splitlines() if self.events[host].exists() else []
        rounds = [event for event in map(json.loads, lines) if event["event"] == "round.formed"]
        if rounds and rounds[-1]["world_size"] == nodes * WORKERS:
            return datetime.datetime.fromisoformat(rounds[-1]["ts"]).timestamp()
        return None

    def wait_for_round(self, hosts, nodes):
        """When the last of the hosts had its FORMED."""
        return max(wait_for(lambda: (times := [self.formed(host, nodes) for host in hosts]) and all(times) and times,
                            f"a round of {nodes} nodes"))


def lose_each(lab, lose, bring_back):
    """Seconds from the loss of a host to the round of the three others, for every host but the first."""
    job = Job(lab)
    seconds, last = [], None
    for victim in lab.hosts[1:]:
        if last:
            bring_back(job, last)
            job.wait_for_round(lab.hosts, 4)
        others = [host for host in lab.hosts if host is not victim]
        start = time.time()
        lose(job, victim)
        seconds.append(job.wait_for_round(others, 3) - start)
        last = victim
    return seconds


def kill(job, victim):
    os.kill(job.agents[victim].pid, signal.SIGKILL)


def measure(jobs, lose, bring_back):
    seconds = []
    for _ in range(jobs):
        with Lab(4) as lab:
            seconds += lose_each(lab, lose, bring_back)
    return seconds


def tell(what, seconds, scale, unit, aim):
    row(f"{what}, median of {len(seconds)}", statistics.median(seconds) * scale, None, unit, aim)
    row(f"{what}, worst", max(seconds) * scale, None, unit)


def main():
    head("hosts")
    try:
        killed = measure(JOBS, kill, lambda job, victim: job.start(victim))
        cut = measure(1, lambda job, victim: victim.cut(), lambda job, victim: victim.plug())
    except Unavailable as why:
        print(f"network namespaces cannot be made here: {why}")
        return
    tell("SIGKILL of an agent to the next round, 4 hosts", killed, 1e3, "ms", "< 50")
    tell("cut cable to the next round, 4 hosts", cut, 1, "s", "< 6")


if __name__ == "__main__":
    main()
