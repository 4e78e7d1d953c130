#!/usr/bin/env python3
"""The simulator: how long a large world takes, what it needs, and how many small ones with faults a second
holds. Nobody else has one; the numbers are for comparison with our own past."""

import os
import subprocess
import sys

from table import MUSTER, head, row

AGENTS = (1000, 10000, 100000)
WORLDS = 5000


def simulate(*args):
    """The program's output, the seconds of processor time and the memory in MiB that it took."""
    process = subprocess.Popen([MUSTER, "sim", *args], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"muster sim {' '.join(args)} ended with {status}:\n{text}")
    return text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    head("muster sim")
    for agents in AGENTS:
        _, seconds, mebibytes = simulate(f"--agents={agents}")
        row(f"a job of {agents:,} agents from start to end, CPU time", f"{seconds:.2f}", None, "s")
        row("  memory", f"{mebibytes:.0f}", None, "MiB")
        row("  memory per agent", f"{mebibytes * 1024 / agents:.1f}", None, "KiB")
    _, seconds, _ = simulate("--faults", f"--runs={WORLDS}")
    row("worlds in which everything fails", f"{WORLDS / seconds:.0f}", None, "1/s", "a million in minutes")


main()
