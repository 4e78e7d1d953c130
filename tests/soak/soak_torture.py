"""Random jobs whose workers try to leave processes behind, ended in random ways at random moments.

usage: soak_torture.py [--runs=1000] [--seed=1] [--only=RUN] [--at-once=N]

Each run has its number and the seed: `--seed=1 --only=17` repeats the 17th of seed 1. What was drawn is the same every
time; how the processes interleave is up to the kernel."""

import argparse
import concurrent.futures
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))

import torture  # noqa: E402
from proc import state  # noqa: E402
from waits import wait_for  # noqa: E402

EARLY_MAX_S = 0.06  # most workers are in place by then


class RandomCell(torture.Cell):
    """A job with its own numbers. `early_s` is how long after muster's start the end comes; None: when all workers are in place."""

    def __init__(self, rng, kind, user, programs):
        super().__init__(kind, user, programs)
        self.workers = rng.randint(1, 4)
        self.options = (f"--shutdown-timeout={rng.choice([0, 0.05, 0.3])}", f"--max-restarts={rng.choice([0, 0, 1, 3])}")
        self.early_s = rng.uniform(0, EARLY_MAX_S) if rng.random() < 0.4 else None
        self.pause_s = rng.uniform(0, 0.02)

    def all_ready(self):
        if self.early_s is None:
            return super().all_ready()
        wait_for(self.executed, "muster to be executed")
        time.sleep(self.early_s)

    def executed(self):
        command = pathlib.Path(f"/proc/{self.process.pid}/cmdline").read_bytes().split(b"\0")
        return b"run" in command or self.process.poll() is not None

    def pause(self):
        time.sleep(self.pause_s)

    def __str__(self):
        when = "with all workers in place" if self.early_s is None else f"{self.early_s * 1e3:.1f} ms after the start"
        return f"{self.kind}, {self.workers} workers, {' '.join(self.options)}, as {self.user}, {when}"


def stop_warden(cell):
    cell.start("wait")
    cell.all_ready()
    warden = cell.warden()
    os.kill(warden, signal.SIGSTOP)
    wait_for(lambda: state(warden) in "TX", "a stopped warden")


def end_with_stopped_warden(sig):
    def end(cell):
        stop_warden(cell)
        os.kill(cell.process.pid, sig)
    return end


MORE_ENDS = {
    "TERM, stopped warden": end_with_stopped_warden(signal.SIGTERM),
    "KILL, stopped warden": end_with_stopped_warden(signal.SIGKILL),
    "KILL-warden": torture.end_by_blows(("warden", signal.SIGKILL), ("muster", signal.SIGTERM)),  # there may be restarts left
    "KILL of muster, then of warden": torture.end_by_blows(("muster", signal.SIGKILL), ("warden", signal.SIGKILL)),
    "KILL-both, stopped heir": torture.end_by_blows(("heir", signal.SIGSTOP), ("warden", signal.SIGKILL), ("muster", signal.SIGKILL)),
    "KILL-warden, stopped heir": torture.end_by_blows(("heir", signal.SIGSTOP), ("warden", signal.SIGKILL), ("muster", signal.SIGTERM)),
    "KILL of heir and warden": torture.end_by_blows(("heir", signal.SIGKILL), ("warden", signal.SIGKILL), ("muster", signal.SIGTERM)),
    "INT twice": torture.end_by_blows(("muster", signal.SIGINT), ("muster", signal.SIGINT)),
}
ENDS = torture.ENDS | MORE_ENDS


def draw(seed, number, programs):
    """What run `number` is: the cell, the name of its end."""
    rng = random.Random(f"torture {seed} {number}")
    user = rng.choice(torture.USERS)
    possible = [name for name in ENDS if name not in torture.ENDS or not torture.why_not(name, user, programs)]
    end = rng.choice(possible)
    cell = RandomCell(rng, rng.choice(torture.KINDS), user, programs)
    if end == "pid1-TERM":
        cell.early_s = None  # process 1 does not get signals that it is not yet set up for
    if ENDS[end] is torture.end_by_name:
        cell.copy_program()
    return cell, end


def run(number, cell, end):
    """How long the job took, and what is wrong; None if nothing is."""
    start = time.monotonic()
    left, ready, said = torture.try_cell((cell, ENDS[end]))
    took_s = time.monotonic() - start
    if not left and cell.early_s is None and ready == 0:
        left = ["the workers never got to escape"]
    wrong = f"run {number}: {cell}, end: {end}: {left}\n{said}" if left else None
    return took_s, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--at-once", type=int, default=2 * os.cpu_count())
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where it is ignored, muster ignores it until it is set up
    numbers = [asked.only] if asked.only else range(1, asked.runs + 1)
    bad, slowest_s = 0, 0
    with torture.programs_for_all() as programs, concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
        # Drawn before the first starts: see Cell.copy_program().
        runs = [(number, *draw(asked.seed, number, programs)) for number in numbers]
        for took_s, wrong in pool.map(lambda one: run(*one), runs):
            slowest_s = max(slowest_s, took_s)
            if wrong:
                bad += 1
                print(wrong, flush=True)
    print(f"torture: {len(runs)} runs of seed {asked.seed} as {' and '.join(torture.USERS)}: {bad} with survivors or other trouble; "
          f"the slowest took {slowest_s:.1f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
