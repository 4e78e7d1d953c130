"""The flight recorder: what it costs a collective, and how long it takes to join the records of many ranks.

An all_reduce of gloo between two workers of one host, in turns of rounds with and without `--flight-recorder`, so that both
see the same load. Each round is a job of its own; the median of all_reduces of a round counts, by the CPU time of rank 0 and by
the clock.

usage: bench_collectives.py [rounds]"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
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
"""


def one_round(script, *options):
    done = subprocess.run([BUILD / "muster", "run", "--nproc-per-node=2", "--preload=torch,torch.distributed", *options, script],
                          capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()[-2:]]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    subprocess.run([BUILD / "bench/flight_join"], check=True)
    with tempfile.TemporaryDirectory() as work:
        script = pathlib.Path(work) / "worker.py"
        script.write_text(WORKER)
        found = {"off": [], "on": []}
        for _ in range(rounds):
            found["off"].append(one_round(script))
            found["on"].append(one_round(script, "--flight-recorder"))
    for column, name in enumerate(("by the clock", "of CPU time")):
        off, on = ([each[column] for each in found[key]] for key in ("off", "on"))
        print(f"all_reduce, us {name}: recorder off {statistics.median(off):.0f} ({min(off):.0f} to {max(off):.0f}), "
              f"on {statistics.median(on):.0f} ({min(on):.0f} to {max(on):.0f}); {rounds} rounds each, load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
