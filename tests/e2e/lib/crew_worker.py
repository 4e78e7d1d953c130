"""A worker that reports to the test and does what it says (crew.py).

usage: crew_worker.py DESK [--torch] [--tough] [--keep]

--torch   one all_reduce after the other through gloo, each reported, until rank 0 is told to finish
--tough   SIGTERM does not end it
--keep    says which step it has kept from before, and commits the next ones when told so"""

import json
import os
import select
import signal
import socket
import sys

NAMES = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID"]


class Desk:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.orders = self.socket.makefile("r")

    def say(self, **what):
        self.socket.sendall(json.dumps(what).encode() + b"\n")

    def obey(self):
        """The next order, as words; ends the process if that is what it says, or if the test is gone."""
        words = self.orders.readline().split() or ["exit", "99"]
        if words[0] == "exit":
            os._exit(int(words[1]))
        return words

    def asked(self):
        return bool(select.select([self.socket], [], [], 0)[0])


def train(desk):
    """Adds up all ranks again and again. The sum tells all ranks whether rank 0 wants to finish."""
    import datetime

    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    step, finish = 0, 0
    while True:
        x = torch.tensor([dist.get_rank() + 1, finish])
        dist.all_reduce(x)
        step += 1
        desk.say(step=step, sum=int(x[0]))
        if x[1] > 0:
            break
        if select.select([desk.socket], [], [], 0.05)[0] and desk.obey() == ["finish"]:
            finish = 1
    dist.destroy_process_group()


def keep(desk):
    import muster

    kept = muster.keep("step", 8)
    assert kept.step is None or int.from_bytes(kept.state, "little") == kept.step
    desk.say(kept=kept.step)
    while True:
        words = desk.obey()
        if words == ["finish"]:
            break
        kept.save(int(words[1]), int(words[1]).to_bytes(8, "little"))
        desk.say(committed=int(words[1]))


def main():
    if "--tough" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    desk = Desk(sys.argv[1])
    desk.say(host=socket.gethostname(), **{name: os.environ.get(name, "") for name in NAMES})
    if "--torch" in sys.argv:
        train(desk)
    elif "--keep" in sys.argv:
        keep(desk)
    else:
        while desk.obey() != ["finish"]:
            pass


if __name__ == "__main__":
    main()
