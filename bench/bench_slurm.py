"""Slurm: from srun to the workers' exec, four nodes with a worker each, beside the bare program and torchrun.

The bare program's first process starts as soon as one node is ready, a job's workers only when all nodes have come; so the
last exec is compared, too. Rounds alternate between the candidates and the best of each counts. The Slurm is that of the tests: a controller
and four nodes on namespaced hosts of this machine (tests/e2e/lib/slurm.py)."""

import os
import sys
import time

from table import MUSTER, ROOT, head, row
from table import TORCHRUN as TORCHRUN_PROGRAM

sys.path.insert(0, str(ROOT / "tests/e2e/lib"))
os.environ["MUSTER"] = MUSTER

import netns  # noqa: E402
import slurm  # noqa: E402

NODES = 4
WORKER = ["date", "+%s%N"]
SRUN = ["srun", f"-N{NODES}", "--ntasks-per-node=1"]
CANDIDATES = {
    "bare": [*SRUN, *WORKER],
    "muster": [*SRUN, MUSTER, "run", "--log-dir=/dev/null", *WORKER],
    "muster, auth=none": [*SRUN, MUSTER, "run", "--log-dir=/dev/null", "--rdzv-conf=auth=none", *WORKER],
}
TORCHRUN = [*SRUN, TORCHRUN_PROGRAM, f"--nnodes={NODES}", "--nproc-per-node=1", "--rdzv-backend=c10d",
            "--rdzv-endpoint=node1:29400", "--rdzv-id=bench", "--no-python", *WORKER]


def exec_ms(cluster, command):
    """Until the first worker's exec, and until the last one's."""
    start = time.time_ns()
    out = cluster.run(*command).stdout
    times = [(int(word) - start) / 1e6 for word in out.split() if word.isdigit()]
    assert len(times) == NODES, out
    return min(times), max(times)


def race(cluster, candidates, rounds):
    """{name: (first, last)}, the best of each."""
    seen = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, command in candidates.items():
            cluster.clear()  # the nodes of the last one are free
            seen[name].append(exec_ms(cluster, command))
    return {name: tuple(map(min, zip(*times))) for name, times in seen.items()}


def main():
    head("slurm")
    try:
        with slurm.Cluster(nodes=NODES) as cluster:
            best = race(cluster, CANDIDATES, 15)
            best |= race(cluster, {"torchrun": TORCHRUN}, 2)
    except netns.Unavailable as why:
        print(f"Slurm cannot run here: {why}")
        return
    for what, which, aim in [("first", 0, "<= 1.2"), ("last", 1, "")]:
        for name in ("muster", "muster, auth=none"):
            row(f"srun to {what} exec, {name} / bare program", best[name][which], best["bare"][which], "ms", aim)
    row("srun to first exec, muster / torchrun", best["muster"][0], best["torchrun"][0], "ms", "< 1")


main()
