"""Measuring and comparing: time added to a run, true peak memory, speed of `muster compare`.

The time added is what the measurer says a run took, less what the run says by its own clock, less the
same for a bare vfork loop. Memory is that of /bin/true as told by a measurer that holds 200 MB.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import tempfile
import time

from table import BUILD, MUSTER, head, row

CLOCK = str(BUILD / "bench" / "own_clock")
RUNS = 200
ORDERS, SAMPLES = 10_000, 20


def results(path):
    lines = [json.loads(line) for line in open(path)]
    return [line for line in lines if "muster" not in line]


def added(seen_ns, own_file):
    """What runs were said to take beyond what they took by themselves, in microseconds: the first decile,
    as noise only ever adds."""
    own = [int(line) for line in open(own_file)]
    assert len(own) == len(seen_ns)
    return statistics.quantiles((seen - mine for seen, mine in zip(seen_ns, own)), n=10)[0] / 1000


def bare_run(directory):
    own = os.path.join(directory, "own")
    done = subprocess.run([CLOCK, "bare", str(RUNS), own], capture_output=True, text=True, check=True)
    return added([int(line) for line in done.stdout.split()], own)


def muster_run(directory):
    # Not pinned, as the others are not: on a busy host that alone would decide.
    own, out = os.path.join(directory, "own"), os.path.join(directory, "out.jsonl")
    subprocess.run([MUSTER, "batch", "-q", "-j1", f"--runs={RUNS}", "--quiet-check=off", "--place=none", "-o", out,
                    f"{CLOCK} run {{}}", ":::", own], check=True, stdin=subprocess.DEVNULL)
    return added([line["wall_ns"] for line in results(out)], own)


def hyperfine_run(directory):
    own, out = os.path.join(directory, "own"), os.path.join(directory, "out.json")
    subprocess.run(["hyperfine", "-N", "--style=none", f"--runs={RUNS}", "--export-json", out, f"{CLOCK} run {own}"],
                   check=True, capture_output=True)
    return added([seconds * 1e9 for seconds in json.load(open(out))["results"][0]["times"]], own)


def time_added(directory):
    rounds = {bare_run: [], muster_run: [], hyperfine_run: []}
    for _ in range(5):  # by turns, so that a drift of the host hits all alike
        for measure, found in rounds.items():
            with tempfile.TemporaryDirectory(dir=directory) as scratch:
                found.append(measure(scratch))
    floor, ours, peer = (min(found) for found in rounds.values())
    row("time added to a run (peer: hyperfine -N)", ours - floor, peer - floor, "us", "<= 25")


def memory(directory):
    out = os.path.join(directory, "memory.jsonl")
    ballast = bytearray(os.urandom(1 << 20)) * 200
    subprocess.run([MUSTER, "batch", "-q", "-j1", "-o", out, "/bin/true {}", ":::", "1"], check=True,
                   stdin=subprocess.DEVNULL)
    subprocess.run(["/bin/true"], check=True)
    fat = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    row("peak of /bin/true (peer: a launcher of 200 MB)", results(out)[0]["maxrss_kb"] / 1024, fat / 1024, "MiB",
        "its own")
    del ballast


def write_result(path, seed, slower):
    rng = random.Random(seed)
    with open(path, "w") as out:
        out.write('{"muster":"batch","v":1,"host":{"name":"bench"},"started":"2026-01-01T00:00:00Z"}\n')
        for run in range(SAMPLES):
            for order in range(ORDERS):
                wall = int(1e7 * (slower if order % 100 == 0 else 1) * (1 + rng.expovariate(50)))
                out.write(json.dumps({
                    "id": f"order-{order}", "hash": f"{order:032x}", "cmd": f"./bench {order}", "attempt": 1, "run": run,
                    "reason": "ok", "exit": 0, "start": "2026-01-01T00:00:00.000000Z", "wall_ns": wall,
                    "user_ns": wall // 2, "sys_ns": wall // 9, "maxrss_kb": 2048, "minflt": 80, "majflt": 0, "nvcsw": 1,
                    "nivcsw": 0, "cores": "0", "stdout": {"bytes": 0}, "stderr": {"bytes": 0},
                }, separators=(",", ":")) + "\n")


def compare_speed(directory):
    files = [os.path.join(directory, name) for name in ("a.jsonl", "b.jsonl")]
    write_result(files[0], 1, 1)
    write_result(files[1], 2, 1.1)
    best = float("inf")
    for _ in range(5):
        start = time.monotonic()
        done = subprocess.run([MUSTER, "compare", *files], stdout=subprocess.DEVNULL)
        best = min(best, time.monotonic() - start)
        assert done.returncode == 3
    row(f"compare {ORDERS:,} orders x {SAMPLES} runs", best, None, "s", "< 1")


def main():
    head("measure and compare")
    with tempfile.TemporaryDirectory() as directory:
        time_added(directory)
        memory(directory)
        compare_speed(directory)


if __name__ == "__main__":
    main()
