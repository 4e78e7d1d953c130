"""A batch on four hosts that die, freeze and lose their cables at random, the one that coordinates included.

usage: soak_deal.py [--runs=100] [--orders=2000] [--seed=1] [--only=RUN] [--slurm] [--keep=DIRECTORY]

Each run is drawn from the seed and its number: a list of orders of random widths and lengths, run by four hosts that share the
directory with the result file, of which each can coordinate. While the list runs, one host after the other is killed with
SIGKILL (its muster, or the whole host), cut off, or frozen, for as long as it takes to be given up or not. A host whose muster
has ended is started again with the same command line, as an engine would do it. With --slurm each run is a step of a real
Slurm with four nodes, where processes are killed, frozen and cut off, and a step that ends is submitted again.

At the end each order must have exactly one good result in the file, none may have failed, and nothing may be left on any host."""

import argparse
import collections
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
from netns import Lab  # noqa: E402
from tree import MUSTER, clean_env  # noqa: E402

HOSTS = 4
CONF = "keep_alive_interval=500ms,failover_after=2"
LOST_S = 2.5  # after so much silence a host has lost its orders
PATIENCE_S = 600


class Trouble(Exception):
    pass


def make_orders(rng, path, count):
    """Lengths up to 60 ms, and widths 1 and 2."""
    with open(path, "w") as out:
        for number in range(count):
            out.write(json.dumps({"id": str(number), "cores": rng.choice([1, 1, 1, 2]),
                                  "cmd": f"sleep 0.0{rng.randrange(60):02}; echo {number}"}) + "\n")


def read_results(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines if line.startswith('{"id"') or '"reason"' in line]


def is_agent(pid):
    words = proc.words(pid)
    return words[:2] == [os.fsencode(MUSTER), b"batch"]


def freeze(host):
    """Stops all processes there. One that waits for a child that is stopped before its exec cannot stop itself; it does nothing, either."""
    for _ in range(5):
        for pid in host.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        time.sleep(0.01)


class Run:
    def __init__(self, lab, rng, orders):
        self.lab, self.rng, self.count = lab, rng, orders
        self.list, self.out = lab.directory / "orders", lab.directory / "out.jsonl"
        self.agents, self.told = {}, collections.Counter()
        self.off = {}  # host: (when it is mended, how)
        self.ended = set()
        make_orders(rng, self.list, orders)
        for host in lab.hosts:
            self.start(host)

    def start(self, host):
        endpoints = ",".join(f"{other.name}:29400" for other in self.lab.hosts)
        self.agents[host] = host.start(
            MUSTER, "batch", f"--rdzv-endpoint={endpoints}", f"--rdzv-conf={CONF}", "-q", "-j4", "--place=none", "--resume", "--exit-code=muster",
            "-o", self.out, self.list, env=clean_env(MUSTER_TOKEN="secret"))

    def coordinator(self):
        """The host whose muster has the result file open."""
        for host in self.lab.hosts:
            for pid in host.pids():
                with contextlib.suppress(OSError):
                    if is_agent(pid) and any(os.path.realpath(f"/proc/{pid}/fd/{fd}") == str(self.out)
                                             for fd in os.listdir(f"/proc/{pid}/fd")):
                        return host
        return None

    def hurt(self):
        """One host, in two of five cases the one that coordinates."""
        host = self.coordinator() if self.rng.random() < 0.4 else self.rng.choice(self.lab.hosts)
        if not host or host in self.off or len(self.off) > 1:
            return
        what = self.rng.choice(["kill", "kill", "host", "cut", "freeze"])
        seconds = self.rng.uniform(0.1, 2.5 * LOST_S)
        self.told[what] += 1
        if what == "kill":
            for pid in host.pids():
                with contextlib.suppress(OSError):
                    if is_agent(pid):
                        os.kill(pid, signal.SIGKILL)
        elif what == "host":
            host.kill()
            self.off[host] = (time.monotonic() + seconds, "boot")
        elif what == "cut":
            host.cut()
            self.off[host] = (time.monotonic() + seconds, "plug")
        else:
            freeze(host)
            self.off[host] = (time.monotonic() + seconds, "thaw")

    def mend(self, everything=False):
        for host, (when, how) in list(self.off.items()):
            if everything or time.monotonic() >= when:
                getattr(host, how)()
                del self.off[host]
        for host, agent in self.agents.items():
            if host in self.off or agent.running():
                continue
            if agent.popen.poll() == 0:
                self.ended.add(host)
            elif not self.ended:
                self.told["restart"] += 1
                self.start(host)

    def play(self):
        end = time.monotonic() + PATIENCE_S
        next_s = time.monotonic() + self.rng.uniform(0.2, 3)
        while not self.ended:
            if time.monotonic() > end:
                raise Trouble(f"not done in {PATIENCE_S} s")
            if time.monotonic() >= next_s:
                self.hurt()
                next_s = time.monotonic() + self.rng.uniform(0.2, 3)
            self.mend()
            time.sleep(0.02)
        self.mend(everything=True)
        for agent in self.agents.values():
            with contextlib.suppress(AssertionError):
                agent.wait(60)

    def check(self):
        lines = read_results(self.out)
        good = collections.Counter(line["id"] for line in lines if line["reason"] == "ok")
        twice = [number for number, times in good.items() if times != 1]
        missing = [number for number in map(str, range(self.count)) if number not in good]
        failed = [line for line in lines if line["reason"] not in ("ok", "lost", "killed")]
        self.told["lost"] = sum(line["reason"] == "lost" for line in lines)
        if twice or missing or failed:
            raise Trouble(f"{len(missing)} orders have no good result, {len(twice)} more than one, {len(failed)} failed: "
                          f"{(missing + twice)[:5]} {failed[:1]}")
        if left := self.lab.left_behind():
            raise Trouble(f"left behind: {left}")


