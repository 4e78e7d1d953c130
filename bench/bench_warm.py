"""Warm workers: from the launch, and from a worker's death, to the first line of user code after
`import torch`, of the last rank to get there; and the memory of ranks that do nothing.

Ours is `muster run --preload=torch` where nothing else is said. Ratios say how many times better ours is.
One job gives both times of a launcher: its rank 0 dies as often as there are restarts."""

import contextlib
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

from table import MUSTER, TORCHRUN, WORKER_ENV, head, need_torchrun, row

PATIENCE_S = 300

# Each rank says when it is up; rank 0 then dies, once everybody is and has come to rest.
WORKER = '''
import os, sys, time
import torch
up = time.monotonic_ns()
attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), os.environ["RANK"]
record, last = sys.argv[1], int(sys.argv[2])

def say(what, ns):
    with open(record, "a") as file:
        file.write(f"{what} {attempt} {ns}\\n")

def everybody_is_up():
    with open(record) as file:
        return sum(line.startswith(f"up {attempt} ") for line in file) == int(os.environ["WORLD_SIZE"])

say("up", up)
while not everybody_is_up():
    time.sleep(0.01)
if attempt < last and rank == "0":
    time.sleep(0.5)
    say("down", time.monotonic_ns())
    os._exit(1)
if attempt < last or last < 0:
    time.sleep(1000)
'''


class Launcher:
    def __init__(self, name, command, restarts):
        self.name, self.command, self.restarts = name, command, restarts


LAUNCHERS = [
    Launcher("muster --preload", [MUSTER, "run", "--preload=torch"], 7),
    Launcher("muster", [MUSTER, "run"], 1),
    Launcher("torchrun", [TORCHRUN], 1),
]


def start(launcher, ranks, directory, last):
    directory = pathlib.Path(directory)
    (directory / "worker.py").write_text(WORKER)
    (directory / "record").touch()
    return subprocess.Popen(
        [*launcher.command, f"--nproc-per-node={ranks}", f"--max-restarts={max(last, 0)}", f"--log-dir={directory}/logs",
         "worker.py", "record", str(last)], cwd=directory,
        env=WORKER_ENV,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def times(launcher, ranks):
    """Milliseconds of the first start, and of a restart (the median)."""
    with tempfile.TemporaryDirectory() as directory:
        launched = time.monotonic_ns()
        job = start(launcher, ranks, directory, launcher.restarts)
        assert job.wait(PATIENCE_S) == 0, launcher.name
        lines = [line.split() for line in pathlib.Path(directory, "record").read_text().splitlines()]
    up = [max(int(ns) for what, at, ns in lines if (what, at) == ("up", str(attempt)))
          for attempt in range(launcher.restarts + 1)]
    down = [int(ns) for what, _, ns in lines if what == "down"]
    return (up[0] - launched) / 1e6, statistics.median((b - a) / 1e6 for a, b in zip(down, up[1:]))


def descendants(pid):
    found = [pid]
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += descendants(int(child))
    return found


def pss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise LookupError(pid)


def memory(launcher, ranks):
    """Of all processes of a job whose ranks have imported torch and sleep, in MB."""
    with tempfile.TemporaryDirectory() as directory:
        job = start(launcher, ranks, directory, -1)
        try:
            record, end = pathlib.Path(directory, "record"), time.monotonic() + PATIENCE_S
            while record.read_text().count("up") < ranks and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(0.5)
            return sum(map(pss_mb, descendants(job.pid)))
        finally:
            job.send_signal(signal.SIGTERM)
            job.wait(PATIENCE_S)


def main():
    need_torchrun()
    head("warm workers")
    first_aims, restart_aims = {8: "<= 0.25"}, {1: "<= 0.01", 8: "<= 0.025"}
    for ranks in (1, 4, 8):
        (warm, warm_again), (cold, cold_again), (peer, peer_again) = (times(launcher, ranks) for launcher in LAUNCHERS)
        label = f"{ranks} rank{'s' if ranks > 1 else ''}"
        row(f"launch to user code, {label} / torchrun", warm, peer, "ms", first_aims.get(ranks, ""))
        row(f"launch to user code, {label} / without --preload", warm, cold, "ms")
        row(f"death to user code, {label} / torchrun", warm_again, peer_again, "ms", restart_aims.get(ranks, ""))
        row(f"death to user code, {label} / without --preload", warm_again, cold_again, "ms")
    warm, cold, peer = (memory(launcher, 8) for launcher in LAUNCHERS)
    row("memory of 8 idle ranks (PSS) / torchrun", warm, peer, "MB")
    row("memory of 8 idle ranks (PSS) / without --preload", warm, cold, "MB")


if __name__ == "__main__":
    main()
