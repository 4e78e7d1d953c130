"""The training example, left alone and with workers killed: for tests with and without preload."""

import os
import random
import re
import signal
import subprocess
import threading

from tree import ROOT, clean_env

SCRIPT = ROOT / "examples/ddp/train.py"
RANKS = 2
DEADLINE = 900  # seconds for a whole training: torch is imported again at each restart
LINE = re.compile(r"rank (\d+) pid (\d+) (?:step \d+|holds)")


def train(program, directory, *options, kills=0):
    """Trains to the end, killing a random worker `kills` times on the way. Gives the final loss as text
    and the restarts that were needed."""
    directory.mkdir()
    hold = directory / "go"
    command = [str(program), "run", f"--nproc-per-node={RANKS}", f"--max-restarts={kills}", *options, str(SCRIPT),
               "--checkpoint", str(directory / "checkpoint.pt"), "--hold", str(hold)]
    with open(directory / "stderr", "w+") as errors, \
         subprocess.Popen(command, env=clean_env(), cwd=directory, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=errors) as process:
        patience = threading.Timer(DEADLINE, process.kill)
        patience.start()
        try:
            gone = set()
            for _ in range(kills):
                gone |= kill_one(process, gone)
            hold.touch()
            out, _ = process.communicate()
        finally:
            patience.cancel()
            process.kill()
    assert process.returncode == 0, (directory / "stderr").read_text()
    return re.search(r"final loss (\S+) after (\d+) restarts", out).groups()


def kill_one(process, gone):
    """Reads what the workers print until all have, and at a random line after that, or when they wait for
    us, kills one. Gives the pids of the group that ends with it; `gone` are those of earlier ones, of whom
    lines may still be on their way."""
    pids, patience = {}, random.randint(0, 8)
    for line in process.stdout:
        # Two that print at once may share a line: an unbuffered print writes text and newline apart.
        for rank, pid in LINE.findall(line):
            if int(pid) not in gone:
                pids[int(rank)] = int(pid)
        if len(pids) == RANKS:
            patience -= 1
        if len(pids) == RANKS and (patience < 0 or "holds" in line):
            break
    else:
        raise AssertionError("the training ended before its time")
    os.kill(random.choice(list(pids.values())), signal.SIGKILL)
    return set(pids.values())
