"""Training on two hosts (gloo, 4 ranks, namespaces) that gets notice at random moments: do all ranks leave after the same step?

usage: soak_notice.py [--runs=1000] [--seed=1] [--minutes=M] [--at-once=N]

Each run is a job of its own; runs side by side have hosts of their own. At a random moment of its training a random agent, or
both, get SIGTERM or SIGUSR1. Every rank must leave after the same step, with a complete checkpoint of that step that has the same
weights as all others, and both agents must end with 94: start me again. Prints what each run came to, and ends with 1 if one was wrong."""

import argparse
import concurrent.futures
import io
import itertools
import os
import pathlib
import random
import re
import signal
import sys
import threading
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))

import netns  # noqa: E402
from tree import MUSTER, python_env  # noqa: E402
from waits import wait_for  # noqa: E402

HOSTS, NPROC, PORT = 2, 2, 29400
RANKS = HOSTS * NPROC
LONGEST_S = 0.5  # from the first step of all ranks to the notice
PATIENCE_S = 600
LEFT = 94  # the workers left together: start me again

# Ranks of different and changing pace, which only the all_reduce holds together.
WORKER = """
import os, random, sys, time
import torch, torch.distributed as dist, muster

directory, seed = sys.argv[1:]
rank = int(os.environ["RANK"])
rng = random.Random(f"{seed} {rank}")
dist.init_process_group("gloo")
weights = torch.zeros(256)
for step in range(10**9):
    time.sleep(rng.choice([0, 0, 0.001, 0.004]))
    gradient = (weights - step) * (rank + 1)
    dist.all_reduce(gradient)
    weights -= 0.01 * gradient
    muster.step(step)
    if muster.stop_after(step):
        torch.save({"step": step, "weights": weights}, f"{directory}/{rank}.part")
        os.replace(f"{directory}/{rank}.part", f"{directory}/{rank}.pt")
        muster.saved(step)
        sys.stdout.write(f"rank {rank} left after {step}\\n")
        break
    if step == 1:
        open(f"{directory}/{rank}.runs", "w").close()
dist.destroy_process_group()
"""


def weights_of(path):
    """What a checkpoint has, without PyTorch: a broken archive, or one that lacks a part, is an error."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        assert archive.testzip() is None, f"{path.name} is broken"
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist() if name.split("/", 1)[1] in ("data.pkl", "data/0")}


class Trial:
    def __init__(self, lab, number, rng):
        self.lab, self.rng = lab, rng
        self.directory = lab.directory / f"run{number}"
        self.directory.mkdir()
        command = [MUSTER, "run", f"--nnodes={HOSTS}", f"--nproc-per-node={NPROC}", "--preload=torch", f"--rdzv-id=run{number}",
                   f"--rdzv-endpoint=node1:{PORT}", "--shutdown-timeout=5", "--notice=60", str(lab.directory / "worker.py"),
                   str(self.directory), str(number)]
        self.agents = [host.start(*command, env=python_env(OMP_NUM_THREADS=1)) for host in lab.hosts]

    def runs(self):
        assert all(agent.running() for agent in self.agents), self.said()
        return len(list(self.directory.glob("*.runs"))) == RANKS

    def said(self):
        return "\n".join(f"--- {agent.host.name}\n{agent.text()}" for agent in self.agents)

    def give_notice(self):
        number = self.rng.choice([signal.SIGTERM, signal.SIGUSR1])
        told = self.rng.choice([self.agents[:1], self.agents[1:], self.agents, self.agents[::-1]])
        time.sleep(self.rng.uniform(0, LONGEST_S))
        for agent in told:
            agent.signal(number)
        return f"{number.name} to {' and '.join(agent.host.name for agent in told)}"

    def check(self):
        """Gives the step after which all left."""
        codes = [agent.wait(PATIENCE_S) for agent in self.agents]
        assert codes == [LEFT] * HOSTS, f"agents ended with {codes}"
        left = dict(re.findall(r"rank (\d) left after (\d+)", self.said()))
        assert len(left) == RANKS and len(set(left.values())) == 1, f"left after {left}"
        states = [weights_of(self.directory / f"{rank}.pt") for rank in range(RANKS)]
        assert all(len(state) == 2 and state == states[0] for state in states), "checkpoints differ"
        assert not list(self.directory.glob("*.part")), "half a checkpoint"
        return int(left["0"])

    def close(self):
        for agent in self.agents:
            agent.signal(signal.SIGKILL)
            agent.popen.wait(PATIENCE_S)


def run(lab, number, rng):
    """Whether it went well; says so."""
    trial, what = Trial(lab, number, rng), "start"
    try:
        wait_for(trial.runs, "all ranks to train", PATIENCE_S)
        what = trial.give_notice()
        print(f"run {number}: {what}: all left after step {trial.check()}", flush=True)
        return True
    except AssertionError as error:
        print(f"run {number}: {what}: WRONG: {error}\n{trial.said()}", flush=True)
        return False
    finally:
        trial.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0, help="begin no run after so many; 0: no limit")
    parser.add_argument("--at-once", type=int, default=len(os.sched_getaffinity(0)), help="runs side by side")
    options = parser.parse_args()
    began, numbers, lock = time.monotonic(), iter(range(options.runs)), threading.Lock()

    def is_late():
        return options.minutes and time.monotonic() - began > 60 * options.minutes

    def lane():
        """Runs on two hosts of its own, one after the other; which of them went well."""
        went = []
        with netns.Lab(HOSTS) as lab:
            (lab.directory / "worker.py").write_text(WORKER)
            while not is_late():
                with lock:
                    number = next(numbers, None)
                if number is None:
                    break
                went.append(run(lab, number, random.Random(f"{options.seed} {number}")))
                for host in lab.hosts:
                    host.started.clear()
        return went

    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        lanes = [pool.submit(lane) for _ in range(options.at_once)]
        went = list(itertools.chain.from_iterable(lane.result() for lane in lanes))
    right, done = sum(went), len(went)
    print(f"{right} of {done} runs: all ranks left after the same step, with complete checkpoints")
    sys.exit(right != done)


if __name__ == "__main__":
    main()