def play(number, seed, orders, keep):
    rng = random.Random(f"{seed} {number}")
    with Lab(HOSTS) as lab:
        run = Run(lab, rng, orders)
        begin = time.monotonic()
        try:
            run.play()
            run.check()
        except Trouble as trouble:
            if keep:
                target = pathlib.Path(keep) / f"run{number}"
                shutil.copytree(lab.directory, target, dirs_exist_ok=True, ignore=lambda _, names: [n for n in names if n == "sockets"])
            print(f"run {number}: WRONG: {trouble}", flush=True)
            return False, run.told
        told = " ".join(f"{what}={times}" for what, times in sorted(run.told.items()))
        print(f"run {number}: {orders} orders, one good result each, {time.monotonic() - begin:.0f} s, {told}", flush=True)
        return True, run.told


def good_results(path):
    """{id: how often it went well}"""
    return collections.Counter(line["id"] for line in read_results(path) if line["reason"] == "ok") if path.exists() else {}


def play_slurm(number, seed, orders):
    """Steps of a real Slurm, one after the other, until one has done all that is left."""
    from slurm import Cluster
    rng = random.Random(f"{seed} slurm {number}")
    told = collections.Counter()
    with Cluster(nodes=HOSTS) as slurm:
        directory = slurm.lab.directory
        make_orders(rng, directory / "orders", orders)
        command = ["srun", "-N4", "--kill-on-bad-exit=0", MUSTER, "batch", f"--rdzv-conf={CONF}", "-q", "-j4", "--place=none", "--resume",
                   "-o", directory / "out.jsonl", directory / "orders"]
        begin = time.monotonic()
        step = slurm.start(*command)
        while time.monotonic() < begin + PATIENCE_S * 3:
            time.sleep(rng.uniform(0.3, 3))
            if not step.running():
                if step.popen.wait() == 0:
                    break
                told["step"] += 1
                step = slurm.start(*command)
                continue
            if len(good_results(directory / "out.jsonl")) == orders:
                continue  # all is done: the step ends by itself
            host = rng.choice(slurm.nodes)
            agents = [pid for pid in host.pids() if is_agent(pid)]
            what = rng.choice(["kill", "cut", "freeze"])
            told[what] += 1
            for pid in agents:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL if what == "kill" else signal.SIGSTOP if what == "freeze" else 0)
            if what == "cut":
                host.cut()
            time.sleep(rng.uniform(0.1, 1.5 * LOST_S))
            if what == "cut":
                host.plug()
            for pid in agents if what == "freeze" else []:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
        good = good_results(directory / "out.jsonl")
        right = len(good) == orders and set(good.values()) == {1}
        print(f"slurm run {number}: {'' if right else 'WRONG: '}{orders} orders, {len(good)} with a good result, {sum(n > 1 for n in good.values())} with more, "
              f"{time.monotonic() - begin:.0f} s, {dict(told)}", flush=True)
        return right


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--orders", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--keep")
    args = parser.parse_args()
    if args.slurm:
        wrong = sum(not play_slurm(number, args.seed, args.orders) for number in ([args.only] if args.only else range(1, args.runs + 1)))
        print(f"{wrong} runs went wrong")
        sys.exit(wrong > 0)
    total, wrong = collections.Counter(), 0
    for number in [args.only] if args.only else range(1, args.runs + 1):
        right, told = play(number, args.seed, args.orders, args.keep)
        wrong += not right
        total += told
    print(f"{wrong} runs went wrong; in all: " + ", ".join(f"{what} {times}" for what, times in sorted(total.items())))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
