"""What becomes of a real gloo job on four hosts when something happens to them: muster and torchrun
side by side. Takes a quarter of an hour, most of it torchrun waiting; not part of `make bench`.

usage: VENV=build/venv BUILD=build python bench/hosts_scenarios.py [muster|torchrun] [SCENARIO...]"""

import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e" / "lib"))

from tree import MUSTER, clean_env  # noqa: E402
from crew import Crew  # noqa: E402
from netns import Lab  # noqa: E402

PATIENCE_S = 90  # after which a job counts as hung
PORT = 29400
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


class Muster:
    name = "muster"
    strict = True

    def command(self, host, nodes, endpoints, options):
        endpoint = ",".join(f"{e.name}:{PORT}" for e in endpoints)
        return [MUSTER, "run", f"--nnodes={nodes}", f"--rdzv-endpoint={endpoint}", "--rdzv-id=job", *options]


class Torchrun:
    name = "torchrun"
    strict = False

    def command(self, host, nodes, endpoints, options):
        return [sys.executable, "-m", "torch.distributed.run", f"--nnodes={nodes}", "--rdzv-backend=c10d",
                f"--rdzv-endpoint={endpoints[0].name}:{PORT}", "--rdzv-id=job", f"--local-addr={host.name}", "--no-python", *options]


class Job:
    """A job on some hosts of a lab, whoever launches it."""

    def __init__(self, lab, launcher, nodes, endpoints, *options, flags=("--torch",)):
        self.lab, self.launcher, self.nodes, self.endpoints = lab, launcher, nodes, endpoints
        self.options = ["--nproc-per-node=1", "--rdzv-conf=last_call_timeout=1", *options]
        self.crew = Crew(lab.directory)
        self.crew.strict = launcher.strict
        self.flags = flags
        self.agents = {}

    def start(self, *hosts, env=None):
        for host in hosts:
            command = self.launcher.command(host, self.nodes, self.endpoints, self.options)
            self.agents[host] = host.start(*command, *self.crew.command(*self.flags), env=env)

    def until(self, condition):
        """Seconds until it holds, or None when nothing more can happen or patience is at an end."""
        start = time.monotonic()
        while not condition():
            if time.monotonic() - start > PATIENCE_S:
                return None
            if not any(agent.running() for agent in self.agents.values()) and not self.crew.alive():
                return None
            self.crew.turn(0.05)
        return time.monotonic() - start

    def works(self, world, since=0):
        """All of a world of that size calculate, none of them begun before `since` deaths and starts."""
        def condition():
            workers = [w for w in self.crew.workers[since:] if w.environ and w.alive and w.world == world and
                       (w.steps or not self.flags)]
            return sorted(w.rank for w in workers) == list(range(world)) and len(self.crew.alive()) == world
        return self.until(condition)

    def born(self):
        return len(self.crew.workers)

    def finish(self):
        """Lets rank 0 end the job; exit statuses."""
        for worker in self.crew.alive():
            if worker.rank == 0:
                worker.order("finish")
        self.until(lambda: not any(agent.running() for agent in self.agents.values()))
        return self.exits()

    def exits(self):
        return {host.name: agent.popen.poll() for host, agent in self.agents.items()}

    def told(self, seconds):
        """What became of it."""
        if seconds is not None:
            return f"works on after {seconds:.1f} s"
        if not any(agent.running() for agent in self.agents.values()):
            return f"all agents ended: {self.exits()}"
        return f"hangs ({PATIENCE_S} s); agents: {self.exits()}, workers: {self.crew.alive()}"


def twenty_restarts(lab, launcher):
    one, two, *_ = lab.hosts
    job = Job(lab, launcher, "2", [one], "--max-restarts=20")
    job.start(one, two)
    for attempt in range(21):
        since = job.born() if attempt else 0
        if attempt:
            victim = [w for w in job.crew.alive() if w.rank == attempt % 2][0]
            victim.order("exit 1")
        if job.works(2, since) is None:
            return f"{attempt} restarts worked, then: {job.told(None)}"
    return f"all 20 restarts worked, exits {job.finish()}"


def scale_up(lab, launcher):
    one, two, three, _ = lab.hosts
    job = Job(lab, launcher, "2:3", [one])
    job.start(one, two)
    if job.works(2) is None:
        return f"did not start: {job.told(None)}"
    since = job.born()
    job.start(three)
    return job.told(job.works(3, since))


def lose_rank_0(lab, launcher):
    one, two, three, _ = lab.hosts
    job = Job(lab, launcher, "2:3", [two, one, three], "--max-restarts=3")
    job.start(one, two, three)
    if job.works(3) is None:
        return f"did not start: {job.told(None)}"
    rank_0 = {h.name: h for h in lab.hosts}[[w for w in job.crew.alive() if w.rank == 0][0].host]
    since = job.born()
    rank_0.kill()
    return f"({rank_0.name} lost) {job.told(job.works(2, since))}"


def coordinator_lost(lab, launcher, how):
    one, two, three, _ = lab.hosts
    job = Job(lab, launcher, "2:3", [one, two], "--max-restarts=3")
    job.start(one, two, three)
    if job.works(3) is None:
        return f"did not start: {job.told(None)}"
    since = job.born()
    how(one)
    return job.told(job.works(2, since))


