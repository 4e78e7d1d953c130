"""Trend and bisect: change points against apache-otava on the patterns of otava-test-data, false alarms on
series without a change, the time for a large history, and the share of bisections that find the commit.

The two packages are used where they are installed (pip install apache-otava otava-test-data); without
them that part is left out and says so. A place that is reported within MARGIN values of a true one is right; a
pattern's outlier and change of noise count as places for both, and the end of an outlier is not held against the
peer, which has no word for it. TREND_FIRST_SEED chooses other series than those of the default.

Of bisect, "counting" and "timing" are the two halves; TREND_SEARCHES says how many searches each makes.

usage: bench_trend.py [patterns|alarms|speed|bisect|counting|timing] ...
"""

import collections
import functools
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

from table import BUILD, MUSTER

POINTS = str(BUILD / "bench" / "change_points")
SEEDS = int(os.environ.get("TREND_SEEDS", "10"))
FIRST_SEED = int(os.environ.get("TREND_FIRST_SEED", "0"))
SEARCHES = int(os.environ.get("TREND_SEARCHES", "5"))
MARGIN, ALPHA = 3, 0.05


def change_points(series):
    """(changes, outliers, changes of noise) of every series."""
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
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        cases = CombinationGenerator(lengths=[50, 500], seed=seed).generate_all_test_cases(
            include_combinations=True, noise_levels=[0.0, 2.0, 5.0, 10.0])
        for case, places in zip(cases, change_points([c.data for c in cases])):
            peer = [int(c.index) for c in compute_change_points(list(case.data))[0]]
            ends = {c.index + 1 for c in case.change_points if c.change_type == "outlier" and c.index in peer}
            truth = sorted(c.index for c in case.change_points)
            for row, found in zip(table[case.generator_name], (sorted(sum(places, [])), [p for p in peer if p not in ends])):
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


def waves(rng, length, rho):
    """Noise of variance 1 whose neighbours have the correlation rho."""
    value, values = rng.gauss(0, 1), []
    for _ in range(length):
        values.append(value)
        value = rho * value + math.sqrt(1 - rho * rho) * rng.gauss(0, 1)
    return values


def student(rng, df):
    return rng.gauss(0, 1) / math.sqrt(rng.gammavariate(df / 2, 2) / df)


def noises(rng):
    """Every kind of noise: n -> n values around 1."""
    each = lambda value: lambda n: [value() for _ in range(n)]
    modes = lambda share: each(lambda: (1.2 if rng.random() < share else 1) * (1 + 0.01 * rng.gauss(0, 1)))
    slow = lambda rho: lambda n: [math.exp(0.03 * w) for w in waves(rng, n, rho)]
    return {
        "normal 1 %": each(lambda: 1 + 0.01 * rng.gauss(0, 1)), "normal 10 %": each(lambda: 1 + 0.1 * rng.gauss(0, 1)),
        "uniform ±10 %": each(lambda: rng.uniform(0.9, 1.1)), "lognormal 10 %": each(lambda: math.exp(0.1 * rng.gauss(0, 1))),
        "one-sided": each(lambda: 1 + 0.1 * rng.expovariate(1)), "long tails, t3": each(lambda: math.exp(0.02 * student(rng, 3))),
        "long tails, t2": each(lambda: math.exp(0.02 * student(rng, 2))),
        "outliers 5 %": each(lambda: (1.5 if rng.random() < 0.05 else 1) * (1 + 0.02 * rng.gauss(0, 1))),
        "bimodal 50:50": modes(0.5), "bimodal 80:20": modes(0.2), "coarse clock": each(lambda: round(10 + 0.5 * rng.gauss(0, 1)) / 10),
        "waves, rho 0.3": slow(0.3), "waves, rho 0.5": slow(0.5), "waves, rho 0.8": slow(0.8),
    }


def alarms():
    rng = random.Random(7 + FIRST_SEED)
    print(f"{'false alarms, 1,000 series each (at most ' + str(ALPHA) + ')':<50}" + "".join(f"{n:>8}" for n in (50, 200, 500)))
    for name, noise in noises(rng).items():
        shares = []
        for length in 50, 200, 500:
            found = change_points([[max(100 * value, 1e-9) for value in noise(length)] for _ in range(1000)])
            shares.append(sum(bool(changes) for changes, _, _ in found) / 1000)
        print(f"{name:<50}" + "".join(f"{share:>8.3f}" for share in shares), flush=True)


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
    git = lambda *args, **more: subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, **more)
    stream = []
    for i in range(64):
        broken = "#error broken\n" if i == 31 and first_bad not in (31, 32) else ""
        count = int(loops * (change if i >= first_bad else 1))
        text = (f"/* {i:02} */\n{broken}int main(void) {{ volatile unsigned x = 0; "
                f"for (unsigned i = 0; i < {count}u; i++) x += i; return 0; }}\n")
        note = f"change {i}\n"
        stream.append(f"commit refs/heads/main\ncommitter a <a@example.org> {1_700_000_000 + i} +0000\ndata {len(note)}\n{note}"
                      f"M 100644 inline bench.c\ndata {len(text)}\n{text}\n")
    git("init", "-q", "-b", "main", ".")
    git("fast-import", "--quiet", input="".join(stream).encode())
    return git("log", "--reverse", "--format=%H", "main").stdout.decode().split()


def one_search(search, change, loops, options):
    """Whether it found the commit, and the pairs that it took."""
    with tempfile.TemporaryDirectory() as work:
        first_bad = 1 + search * 37 % 63
        names = make_history(pathlib.Path(work), first_bad, change, loops)
        done = subprocess.run([MUSTER, "bisect", f"--good={names[0]}", f"--bad={names[-1]}", "--build=cc -O1 -o bench bench.c", "--json",
                               "-q", *options, "--", "./bench"], cwd=work, capture_output=True, text=True)
        answer = json.loads(done.stdout or "{}")
        right = answer.get("result") == "found" and answer["first_bad"] == names[first_bad]
        if not right:
            told = answer.get("first_bad", done.stderr.strip())
            print(f"  search {search}: {answer.get('result')}, commit "
                  f"{names.index(told) if told in names else told} instead of {first_bad}", flush=True)
        return right, sum(each.get("pairs", 0) for each in answer.get("commits", []))


KINDS = {"counting": ("instructions +1 %", 1.01, 300_000, ["--count=cachegrind"]),
         "timing": ("CPU time +3 %", 1.03, 10_000_000, ["--metric=cpu"])}


def bisect(kinds=tuple(KINDS)):
    for name, change, loops, options in (KINDS[kind] for kind in kinds):
        right, pairs, start, load = 0, 0, time.monotonic(), os.getloadavg()[0]
        for search in range(FIRST_SEED, FIRST_SEED + SEARCHES):
            found, took = one_search(search, change, loops, options)
            right, pairs = right + found, pairs + took
        print(f"bisect, 64 commits, {name}: {right} of {SEARCHES} right, {(time.monotonic() - start) / SEARCHES:.1f} s and "
              f"{pairs / SEARCHES:.0f} pairs a search, load {load:.0f} to {os.getloadavg()[0]:.0f}", flush=True)


if __name__ == "__main__":
    parts = {"patterns": patterns, "alarms": alarms, "speed": speed, "bisect": bisect,
             **{kind: functools.partial(bisect, [kind]) for kind in KINDS}}
    for each in sys.argv[1:] or ["patterns", "alarms", "speed", "bisect"]:
        parts[each]()
