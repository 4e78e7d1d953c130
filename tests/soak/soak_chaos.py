"""Jobs on five hosts that lose cables, packets, processes and whole hosts at random.

usage: soak_chaos.py [--kind=endpoints|token|coordinator|etcd|etcd3|exec|all] [--minutes=60] [--seed=1] [--only=JOB] [--keep=DIRECTORY]

One job after the other, until the time is over. Each job is drawn from the kind, the seed and its number: `--kind=etcd --seed=1
--only=7` plays the 7th again. A job is a few episodes: from a settled round, fewer than half of its members get into trouble, one
or two at a time, and other processes die; then all is mended and a round must settle again. So the rules (docs/RENDEZVOUS.md)
always let the job go on, and these must never happen:

    overlap     a worker starts while one of another round is alive (frozen ones, which cannot die, are excused, and all of
                them while this machine is so busy that processes do not get a CPU for a large part of a second)
    gave up     an agent ends that was not told to
    waits       no round settles, or an agent does not end
    survivors   a process of the job is there after its agents have ended

With --keep the ledger of each kind, and the output of every agent of a job that went wrong, stay in that directory."""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))

import faults  # noqa: E402
import services  # noqa: E402
from crew import Crew, Round  # noqa: E402
from netns import Lab  # noqa: E402
from proc import start_time  # noqa: E402
from tree import MUSTER, clean_env  # noqa: E402

HOSTS = 5
NODES = f"2:{HOSTS}"
FINAL = 77  # an exit code after which there is no restart
JOIN_TIMEOUT_S = 150
PATIENCE_S = 180  # rounds that changes of members cause may be a minute apart (rule: pace)
SETTLE_S = 3.0  # by then all members know that the round has replaced the one before (rule: base)
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PULSE_S = 0.05
LATE_S = 0.3  # of the second between the end of a member's lease and its replacement
LEASE_S = 8  # what happened longer ago does not matter


class Trouble(Exception):
    def __init__(self, what, text):
        super().__init__(f"{what}: {text}")
        self.what = what


def boot_time():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Pulse(threading.Thread):
    """Knows when this machine let a process wait for a CPU for long."""

    def __init__(self):
        super().__init__(daemon=True)
        self.late_s = -LEASE_S
        self.start()

    def run(self):
        while True:
            due_s = boot_time() + PULSE_S
            time.sleep(PULSE_S)
            if boot_time() - due_s > LATE_S:
                self.late_s = boot_time()

    def falters(self):
        return boot_time() - self.late_s < LEASE_S


class Watched(Crew):
    """A crew that knows which workers were frozen: those cannot die in time."""

    def __init__(self, directory, note, pulse):
        super().__init__(directory)
        self.note, self.pulse = note, pulse
        self.excused = 0
        self.frozen, self.thawed_s = set(), {}

    def freeze(self, host):
        self.frozen.add(host)

    def thaw(self, host):
        self.frozen.discard(host)
        self.thawed_s[host] = boot_time()

    def hear(self, worker, what):
        self.note(f"start of {what.get('host')} rank {what.get('RANK')} of {what.get('WORLD_SIZE')} at "
                  f"{what.get('MASTER_ADDR')}:{what.get('MASTER_PORT')}, restart {what.get('TORCHELASTIC_RESTART_COUNT')}")
        super().hear(worker, what)

    def stood_still(self, worker):
        """Was it frozen since it was started?"""
        start = start_time(worker.pid)
        return worker.host in self.frozen or start is None or int(start) * TICK_S <= self.thawed_s.get(worker.host, 0)

    def check_only_one_round(self, newest):
        self.catch_up(newest)
        others = [w for w in self.alive() if newest.alive and w.key != newest.key]
        for worker in others:
            self.catch_up(worker)
        left = [worker for worker in others if worker.alive and not self.stood_still(worker)]
        if left and self.pulse.falters():
            self.excused += 1
            self.note(f"excused: {newest} started while others were alive: {left}")
        elif left and not self.stood_still(newest):
            raise Trouble("overlap", f"{newest} started while others were alive: {left}")

    def complete(self):
        """The round all of whose workers are alive, if no other is but frozen ones; else None."""
        alive = [worker for worker in self.alive() if worker.host not in self.frozen]
        found = Round(sorted(alive, key=lambda worker: worker.rank))
        return found if alive and len({w.key for w in alive}) == 1 and len(alive) == alive[0].world else None


