"""Trend and bisect: change points against apache-otava on the patterns of otava-test-data, false alarms on
series without a change, the time for a large history, and the share of bisections that find the commit.

The two packages are used where they are installed (pip install apache-otava otava-test-data); without
them that part is left out and says so. A place that is reported within MARGIN values of a true one is right; a
pattern's outlier counts as a place for both, and its end is not held against the peer, which has no word for it.

usage: bench_trend.py [patterns|alarms|speed|bisect] ...
"""

import collections
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import warnings

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
MUSTER = str(BUILD / "muster")
POINTS = str(BUILD / "bench" / "change_points")
SEEDS = int(os.environ.get("TREND_SEEDS", "10"))
SEARCHES = int(os.environ.get("TREND_SEARCHES", "5"))
MARGIN, ALPHA = 3, 0.05
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.org"}


def change_points(series):
    """(changes, outliers) of every series."""
    text = "".join(" ".join(repr(float(v)) for v in values) + "\n" for values in series)
    out = subprocess.run([POINTS, str(ALPHA)], input=text, capture_output=True, text=True, check=True).stdout
    return [tuple([int(v) for v in part.split()] for part in line.split("|")) for line in out.splitlines()]


def score(found, truth):
    """(right, found, true)"""
    used = set()
    for place in found:
        near = [(abs(t - place), i) for i, t in enumerate(truth) if abs(t - place) <= MARGIN and i not in used]
        if near:
            used.add(min(near)[1])
    return len(used), len(found), len(truth)


def patterns():
    try:
        from otava.analysis import compute_change_points
        from otava_test_data.generators.combiner import CombinationGenerator
    except ImportError as missing:
        print(f"patterns: left out: {missing}")
        return
    warnings.filterwarnings("ignore")
    table = collections.defaultdict(lambda: [[0, 0, 0], [0, 0, 0]])
    for seed in range(SEEDS):
        cases = CombinationGenerator(lengths=[50, 500], seed=seed).generate_all_test_cases(
            include_combinations=True, noise_levels=[0.0, 2.0, 5.0, 10.0])
        for case, (changes, outliers) in zip(cases, change_points([c.data for c in cases])):
            peer = [int(c.index) for c in compute_change_points(list(case.data))[0]]
            ends = {c.index + 1 for c in case.change_points if c.change_type == "outlier" and c.index in peer}
            truth = sorted(c.index for c in case.change_points)
            for row, found in zip(table[case.generator_name], (sorted(changes + outliers), [p for p in peer if p not in ends])):
                for i, number in enumerate(score(found, truth)):
                    row[i] += number
    print(f"{'pattern, ' + str(SEEDS) + ' seeds':<58}{'precision':>10}{'otava':>7}{'recall':>8}{'otava':>7}{'wrong':>7}{'otava':>7}")
    total = [[0, 0, 0], [0, 0, 0]]
    for name, rows in sorted(table.items()):
        share = lambda a, b: f"{a / b:.3f}" if b else "-"
        (r, f, t), (pr, pf, pt) = rows
        print(f"{name:<58}{share(r, f):>10}{share(pr, pf):>7}{share(r, t):>8}{share(pr, pt):>7}{f - r:>7}{pf - pr:>7}")
        total = [[x + y for x, y in zip(a, b)] for a, b in zip(total, rows)]
    (r, f, t), (pr, pf, pt) = total
    print(f"{'all':<58}{r / f:>10.3f}{pr / pf:>7.3f}{r / t:>8.3f}{pr / pt:>7.3f}{f - r:>7}{pf - pr:>7}")


def alarms():
    rng = random.Random(7)
    kinds = {"normal 1 %": lambda: 1 + 0.01 * rng.gauss(0, 1), "normal 10 %": lambda: 1 + 0.1 * rng.gauss(0, 1),
             "uniform ±10 %": lambda: rng.uniform(0.9, 1.1), "lognormal 10 %": lambda: math.exp(0.1 * rng.gauss(0, 1))}
    for name, value in kinds.items():
        for length in 50, 200:
            found = change_points([[abs(100 * value()) + 1e-9 for _ in range(length)] for _ in range(1000)])
            share = sum(bool(changes) for changes, _ in found) / 1000
            print(f"false alarms, 1,000 series of {length}, {name:<16} {share:.3f}  (at most {ALPHA})")


def speed(benchmarks=10_000, versions=500):
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / "host" / "time"
        folder.mkdir(parents=True)
        noise = [1 + 0.01 * rng.gauss(0, 1) for _ in range(100_003)]
        for v in range(versions):
            lines = "".join(f'{{"muster":"summary","id":"bench-{b:05}","runs":10,"wall":'
                            f'{1e6 * noise[(b * 7919 + v * 104729) % 100_003] * (1.05 if b % 50 == 0 and v > 400 else 1):.1f}}}\n'
                            for b in range(benchmarks))
            head = {"muster": "history", "v": 1, "version": f"v{v:04}", "time": v, "class": "host", "configuration": "time",
                    "summary_bytes": len(lines)}
            (folder / f"{v:04}-v-{v}.jsonl").write_text(json.dumps(head) + "\n" + lines)
        for _ in range(2):
            start, before = time.monotonic(), os.times()
            done = subprocess.run([MUSTER, "trend", work], stdout=subprocess.DEVNULL)
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            print(f"{benchmarks:,} benchmarks x {versions} versions: {time.monotonic() - start:.1f} s, {cpu:.1f} s of CPU time "
                  f"(aim 10 s), exit {done.returncode}, load {os.getloadavg()[0]:.0f}")


def make_history(folder, first_bad, change, loops):
    """64 commits of a loop that grows at first_bad; the one in the middle does not build."""
    run = lambda *args: subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, env={**os.environ, **WHO})
    run("init", "-q", ".")
    for i in range(64):
        broken = "#error broken\n" if i == 31 and first_bad not in (31, 32) else ""
        count = int(loops * (change if i >= first_bad else 1))
        (folder / "bench.c").write_text(f"/* {i:02} */\n{broken}int main(void) {{ volatile unsigned x = 0; "
                                        f"for (unsigned i = 0; i < {count}u; i++) x += i; return 0; }}\n")
        run("add", "-A")
        run("commit", "-qm", f"change {i}")
    return subprocess.check_output(["git", "log", "--reverse", "--format=%H"], cwd=folder, text=True).split()


def bisect():
    for name, change, loops, options in (("instructions +1 %", 1.01, 300_000, ["--count=cachegrind"]),
                                         ("CPU time +3 %", 1.03, 10_000_000, ["--metric=cpu"])):
        right, start = 0, time.monotonic()
        for search in range(SEARCHES):
            with tempfile.TemporaryDirectory() as work:
                first_bad = 1 + search * 37 % 63
                names = make_history(pathlib.Path(work), first_bad, change, loops)
                done = subprocess.run([MUSTER, "bisect", f"--good={names[0]}", "--build=cc -O1 -o bench bench.c", "--json", "-q",
                                       *options, "--", "./bench"], cwd=work, capture_output=True, text=True)
                answer = json.loads(done.stdout or "{}")
                right += answer.get("first_bad") == names[first_bad] and answer["result"] == "found"
        print(f"bisect, 64 commits, {name}: {right} of {SEARCHES} right, {(time.monotonic() - start) / SEARCHES:.1f} s a search, "
              f"load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    parts = {"patterns": patterns, "alarms": alarms, "speed": speed, "bisect": bisect}
    for each in sys.argv[1:] or parts:
        parts[each]()
