"""Training on two hosts (gloo, 4 ranks, namespaces) whose clocks are 20 s apart: is a rank that is slower by 6 ms a step named?

usage: soak_stragglers.py [--runs=20] [--seed=1] [--steps=200]

Each run is a job with a slow rank, which must be named within 100 steps, and no other, and a job without one, in which nobody may
be named. Prints what each came to, and ends with 1 if one was wrong."""

import argparse
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))

import netns  # noqa: E402
from tree import MUSTER, python_env  # noqa: E402

RANKS, PORT, SOON, PATIENCE_S = 4, 29400, 100, 120

WORKER = """
import os, sys, time
import torch, torch.distributed as dist, muster

slow, steps = map(int, sys.argv[1:])
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
tensor = torch.ones(4)
for step in range(steps):
    time.sleep(0.010 + (0.006 if rank == slow else 0))
    muster.step(step)
    dist.all_reduce(tensor)
dist.destroy_process_group()
"""


def run(lab, number, slow, steps):
    logs = [lab.directory / f"{host.name}.{number}.{slow}.events" for host in lab.hosts]
    agents = [host.start(MUSTER, "run", "--nnodes=2", "--nproc-per-node=2", "--preload=torch", f"--rdzv-id=run{number}", f"--events={log}",
                         f"--rdzv-endpoint=node1:{PORT}", str(lab.directory / "worker.py"), str(slow), str(steps), env=python_env(OMP_NUM_THREADS=1))
              for host, log in zip(lab.hosts, logs)]
    codes = [agent.wait(PATIENCE_S) for agent in agents]
    found = [(event["rank"], event["step"]) for log in logs for event in map(json.loads, log.read_text().splitlines())
             if event["event"] == "straggler.found"]
    right = codes == [0, 0] and ([rank for rank, _ in found] == [slow] and found[0][1] < SOON if slow >= 0 else not found)
    print(f"run {number}: {'rank %d is slow' % slow if slow >= 0 else 'none is slow'}: ended with {codes}, named (rank, step): {found}"
          f"{'' if right else ': WRONG'}", flush=True)
    for host in lab.hosts:
        host.started.clear()
    return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    rng, right = random.Random(options.seed), [0, 0]
    with netns.Lab(2, clocks={2: 20}) as lab:
        (lab.directory / "worker.py").write_text(WORKER)
        for number in range(options.runs):
            right[0] += run(lab, number, rng.randrange(RANKS), options.steps)
            right[1] += run(lab, number, -1, options.steps)
    print(f"a slow rank: named within {SOON} steps, and no other, in {right[0]} of {options.runs} runs; "
          f"without one: nobody named in {right[1]} of {options.runs}")
    sys.exit(right != [options.runs] * 2)


if __name__ == "__main__":
    main()