class Job:
    """One job: `run` is its id."""

    def __init__(self, lab, service, run, rng, ledger, pulse):
        self.lab, self.service, self.run, self.rng, self.ledger = lab, service, run, rng, ledger
        self.hosts = lab.hosts[:HOSTS]
        self.agents = {}  # those that must run
        self.directory = lab.directory / run
        self.directory.mkdir()
        self.crew = Watched(self.directory, self.note, pulse)
        self.faults, self.rounds = 0, 0
        service.begin_job(run)
        for host in self.hosts:
            self.start(host)

    def note(self, text):
        self.ledger.write(f"{time.monotonic():.3f} {self.run} {text}\n")
        self.ledger.flush()

    # ---- agents ----

    def start(self, host):
        self.note(f"agent on {host.name}")
        settings = {"join_timeout": JOIN_TIMEOUT_S, "scale_up_delay": 1, "last_call_timeout": 5, **self.service.conf()}
        conf = ",".join(f"{key}={value}" for key, value in settings.items())
        self.agents[host] = host.start(
            MUSTER, "run", f"--nnodes={NODES}", f"--rdzv-id={self.run}", f"--rdzv-conf={conf}", "--max-restarts=100000",
            f"--no-restart-on={FINAL}", "--shutdown-timeout=1", "--log-dir=/dev/null", *self.service.options(self.run),
            *self.crew.command(), env=clean_env(LOGLEVEL="INFO", **self.service.environ))

    def lose(self, host):
        agent = self.agents.pop(host)
        agent.kill()
        agent.wait()

    @staticmethod
    def signal(pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def check_agents(self):
        for host, agent in self.agents.items():
            if not agent.running():
                raise Trouble("gave up", f"the agent of {host.name} ended with {agent.popen.returncode}")

    # ---- waiting ----

    def turn(self):
        self.crew.turn(0.05)
        self.check_agents()

    def live(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.turn()

    def wait_round(self, without=(), patience_s=PATIENCE_S, settle_s=SETTLE_S):
        """A complete round that has none of those hosts in it and stays for a moment."""
        end, since, last = time.monotonic() + patience_s, 0, None
        while time.monotonic() < end:
            self.turn()
            found = self.crew.complete()
            if not found or {host.name for host in without} & set(found.hosts):
                last = None
            elif last != found.key:
                last, since = found.key, time.monotonic()
            elif time.monotonic() - since >= settle_s:
                self.rounds += 1
                self.note(f"settled: {found.hosts}")
                return found
        raise Trouble("waits", f"no round without {[host.name for host in without]} in {patience_s} s; alive: {self.crew.alive()}")

    def members(self, round_):
        return [host for host in self.hosts if host.name in round_.hosts]

    # ---- what happens ----

    def episode(self):
        """From a settled round: trouble for a minority of it, then all is mended."""
        members = self.members(self.wait_round())
        most = (len(members) - 1) // 2
        victims = self.rng.sample(self.hosts, HOSTS)[:self.rng.choice([1, 1, 2])]
        victims = [host for host in victims if host in members][:most]
        chosen = [self.rng.choice([f for f in faults.AWAY if f.possible(self, host)])(self, host, self.rng) for host in victims]
        if any(fault.alone for fault in chosen):
            chosen = chosen[:1]
        begun = []
        for fault in chosen:
            self.note(f"begin: {fault}")
            self.faults += 1
            begun.append(fault)
            fault.begin()
            self.live(self.rng.choice([0, self.rng.uniform(0, 1), self.rng.uniform(0, 8)]))
            if self.rng.random() < 0.4:
                self.moment()
        self.last(begun)
        for fault in self.rng.sample(begun, len(begun)):
            self.note(f"end: {fault}")
            fault.end()
            self.live(self.rng.choice([0, self.rng.uniform(0, 3)]))
        if self.rng.random() < 0.5:
            self.moment()

    def last(self, begun):
        """How long the trouble lasts; now and then until the others have gone on without its hosts, as they must."""
        away = [fault.host for fault in begun]
        if self.rng.random() < 0.4 and not any(fault.alone for fault in begun) and self.service.works_without(away):
            self.wait_round(without=away, settle_s=self.rng.uniform(0, SETTLE_S))
        else:
            self.live(self.rng.choice([0, self.rng.uniform(0, 5), self.rng.uniform(3, 15)]))

    def moment(self):
        self.faults += 1
        self.rng.choice(faults.MOMENTS)(self, self.rng)

    # ---- the end ----

    def wait_ends(self, agents, allowed, patience_s):
        """The agents, which are no longer expected to run, end with one of these codes."""
        end = time.monotonic() + patience_s
        while any(agent.running() for agent in agents.values()):
            self.turn()
            if time.monotonic() > end:
                raise Trouble("waits", f"still there: {[host.name for host, agent in agents.items() if agent.running()]}")
        got = {host.name: agent.popen.returncode for host, agent in agents.items()}
        self.note(f"ended: {got}")
        if not set(got.values()) <= set(allowed):
            raise Trouble("gave up", f"ended with {got}, not with {allowed}")

    def all_end(self, code):
        agents, self.agents = self.agents, {}
        self.wait_ends(agents, [code], PATIENCE_S)

    def end_by_order(self, text, code, choose=lambda round_: round_):
        """Some workers get the order, in each round that forms before the end. The members of the last end with the code; another
        host may come when the job is over, and find none."""
        last = self.wait_round()
        agents, self.agents = self.agents, {}
        end, told = time.monotonic() + PATIENCE_S + JOIN_TIMEOUT_S, set()
        while any(agent.running() for agent in agents.values()):
            self.turn()
            round_ = self.crew.complete()
            if round_ and round_.key not in told:
                last = round_
                told.add(round_.key)
                self.order(choose(round_), text)
            if time.monotonic() > end:
                raise Trouble("waits", f"still there: {[host.name for host, agent in agents.items() if agent.running()]}")
        for host in self.members(last):
            self.wait_ends({host: agents.pop(host)}, [code], 1)
        self.wait_ends(agents, [code, 124], 1)

    def order(self, workers, text):
        for worker in workers:
            with contextlib.suppress(OSError):  # it may just have died
                worker.order(text)

    def end_well(self):
        self.end_by_order("finish", 0)

    def end_badly(self):
        self.end_by_order(f"exit {FINAL}", FINAL, lambda round_: [self.rng.choice(round_)])

    def end_by_signal(self):
        self.wait_round()
        for agent in self.agents.values():
            agent.signal(signal.SIGTERM)
        self.all_end(128 + signal.SIGTERM)

    def end_without_one(self):
        """The job ends well while a host is cut off; that host finds nobody when it comes back."""
        members = self.members(self.wait_round())
        away = self.rng.choice(members)
        if len(members) < 3 or not self.service.works_without([away]):
            return self.end_well()
        self.note(f"cut {away.name} for the end")
        away.cut()
        left = {host: agent for host, agent in self.agents.items() if host is not away}
        alone = {away: self.agents[away]}
        self.agents = {}
        end = time.monotonic() + PATIENCE_S
        told = set()
        while any(agent.running() for agent in left.values()):
            self.turn()
            round_ = self.crew.complete() or []
            self.order([worker for worker in round_ if worker not in told and worker.host != away.name], "finish")
            told.update(round_)
            if time.monotonic() > end:
                raise Trouble("waits", f"still there: {[host.name for host, agent in left.items() if agent.running()]}")
        self.wait_ends(left, [0], 1)
        away.plug()
        self.wait_ends(alone, [0, 124], JOIN_TIMEOUT_S + 30)

    def play(self):
        for _ in range(self.rng.randint(1, 4)):
            self.episode()
        self.rng.choice([self.end_well, self.end_well, self.end_badly, self.end_by_signal, self.end_without_one])()
        self.check_survivors()

    def check_survivors(self):
        end = time.monotonic() + 10
        while left := self.survivors():
            if time.monotonic() > end:
                raise Trouble("survivors", str(left))
            self.crew.turn(0.1)

    def survivors(self):
        served = self.service.pids()
        found = {}
        for host in self.hosts:
            for pid in set(host.pids()) - served:
                with contextlib.suppress(OSError):
                    found[pid] = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return found

    def keep(self, directory):
        """Copies what the agents said."""
        shutil.copytree(self.lab.directory, directory / self.run, dirs_exist_ok=True, ignore=shutil.ignore_patterns("desk"))


class Chaos:
    """All jobs of one kind."""

    def __init__(self, kind, seed, keep):
        self.kind, self.seed, self.keep = kind, seed, keep
        keep.mkdir(parents=True, exist_ok=True)
        self.ledger = open(keep / f"{kind}.ledger", "a")
        self.counts = dict.fromkeys(["overlap", "gave up", "waits", "survivors"], 0)
        self.jobs, self.faults, self.rounds, self.excused = 0, 0, 0, 0
        self.pulse = Pulse()
        self.lab = self.service = None

    def run(self, minutes, only):
        start = time.monotonic()
        number = only or 1
        while time.monotonic() - start < 60 * minutes or self.jobs == 0:
            self.play(number)
            number += 1
            if only:
                break
        self.close()
        took = (time.monotonic() - start) / 60
        c = self.counts
        print(f"chaos {self.kind}: {took:.1f} minutes of seed {self.seed}: {self.jobs} jobs, {self.faults} faults, {self.rounds} settled "
              f"rounds; {c['survivors']} with survivors, {c['overlap']} overlaps, {c['waits']} that waited, {c['gave up']} that gave up; "
              f"{self.excused} overlaps excused on a busy machine", flush=True)
        return sum(c.values()) == 0

    def play(self, number):
        if not self.lab:
            self.lab = Lab(HOSTS + 1)
            self.service = services.KINDS[self.kind](self.lab)
        run = f"{self.kind}-{self.seed}-{number}"
        job = Job(self.lab, self.service, run, random.Random(f"chaos {run}"), self.ledger, self.pulse)
        self.jobs += 1
        try:
            job.play()
        except Trouble as trouble:
            self.counts[trouble.what] += 1
            job.note(f"TROUBLE {trouble}")
            job.keep(self.keep)
            print(f"{run}: {trouble}", flush=True)
            self.close()  # the next job gets hosts without a past
        finally:
            self.faults += job.faults
            self.rounds += job.rounds
            self.excused += job.crew.excused
            job.crew.close()

    def close(self):
        if self.lab:
            for host in self.lab.hosts:
                host.thaw()
            self.lab.close()
        self.lab = None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=[*services.KINDS, "all"], default="all")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("soak"))
    asked = parser.parse_args()
    kinds = list(services.KINDS) if asked.kind == "all" else [asked.kind]
    return 0 if all([Chaos(kind, asked.seed, asked.keep).run(asked.minutes, asked.only) for kind in kinds]) else 1


if __name__ == "__main__":
    sys.exit(main())
