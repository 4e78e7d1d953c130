"""A worker's death to the end of the next training step: from memory that the launcher holds (muster.keep), from a file, and
torchrun from a file. Two ranks through gloo; each has a state of its own. Ratios say how many times better ours is.

Rank 0 kills itself after a step that both have saved. The time ends when the last rank has made the step after it. On a
busy machine gloo does not always connect again after a restart by torchrun: the job fails, or hangs. Such a run is
repeated; if none goes on, there is no figure."""

import pathlib
import statistics
import subprocess
import sys
import tempfile

from table import MUSTER, TORCHRUN, WORKER_ENV, head, need_torchrun, row

PATIENCE_S = 120
RANKS = 2
TRIES = 5

WORKER = '''
import os, signal, sys, time
import torch
import torch.distributed as dist

record, last, numbers, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
file = f"{record}.{rank}.pt"

def say(what):
    with open(record, "a") as out:
        out.write(f"{what} {attempt} {time.monotonic_ns()}\\n")

dist.init_process_group("gloo")
step, state = 0, torch.zeros(numbers)
if how == "memory":
    import muster
    kept = muster.keep("state", 4 * numbers)
    if kept.state is not None:
        state.copy_(torch.frombuffer(kept.state, dtype=torch.float32))  # torch warns that it is not for writing; nothing writes
        step = kept.step
elif os.path.exists(file):
    step, state = torch.load(file)
assert step == attempt and state[-1] == step, (attempt, step)

gradient = torch.ones(1)
dist.all_reduce(gradient)
state += gradient / dist.get_world_size()
step += 1
say("up")
if how == "memory":
    torch.frombuffer(kept.begin(), dtype=torch.float32).copy_(state)
    kept.commit(step)
else:
    torch.save((step, state), file + ".part")
    os.replace(file + ".part", file)
dist.barrier()
if attempt < last and rank == 0:
    say("down")
    os.kill(os.getpid(), signal.SIGKILL)
if attempt < last:
    time.sleep(1000)
'''

OURS = [MUSTER, "run"]
WAYS = [  # name, command, where the state is, restarts
    ("memory, warm", [*OURS, "--preload=torch"], "memory", 5),
    ("file, warm", [*OURS, "--preload=torch"], "file", 5),
    ("memory", OURS, "memory", 1),
    ("file", OURS, "file", 1),
    ("torchrun", [TORCHRUN, "--standalone"], "file", 1),
]


def run(command, directory):
    """Runs a launcher to its end. One that is late gets SIGTERM, so that it takes its workers along."""
    with subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=WORKER_ENV) as process:
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def restart_ms(command, how, restarts, megabytes):
    with tempfile.TemporaryDirectory() as directory:
        record = pathlib.Path(directory, "record")
        pathlib.Path(directory, "worker.py").write_text(WORKER)
        run([*command, f"--nproc-per-node={RANKS}", f"--max-restarts={restarts}", f"--log-dir={directory}/logs", "worker.py",
             str(record), str(restarts), str(megabytes << 18), how], directory)
        lines = [line.split() for line in record.read_text().splitlines()]
    up = [max(int(ns) for what, at, ns in lines if (what, at) == ("up", str(attempt))) for attempt in range(restarts + 1)]
    down = [int(ns) for what, _, ns in lines if what == "down"]
    return statistics.median((b - a) / 1e6 for a, b in zip(down, up[1:]))


def patiently(*arguments):
    """None if the job did not go on after the death of a worker, however often it was tried."""
    for _ in range(TRIES):
        try:
            return restart_ms(*arguments)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
            end = "hangs" if isinstance(e, subprocess.TimeoutExpired) else f"ended with {e.returncode}"
            print(f"again: {pathlib.Path(e.cmd[0]).name} {end}", file=sys.stderr)
    return None


def main():
    need_torchrun()
    head("kept state")
    for megabytes in (1, 256):
        ms = {name: patiently(command, how, restarts, megabytes) for name, command, how, restarts in WAYS}
        label = f"death to next step, {megabytes} MB a rank"
        row(f"{label}: warm / torchrun, file", ms["memory, warm"], ms["torchrun"], "ms", "<= 0.1")
        row(f"{label}: warm / warm, file", ms["memory, warm"], ms["file, warm"], "ms")
        row(f"{label}: cold / torchrun, file", ms["memory"], ms["torchrun"], "ms")
        row(f"{label}: cold / cold, file", ms["memory"], ms["file"], "ms")


if __name__ == "__main__":
    main()
