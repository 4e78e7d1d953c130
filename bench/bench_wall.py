"""How often `muster batch --ab` and `muster compare` find a program that takes 3 % more wall time, and how often they
find a difference where there is none, with as many blocks as a user would wait for.

A trial is one batch of A/B blocks of a loop of the processor, and one comparison with the options that a user would give:
none. Trials with a difference and without follow each other by turns, so that both see the same host.

usage: bench_wall.py [--trials=20] [--blocks=40] [--change=3] [--ms=40]       20 trials of each take about 3 minutes
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import tempfile
import time

from table import MUSTER

SOURCE = """#include <stdlib.h>
int main(int c, char **v) { volatile unsigned x = 0; (void)c; for (long i = atol(v[1]); i > 0; i--) x += (unsigned)i; return 0; }
"""


def build(work):
    (work / "loop.c").write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-o", work / "loop", work / "loop.c"], check=True)
    return str(work / "loop")


def loops_for(loop, seconds):
    """So many that the loop takes about this long on a core of its own."""
    count = 10_000_000
    best = float("inf")
    for _ in range(10):
        start = time.monotonic()
        subprocess.run([loop, str(count)], check=True)
        best = min(best, time.monotonic() - start)
    return int(count * seconds / best)


def trial(work, loop, base, factor, blocks):
    out = work / "ab.jsonl"
    out.unlink(missing_ok=True)
    subprocess.run([MUSTER, "batch", "-q", "-j1", "--ab", f"--runs={blocks}", "-o", out, f"A={loop} {base}", f"B={loop} {int(base * factor)}"],
                   check=True, capture_output=True, stdin=subprocess.DEVNULL)
    rows = {}
    for metric in "wall", "cpu":
        done = subprocess.run([MUSTER, "compare", "--json", f"--metric={metric}", out], capture_output=True, text=True)
        rows[metric], = json.loads(done.stdout)["rows"]
        rows[metric]["verdict"] += " (all runs suspect)" if done.returncode == 125 else ""
    return rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    for name, value in ("trials", 20), ("blocks", 40), ("change", 3), ("ms", 40):
        parser.add_argument(f"--{name}", type=float if name == "change" else int, default=value)
    options = parser.parse_args()
    factors = {f"+{options.change:g} %": 1 + options.change / 100, "no difference": 1}
    verdicts, ratios = collections.defaultdict(collections.Counter), collections.defaultdict(list)
    start, load = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        loop = build(work)
        base = loops_for(loop, options.ms / 1000)
        for _ in range(options.trials):
            for name, factor in factors.items():
                for metric, row in trial(work, loop, base, factor, options.blocks).items():
                    verdicts[name, metric][row["verdict"]] += 1
                    ratios[name, metric].append(row["ratio"])
    print(f"{options.trials} trials of {options.blocks} blocks, {options.ms} ms a run, load {load:.1f} to {os.getloadavg()[0]:.1f}, "
          f"{time.monotonic() - start:.0f} s")
    for (name, metric), found in verdicts.items():
        values = sorted(ratios[name, metric])
        print(f"{name:<14} {metric:<5} ratio {values[0]:.4f} to {values[-1]:.4f}, median {values[len(values) // 2]:.4f}; "
              + ", ".join(f"{count} {verdict}" for verdict, count in found.most_common()), flush=True)


if __name__ == "__main__":
    main()
