"""Training that keeps its state in memory, with workers killed at random moments (kill -9).

usage: soak_keep.py [--kills=100] [--seed=1] [--ranks=2] [--steps=20000]

Trains once undisturbed, then with a random rank killed again and again, at any moment of a round: while it starts, while it
computes, while it commits. The training writes no file before its end, so each restart must go on from memory. The steps
from which rounds go on must never fall, and the loss at the end must be that of the undisturbed training to the last bit."""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))

from tree import MUSTER, ROOT, python_env  # noqa: E402

LONGEST_S = 1.0  # from the start of a round's workers, or of their training, to a kill
PATIENCE_S = 300  # for a round to form and start


class Events:
    """The events of a job, as they come."""

    def __init__(self, path):
        self.path, self.at, self.rest = path, 0, b""

    def more(self):
        with open(self.path, "rb") as file:
            file.seek(self.at)
            data = file.read()
        self.at += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


def train(directory, options, ranks, hold, *more, **how):
    return subprocess.Popen(
        [MUSTER, "run", f"--nproc-per-node={ranks}", "--preload=torch", *more, str(ROOT / "examples/ddp/train.py"), "--keep",
         f"--checkpoint={directory}/model.pt", f"--every={options.steps + 1}", f"--steps={options.steps}", f"--hold={hold}"],
        env=python_env(OMP_NUM_THREADS=1), cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **how)


class Training:
    """A started one, and the lines that it has printed."""

    def __init__(self, process):
        self.process, self.lines = process, []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def begins(self, pid):
        return any(f" pid {pid} begins" in line for line in self.lines)

    def loss(self):
        self.reader.join(PATIENCE_S)
        code = self.process.wait(PATIENCE_S)
        assert code == 0, f"ended with {code}"
        return re.search(r"final loss (\S+) after (\d+) restarts", "".join(self.lines)).groups()


class Killer:
    def __init__(self, training, events, ranks, rng):
        self.training, self.events, self.ranks, self.rng = training, events, ranks, rng
        self.steps, self.pids = [], {}  # from which rounds went on; workers of the round that runs

    def next_round(self):
        """Waits until all workers of a new round have started."""
        end = time.monotonic() + PATIENCE_S
        while len(self.pids) < self.ranks:
            assert self.training.process.poll() is None and time.monotonic() < end, f"no round of {self.ranks} after {len(self.steps)} rounds"
            for event in self.events.more():
                if event["event"] == "round.formed":
                    self.steps.append(event.get("kept_step", 0))
                    self.pids = {}
                elif event["event"] == "worker.started":
                    self.pids[event["rank"]] = event["pid"]
            time.sleep(0.005)

    def wait_for_training(self):
        end = time.monotonic() + PATIENCE_S
        while not all(map(self.training.begins, self.pids.values())):
            assert time.monotonic() < end, "no training"
            time.sleep(0.005)

    def kill(self):
        """Three of four when they train, the others perhaps before."""
        self.next_round()
        if self.rng.random() < 0.75:
            self.wait_for_training()
        time.sleep(self.rng.uniform(0, LONGEST_S))
        os.kill(self.pids[self.rng.randrange(self.ranks)], signal.SIGKILL)
        self.pids = {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        undisturbed, disturbed = (pathlib.Path(place, name) for name in ("undisturbed", "disturbed"))
        undisturbed.mkdir()
        disturbed.mkdir()
        wanted, _ = Training(train(undisturbed, options, options.ranks, "/dev/null")).loss()
        events, go = disturbed / "events", disturbed / "go"
        events.touch()
        training = Training(train(disturbed, options, options.ranks, go, f"--max-restarts={options.kills}", f"--events={events}",
                                  stderr=subprocess.DEVNULL))
        killer = Killer(training, Events(events), options.ranks, random.Random(options.seed))
        try:
            for _ in range(options.kills):
                killer.kill()
            killer.next_round()
            go.touch()
            loss, restarts = training.loss()
        finally:
            training.process.kill()
    resumed = sum(after > before for before, after in zip(killer.steps, killer.steps[1:]))
    print(f"{restarts} restarts of {options.kills} kills, {resumed} of which had got further; rounds began at {killer.steps}")
    assert killer.steps == sorted(killer.steps), "a round went back"
    assert int(restarts) == options.kills
    assert loss == wanted, f"loss {loss}, undisturbed {wanted}"
    print(f"loss {loss}, as undisturbed")


if __name__ == "__main__":
    main()
