"""How honest the intervals and verdicts of `muster compare` are: false alarms of equal programs (A/A), coverage of the
95 % interval and power, on noise of many shapes, for separate results and for A/B blocks; then real programs that differ by
3 % and 1 % in instructions and by 3 % in time.

"alone": one comparison by itself (p and interval); "in a list": the verdicts of all comparisons of a list, corrected for
their number. STATS_ORDERS sets the comparisons a figure; STATS_SEED chooses others.

The aims of the power were measured with 400 comparisons each, so that each of them may be off by 0.03 or more. An exact 95 %
interval has less power than one that only comes near 95 %: with 10 runs a side, noise of 2 % and a change of 3 % it finds 0.498
of them (20,000 comparisons); the next larger step of the rank test finds 0.533, but its interval has 94.8 %, and would leave out 1
where p is over 0.05.

usage: bench_stats.py [alarms|coverage|power|real] ...
"""

import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from table import MUSTER

ORDERS = int(os.environ.get("STATS_ORDERS", "1000"))
SEED = int(os.environ.get("STATS_SEED", "1"))
ALPHA, THRESHOLD = 0.05, 0.01


def each(value):
    """A noise whose values do not depend on each other."""
    return lambda rng, n: [value(rng) for _ in range(n)]


def waves(rng, n, rho=0.8, size=0.03):
    wave, values = rng.gauss(0, 1), []
    for _ in range(n):
        values.append(math.exp(size * wave))
        wave = rho * wave + math.sqrt(1 - rho * rho) * rng.gauss(0, 1)
    return values


NOISES = {
    "normal 3 %": each(lambda r: 1 + 0.03 * r.gauss(0, 1)),
    "lognormal 3 %": each(lambda r: math.exp(0.03 * r.gauss(0, 1))),
    "one-sided": each(lambda r: 1 + r.expovariate(1 / 0.03)),
    "outliers 5 %": each(lambda r: (1.5 if r.random() < 0.05 else 1) * (1 + 0.02 * r.gauss(0, 1))),
    "bimodal": each(lambda r: (1.1 if r.random() < 0.5 else 1) * (1 + 0.01 * r.gauss(0, 1))),
}


def line(order, run, value, **more):
    return json.dumps({"id": f"o{order}", "hash": f"{order:032x}", "cmd": f"./b {order}", "attempt": 1, "run": run, "reason": "ok",
                       "exit": 0, "wall_ns": int(1e9 * value), **more}, separators=(",", ":")) + "\n"


HEAD = '{"muster":"batch","v":1,"host":{"name":"bench"},"started":"2026-01-01T00:00:00Z"}\n'


def compared(noise, n, ratio, paired, *options):
    """The rows of ORDERS comparisons of n runs a side, B `ratio` times A."""
    rng = random.Random(f"{SEED} {n} {ratio} {paired}")
    with tempfile.TemporaryDirectory() as work:
        files = [os.path.join(work, name) for name in ("a", "b")]
        sides = [[noise(rng, n) for _ in range(ORDERS)] for _ in files]
        if paired:
            files = files[:1]
            # The runs of a block follow each other: noise that comes in waves hits both.
            series = [noise(rng, 2 * n) for _ in range(ORDERS)]
            sides = [[values[k::2] for values in series] for k in (0, 1)]
            text = "".join(line(o, 2 * i + k, sides[k][o][i] * (ratio if k else 1), variant="AB"[k], block=i)
                           for o in range(ORDERS) for i in range(n) for k in (0, 1))
            pathlib.Path(files[0]).write_text(HEAD + text)
        else:
            for path, side, factor in zip(files, sides, (1, ratio)):
                pathlib.Path(path).write_text(HEAD + "".join(line(o, i, side[o][i] * factor) for o in range(ORDERS) for i in range(n)))
        out = subprocess.run([MUSTER, "compare", "--json", "--metric=wall", *options, *files], capture_output=True, text=True).stdout
        return json.loads(out)["rows"]


def changed(row):
    """The verdict that this row would have alone."""
    if not (row["p"] or 0) <= ALPHA:
        return 0
    return 1 if row["low"] > 1 + THRESHOLD else -1 if row["high"] < 1 / (1 + THRESHOLD) else 0


def share(rows, test):
    return sum(bool(test(row)) for row in rows) / len(rows)


