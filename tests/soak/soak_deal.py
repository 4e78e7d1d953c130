"""A batch on four hosts that die, freeze and lose their cables at random, the one that coordinates included.

usage: soak_deal.py [--runs=100] [--orders=20000] [--at-once=4] [--seconds=N] [--seed=1] [--first=1] [--only=RUN] [--slurm] [--keep=DIRECTORY]

Each run is drawn from the seed and its number: a list of orders of random widths and lengths, run by four hosts that share the
directory with the result file, of which each can coordinate. While the list runs, one host after the other is killed with
SIGKILL (its muster, or the whole host), cut off, or frozen, for as long as it takes to be given up or not. A host whose muster
has ended is started again with the same command line, as an engine would do it. With --slurm each run is a step of a real
Slurm with four nodes, and a step that ends is submitted again.

At the end each order must have exactly one good result in the file, with its output, none may have failed, and nothing may be
left on any host.

A run waits most of its time, for hosts to be given up and for coordinators to take over, so --at-once=N runs go side by side. No run
starts after --seconds; --first=N begins with another number, to go on."""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))

import proc  # noqa: E402
from netns import Lab, Unavailable  # noqa: E402
from slurm import Cluster  # noqa: E402
from tree import BUILD, MUSTER, clean_env  # noqa: E402

HOSTS = 4
JOBS = 8  # on each
CONF = "keep_alive_interval=500ms,failover_after=2"
LOST_S = 2.5  # after so much silence a host has lost its orders
PATIENCE_S = 300  # without a result
NAP = BUILD / "helpers" / "nap"
BATCH = [MUSTER, "batch", f"--rdzv-conf={CONF}", "-q", f"-j{JOBS}", "--place=none", "--resume", "--exit-code=muster"]
MISSING = 77  # exit status: what it needs is missing


class Trouble(Exception):
    pass


def make_orders(rng, path, count):
    """Lengths up to 60 ms, and widths up to half of a host."""
    with open(path, "w") as out:
        for number in range(count):
            out.write(json.dumps({"id": str(number), "cores": rng.choice([1, 1, 1, 1, 2, 2, 3, 4]),
                                  "cmd": [str(NAP), str(rng.randrange(60)), str(number)]}) + "\n")


def is_agent(pid):
    return proc.words(pid)[:2] == [os.fsencode(MUSTER), b"batch"]


def signal_all(pids, number):
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


class Faults:
    """What happens to the hosts."""

    def __init__(self, run, hosts):
        self.rng, self.hosts, self.out, self.kill, self.boot, self.pause_s = run.rng, hosts, str(run.out), run.kill, run.boot, run.pause_s
        self.told = collections.Counter()
        self.off = {}  # host: (when it is mended, how)
        self.next_s = time.monotonic() + self.rng.uniform(*self.pause_s)

    def coordinator(self):
        """The host whose muster has the result file open."""
        for host in self.hosts:
            for pid in host.pids():
                with contextlib.suppress(OSError):
                    if is_agent(pid) and any(os.path.realpath(f"/proc/{pid}/fd/{fd}") == self.out for fd in os.listdir(f"/proc/{pid}/fd")):
                        return host
        return None

    def hurt(self):
        """One host, in two of five cases the one that coordinates."""
        host = self.coordinator() if self.rng.random() < 0.4 else self.rng.choice(self.hosts)
        what = self.rng.choice(["kill", "kill", "host", "cut", "freeze"])
        seconds = self.rng.uniform(0.1, 2.5 * LOST_S)
        if not host or host in self.off or len(self.off) > 1:
            return
        self.told[what] += 1
        if what == "kill":
            signal_all(filter(is_agent, host.pids()), signal.SIGKILL)
            return
        if what == "host":
            self.kill(host)
        elif what == "cut":
            host.cut()
        else:
            self.freeze(host)
        self.off[host] = (time.monotonic() + seconds, what)

    def freeze(self, host):
        """Stops all processes. One that waits for a child that is stopped before its exec cannot stop itself; it does nothing, either."""
        for _ in range(3):
            signal_all(host.pids(), signal.SIGSTOP)
            time.sleep(0.01)

    def step(self):
        self.mend()
        if time.monotonic() >= self.next_s:
            self.hurt()
            self.next_s = time.monotonic() + self.rng.uniform(*self.pause_s)

    def mend(self, everything=False):
        for host, (when, what) in list(self.off.items()):
            if everything or time.monotonic() >= when:
                {"host": self.boot, "cut": lambda host: host.plug(), "freeze": lambda host: host.thaw()}[what](host)
                del self.off[host]


