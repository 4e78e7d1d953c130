"""The flight recorder: what it costs a collective, and how long it takes to join the records of many ranks.

An all_reduce of gloo between two workers of one host, in turns of rounds with and without `--flight-recorder`, so that both
see the same load. Each round is a job of its own; the median of all_reduces of a round counts, by the CPU time of rank 0 and by
the clock.

usage: bench_collectives.py [rounds]"""

import pathlib
import statistics
import subprocess
import sys
import tempfile

from table import BUILD, MUSTER, WORKER_ENV, head, row

WORKER = """
import os, statistics, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
tensor = torch.ones(1024)
def turn(times=200):
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        dist.all_reduce(tensor)
    return 1e6 * (time.perf_counter() - start) / times, 1e6 * (time.process_time() - cpu) / times
turn()
turns = [turn() for _ in range(15)]
if dist.get_rank() == 0:
    print(*(statistics.median(column) for column in zip(*turns)), flush=True)
dist.barrier()
dist.destroy_process_group()
"""


def one_round(script, *options):
    done = subprocess.run([MUSTER, "run", "--nproc-per-node=2", "--preload=torch,torch.distributed", *options, script],
                          env=WORKER_ENV, stdout=subprocess.PIPE, text=True, check=True)
    return [float(word) for word in done.stdout.split()[-2:]]


def joined(ranks=1000, entries=2000):
    """What flight_join measures; it fails if the rank that is missing is not named."""
    out = subprocess.run([BUILD / "bench/flight_join", str(ranks), str(entries)], check=True, stdout=subprocess.PIPE, text=True).stdout
    read_ms, join_ms, megabytes = map(float, out.split())
    row(f"read the record of a rank, {entries:,} entries", read_ms, None, "ms")
    row(f"join the records of {ranks:,} ranks", join_ms, None, "ms", "<= 1000")
    row("memory for it, at most", megabytes, None, "MB", "<= 200")


def recorded(rounds):
    with tempfile.TemporaryDirectory() as work:
        script = pathlib.Path(work) / "worker.py"
        script.write_text(WORKER)
        found = {"on": [], "off": []}
        for _ in range(rounds):
            found["off"].append(one_round(script))
            found["on"].append(one_round(script, "--flight-recorder"))
    for column, name in enumerate(("by the clock", "of CPU time")):
        for what, figure in (("median", statistics.median), ("least", min)):
            on, off = (figure(each[column] for each in found[key]) for key in ("on", "off"))
            row(f"all_reduce {name}, {what} of {rounds}: recorder on / off", on, off, "us", "~ 1")


def main():
    head("collectives")
    joined()
    recorded(int(sys.argv[1]) if len(sys.argv) > 1 else 8)


if __name__ == "__main__":
    main()