def both(figure):
    return "  ".join(f"{figure(paired):>8.3f}" for paired in (False, True))


def alarms():
    print(f"\nA/A, {ORDERS} comparisons: share with a change   (aim <= {ALPHA})\n{'':<24}{'alone: separate, blocks':>26}{'list: separate, blocks':>26}")
    for name, noise in {**NOISES, "waves, rho 0.8": waves}.items():
        for n in 10, 30:
            found = {paired: compared(noise, n, 1, paired) for paired in (False, True)}
            print(f"{name + ', ' + str(n) + ' runs':<24}{both(lambda p: share(found[p], changed)):>26}"
                  f"{both(lambda p: share(found[p], lambda r: r['verdict'] in ('slower', 'faster'))):>26}", flush=True)
    learned = compared(waves, 30, 1, False, "--noise=learn")
    print(f"waves, 30 runs, separate with --noise=learn: {share(learned, lambda r: r['verdict'] in ('slower', 'faster')):.3f} in a list")


def coverage():
    print(f"\n95 % interval holds the truth, +5 %   (aim >= 0.93)\n{'':<24}{'separate, blocks':>20}")
    for name, noise in NOISES.items():
        for n in 10, 30:
            figure = lambda paired: share(compared(noise, n, 1.05, paired), lambda r: r["low"] <= 1.05 <= r["high"])
            print(f"{name + ', ' + str(n) + ' runs':<24}{both(figure):>20}", flush=True)


def power():
    print(f"\nfound as slower, lognormal noise, alone: separate, blocks (in brackets: the aim); one standard error is at most "
          f"{0.5 / math.sqrt(ORDERS):.3f}")
    wanted = {(10, 1): ((0.50, 0.47), (0.99, 0.97), (1, 1)), (10, 2): ((0.15, 0.16), (0.53, 0.47), (0.98, 0.96)),
              (10, 3): ((0.06, 0.08), (0.27, 0.22), (0.76, 0.73)), (30, 2): ((0.45, 0.45), (0.94, 0.98), (1, 1))}
    for (n, cv), aims in wanted.items():
        noise = each(lambda r: math.exp(cv / 100 * r.gauss(0, 1)))
        for size, aim in zip((2, 3, 5), aims):
            figure = lambda paired: share(compared(noise, n, 1 + size / 100, paired), lambda r: changed(r) > 0)
            print(f"{n} runs, noise {cv} %, {size} % slower {both(figure)}   ({aim[0]:.2f} {aim[1]:.2f})", flush=True)


def real():
    print(f"\nreal programs, load {os.getloadavg()[0]:.0f}")
    with tempfile.TemporaryDirectory() as work:
        source = os.path.join(work, "loop.c")
        pathlib.Path(source).write_text("#include <stdlib.h>\nint main(int c, char **v) { volatile unsigned x = 0; (void)c;"
                                        " for (long i = atol(v[1]); i > 0; i--) x += (unsigned)i; return 0; }\n")
        loop = os.path.join(work, "loop")
        subprocess.run(["cc", "-O1", "-o", loop, source], check=True)
        for name, base, change, metric, options in (
                ("instructions +1 %", 300_000, 1.01, "instructions", ["--count=cachegrind", "--runs=1"]),
                ("instructions +3 %", 300_000, 1.03, "instructions", ["--count=cachegrind", "--runs=1"]),
                ("wall time +3 %", 30_000_000, 1.03, "wall", ["--runs=40"])):
            out = os.path.join(work, f"{metric}-{change}.jsonl")
            subprocess.run([MUSTER, "batch", "-q", "-j1", "--ab", *options, "-o", out, f"A={loop} {base}", f"B={loop} {int(base * change)}"],
                           capture_output=True, stdin=subprocess.DEVNULL)
            done = subprocess.run([MUSTER, "compare", "--json", f"--metric={metric}", "--include-suspect", out], capture_output=True, text=True)
            row, = json.loads(done.stdout)["rows"]
            print(f"{name:<20} {row['verdict']:<10} {row['ratio']:.4f} ({row['low']:.4f} to {row['high']:.4f})", flush=True)


if __name__ == "__main__":
    parts = {"alarms": alarms, "coverage": coverage, "power": power, "real": real}
    for part in sys.argv[1:] or parts:
        parts[part]()