class Run:
    """On four hosts of namespaces; each muster that dies is started again."""

    pause_s = (0.2, 3)  # between faults

    def __init__(self, number, seed, orders):
        self.rng, self.count = random.Random(f"{seed} {number}"), orders
        self.lab = Lab(HOSTS)
        self.prepare(self.lab.hosts)
        self.agents, self.ended = {}, False

    def prepare(self, hosts):
        self.list, self.out = self.lab.directory / "orders", self.lab.directory / "out.jsonl"
        make_orders(self.rng, self.list, self.count)
        self.faults = Faults(self, hosts)
        self.read = self.seen = 0  # of the result file

    def kill(self, host):
        host.kill()

    def boot(self, host):
        host.boot()

    def start(self, host):
        endpoints = ",".join(f"{other.name}:29400" for other in self.lab.hosts)
        self.agents[host] = host.start(*BATCH, f"--rdzv-endpoint={endpoints}", "-o", self.out, self.list, env=clean_env(MUSTER_TOKEN="secret"))

    def begin(self):
        for host in self.lab.hosts:
            self.start(host)

    def go_on(self):
        """True: the batch has ended well somewhere."""
        for host, agent in self.agents.items():
            if host in self.faults.off or agent.running():
                continue
            if agent.popen.poll() == 0:
                return True
            self.faults.told["restart"] += 1
            self.start(host)
        return False

    def finish(self):
        for agent in self.agents.values():
            with contextlib.suppress(AssertionError):
                agent.wait(60)

    def left(self):
        return self.lab.left_behind()

    def play(self):
        good, since = 0, time.monotonic()
        self.begin()
        while not self.go_on():
            if self.good() > good:
                good, since = self.good(), time.monotonic()
            if time.monotonic() > since + PATIENCE_S:
                raise Trouble(f"no result for {PATIENCE_S} s, {good} good ones")
            if good < self.count:
                self.faults.step()
            else:  # what is left is to say so
                self.faults.mend(everything=True)
            time.sleep(0.02)
        self.faults.mend(everything=True)
        self.finish()

    def good(self):
        """How many good results have come."""
        with contextlib.suppress(FileNotFoundError), open(self.out, "rb") as file:
            file.seek(self.read)
            whole = file.read().rpartition(b"\n")[0]
            self.read += len(whole)
            self.seen += whole.count(b'"reason":"ok"')
        return self.seen

    def check(self):
        with open(self.out) as lines:
            results = [result for result in map(json.loads, lines) if "reason" in result]
        good = collections.Counter(result["id"] for result in results if result["reason"] == "ok")
        twice = [number for number, times in good.items() if times != 1]
        missing = [number for number in map(str, range(self.count)) if number not in good]
        failed = [result for result in results if result["reason"] not in ("ok", "lost", "killed")]
        mute = [result for result in results if result["reason"] == "ok" and result["stdout"]["bytes"] != len(result["id"]) + 1]
        self.faults.told["lost"] = sum(result["reason"] == "lost" for result in results)
        if twice or missing or failed or mute:
            raise Trouble(f"{len(missing)} orders have no good result, {len(twice)} more than one, {len(failed)} failed, {len(mute)} lack output: "
                          f"{(missing + twice)[:5]} {(failed + mute)[:1]}")
        if left := self.left():
            raise Trouble(f"left behind: {left}")

    def close(self):
        self.lab.close()


class SlurmRun(Run):
    """Steps of a real Slurm, one after the other, until one has done all that is left. A host that is lost is missing until the next one."""

    pause_s = (1, 8)

    def __init__(self, number, seed, orders):
        self.rng, self.count = random.Random(f"{seed} slurm {number}"), orders
        self.slurm = Cluster(nodes=HOSTS)
        self.lab = self.slurm.lab
        self.prepare(self.slurm.nodes)

    def kill(self, host):
        """Slurm is told what it would find out by itself after a while."""
        host.kill()
        self.slurm.run("scontrol", "update", f"NodeName={host.name}", "State=DOWN", "Reason=killed")

    def boot(self, host):
        self.slurm.revive(host)

    def begin(self):
        self.job = self.slurm.start("srun", f"-N{HOSTS}", "--no-kill", "--kill-on-bad-exit=0", *BATCH, "-o", self.out, self.list)

    def go_on(self):
        if self.job.running():
            return False
        if self.job.popen.poll() == 0:
            return True
        if not self.faults.off:  # Slurm waits for all nodes
            self.faults.told["step"] += 1
            self.begin()
        return False

    def finish(self):
        pass

    def left(self):
        """Beside the daemons."""
        def ours():
            return [b" ".join(proc.words(pid)) for host in self.slurm.nodes for pid in host.pids()
                    if is_agent(pid) or proc.name(pid) in ("nap", "warden")]
        end = time.monotonic() + 10
        while ours() and time.monotonic() < end:
            time.sleep(0.1)
        return ours()


def keep_files(run, target):
    """All but what is no file."""
    shutil.copytree(run.lab.directory, target, dirs_exist_ok=True, ignore=lambda directory, names: [
        name for name in names if not ((path := pathlib.Path(directory, name)).is_file() or path.is_dir())])


def play(kind, number, seed, orders, keep):
    """(went well, what happened)"""
    run = kind(number, seed, orders)
    begin = time.monotonic()
    name = f"{'Slurm run' if kind is SlurmRun else 'run'} {number}"
    with contextlib.closing(run):
        try:
            run.play()
            run.check()
        except Trouble as trouble:
            if keep:
                keep_files(run, pathlib.Path(keep) / name.replace(" ", "-"))
            print(f"{name}: WRONG: {trouble}", flush=True)
            return False, run.faults.told
        told = " ".join(f"{what}={times}" for what, times in sorted(run.faults.told.items()))
        print(f"{name}: {orders} orders, one good result each, {time.monotonic() - begin:.0f} s, {told}", flush=True)
        return True, run.faults.told


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--orders", type=int, default=20000)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--keep")
    args = parser.parse_args()
    kind = SlurmRun if args.slurm else Run
    end = time.monotonic() + args.seconds
    numbers = iter([args.only] if args.only else range(args.first, args.first + args.runs))
    total, right, wrong, under_way = collections.Counter(), 0, 0, set()
    with concurrent.futures.ProcessPoolExecutor(args.at_once) as pool:
        while True:
            while len(under_way) < args.at_once and time.monotonic() < end and (number := next(numbers, None)) is not None:
                under_way.add(pool.submit(play, kind, number, args.seed, args.orders, args.keep))
            if not under_way:
                break
            done, under_way = concurrent.futures.wait(under_way, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                try:
                    well, told = future.result()
                except Unavailable as why:
                    print(why)
                    sys.exit(MISSING)
                right, wrong, total = right + well, wrong + (not well), total + told
    print(f"{right} runs went well, {wrong} wrong; in all: " + ", ".join(f"{what} {times}" for what, times in sorted(total.items())))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
