"""What it costs to be able to leave together: muster.stop_after() after each step, against a flag that is all-reduced after each
step, as programs under torchrun do. Ratios say how many times better ours is.

Ranks train through gloo on this host: a step computes a little and all-reduces a gradient of 256 KB. The first rows have the
question alone, the last ones whole steps with it. Blocks of steps with and without the question alternate, so that what
else the machine does meets both alike; medians over blocks, of the rank that is slowest. A block is as many steps as the slowest
rank takes in a tenth of a second, from 5 to 500: more ranks than cores, on a busy machine, take that long for a few of them."""

import json
import pathlib
import subprocess
import tempfile

from table import MUSTER, TORCHRUN, WORKER_ENV, head, need_torchrun, row

PATIENCE_S = 600
RUNS = 3

WORKER = '''
import json, os, statistics, sys, time
import torch, torch.distributed as dist

record, how = sys.argv[1:]
dist.init_process_group("gloo")
rank = dist.get_rank()
flag = torch.zeros(1)

def asked_of_all(step):
    dist.all_reduce(flag)
    return flag.item() > 0

if how == "flag":
    ask = asked_of_all
else:
    import muster
    ask = muster.stop_after

weights, gradient = torch.randn(256, 256), torch.zeros(256, 256)

def train(step):
    torch.mm(weights, weights, out=gradient)
    dist.all_reduce(gradient)

def nothing(step):
    return False

def block(steps, work, question):
    """Nanoseconds a step."""
    dist.barrier()
    began = time.perf_counter_ns()
    for step in range(steps):
        work(step)
        if question(step):
            sys.exit("asked to leave")
    return (time.perf_counter_ns() - began) / steps

def length(work, question):
    """The steps of a block, the same for all ranks."""
    block(5, work, question)  # the first ones connect
    slowest = torch.tensor(block(5, work, question))
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return int(min(max(1e8 / slowest.item(), 5), 500))

blocks = {"alone": (nothing, ask), "loop": (nothing, nothing), "with": (train, ask), "without": (train, nothing)}
steps = {name: length(*what) for name, what in blocks.items()}
times = {name: [] for name in blocks}
for turn in range(12):
    for name, what in blocks.items():
        times[name].append(block(steps[name], *what))
with open(f"{record}.{rank}", "w") as out:
    json.dump({name: statistics.median(found[2:]) for name, found in times.items()}, out)
dist.barrier()
os._exit(0)
'''

WAYS = {"ask": [MUSTER, "run"], "flag": [TORCHRUN, "--standalone"]}


def measure(how, ranks):
    """{what: nanoseconds}, of the slowest rank."""
    with tempfile.TemporaryDirectory() as directory:
        record = pathlib.Path(directory, "record")
        pathlib.Path(directory, "worker.py").write_text(WORKER)
        subprocess.run([*WAYS[how], f"--nproc-per-node={ranks}", "worker.py", str(record), how], cwd=directory, timeout=PATIENCE_S,
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=WORKER_ENV)
        found = [json.loads(pathlib.Path(f"{record}.{rank}").read_text()) for rank in range(ranks)]
    return {name: max(one[name] for one in found) for name in found[0]}


def main():
    need_torchrun()
    head("leaving together")
    for ranks in (2, 4):
        runs = {how: [measure(how, ranks) for _ in range(RUNS)] for how in WAYS}
        least = {how: {name: min(run[name] for run in found) for name in found[0]} for how, found in runs.items()}
        ours, peer = least["ask"], least["flag"]
        row(f"the question after a step, {ranks} ranks", ours["alone"] - ours["loop"], peer["alone"] - peer["loop"], "ns", "<= 0.01")
        row(f"a step of {ranks} ranks with it", ours["with"] / 1e3, peer["with"] / 1e3, "us")
        row(f"a step of {ranks} ranks without", ours["without"] / 1e3, peer["without"] / 1e3, "us", "~ 1")


if __name__ == "__main__":
    main()
