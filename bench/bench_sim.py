#!/usr/bin/env python3
"""The simulator: how long a large world takes, what it needs, and how many small ones with faults a second
holds. Nobody else has one; the numbers are for comparison with our own past."""

import os
import subprocess
import sys

MUSTER = os.path.join(os.environ.get("BUILD", "build"), "muster")
AGENTS = (1000, 10000, 100000)
WORLDS = 5000


def row(what, ours, unit, aim=""):
    print(f"{what:<46} {ours:>10} {'-':>10} {'-':>7}  {unit:<8} {aim}", flush=True)


def simulate(*args):
    """The program's output, the seconds of processor time and the memory in MiB that it took."""
    process = subprocess.Popen([MUSTER, "sim", *args], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"muster sim {' '.join(args)} ended with {status}:\n{text}")
    return text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    print(f"{'muster sim':<46} {'ours':>10} {'peer':>10} {'ratio':>7}  {'unit':<8} aim")
    for agents in AGENTS:
        _, seconds, mebibytes = simulate(f"--agents={agents}")
        row(f"a job of {agents:,} agents from start to end", f"{seconds:.2f}", "s of CPU")
        row("  memory", f"{mebibytes:.0f}", "MiB")
        row("  memory per agent", f"{mebibytes * 1024 / agents:.1f}", "KiB")
    _, seconds, _ = simulate("--faults", f"--runs={WORLDS}")
    row("worlds in which everything fails", f"{WORLDS / seconds:.0f}", "1/s", "a million in minutes")


main()