def lose_coordinator_by_kill(lab, launcher):
    return coordinator_lost(lab, launcher, lambda host: host.kill())


def lose_coordinator_by_cable(lab, launcher):
    return coordinator_lost(lab, launcher, lambda host: host.cut())


def lose_member_by_cable(lab, launcher):
    one, two, three, _ = lab.hosts
    job = Job(lab, launcher, "2:3", [one], "--max-restarts=3")
    job.start(one, two, three)
    if job.works(3) is None:
        return f"did not start: {job.told(None)}"
    since = job.born()
    three.cut()
    return job.told(job.works(2, since))


def freeze_member(lab, launcher):
    one, two, three, _ = lab.hosts
    job = Job(lab, launcher, "2:3", [one], "--max-restarts=3")
    job.start(one, two, three)
    if job.works(3) is None:
        return f"did not start: {job.told(None)}"
    since = job.born()
    job.crew.excused.add(three.name)
    three.freeze()
    seconds = job.until(lambda: {w.world for w in job.crew.workers[since:] if w.alive and w.steps} == {2})
    return job.told(seconds)


def clock_skew(lab, launcher):
    one, two, *_ = lab.hosts
    job = Job(lab, launcher, "2:2", [one])
    job.start(one)
    job.start(two, env=clean_env(LD_PRELOAD=FAKETIME, FAKETIME="-20s", FAKETIME_DONT_FAKE_MONOTONIC="1"))
    seconds = job.works(2)
    if seconds is None:
        return job.told(None)
    return f"works, exits {job.finish()}"


def spare(lab, launcher):
    one, two, three, _ = lab.hosts
    job = Job(lab, launcher, "2:2", [one], "--max-restarts=3")
    job.start(one, two)
    if job.works(2) is None:
        return f"did not start: {job.told(None)}"
    job.start(three)
    job.until(lambda: False if launcher.name == "torchrun" and "\n" not in job.agents[three].text() else True)
    since = job.born()
    two.kill()
    seconds = job.works(2, since)
    return f"{job.told(seconds)}; exits {job.finish()}" if seconds else job.told(None)


def one_fails_when_another_has_finished(lab, launcher):
    one, two, *_ = lab.hosts
    job = Job(lab, launcher, "2", [one], flags=())
    job.start(one, two)
    if job.works(2) is None:
        return f"did not start: {job.told(None)}"
    {w.host: w for w in job.crew.alive()}["node1"].order("exit 0")
    job.until(lambda: len(job.crew.alive()) < 2)
    for worker in job.crew.alive():
        worker.order("exit 7")
    seconds = job.until(lambda: not any(agent.running() for agent in job.agents.values()))
    return f"ended after {seconds:.1f} s with {job.exits()}" if seconds is not None else job.told(None)


def stop_while_waiting_for_others(lab, launcher):
    one, two, *_ = lab.hosts
    job = Job(lab, launcher, "2", [one], flags=())
    job.start(one, two)
    if job.works(2) is None:
        return f"did not start: {job.told(None)}"
    workers = {w.host: w for w in job.crew.alive()}
    workers["node2"].order("exit 0")
    job.until(lambda: len(job.crew.alive()) < 2)
    time.sleep(2)  # torchrun looks every 0.1 s, then begins to wait
    os.kill(job.agents[two].pid, signal.SIGTERM)
    seconds = job.until(lambda: not job.agents[two].running())
    return f"the agent ended after {seconds:.1f} s with {job.exits()}" if seconds is not None else job.told(None)


def orphans_of_a_killed_agent(lab, launcher):
    one, two, *_ = lab.hosts
    job = Job(lab, launcher, "1:2", [one])
    job.start(one, two)
    if job.works(2) is None:
        return f"did not start: {job.told(None)}"
    orphan = [w for w in job.crew.alive() if w.host == "node2"]
    job.agents[two].kill()
    job.agents[two].wait()
    start = time.monotonic()
    while time.monotonic() - start < 5 and orphan[0].alive:
        job.crew.turn(0.05)
    return "its worker lives on" if orphan[0].alive else "its worker is dead"


SCENARIOS = [twenty_restarts, scale_up, lose_rank_0, lose_coordinator_by_kill, lose_coordinator_by_cable, lose_member_by_cable,
             freeze_member, clock_skew, spare, one_fails_when_another_has_finished, stop_while_waiting_for_others,
             orphans_of_a_killed_agent]


def main():
    launchers = [launcher for launcher in (Muster(), Torchrun()) if launcher.name in sys.argv[1:] or
                 not {"muster", "torchrun"} & set(sys.argv[1:])]
    names = set(sys.argv[1:]) - {"muster", "torchrun"}
    for scenario in SCENARIOS:
        if names and scenario.__name__ not in names:
            continue
        for launcher in launchers:
            with Lab(4) as lab:
                try:
                    said = scenario(lab, launcher)
                except AssertionError as error:
                    said = f"broke a rule: {error}"
            print(f"{scenario.__name__:<38} {launcher.name:<9} {said}", flush=True)


if __name__ == "__main__":
    main()
