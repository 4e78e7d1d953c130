"""Every way in which a rank of a real PyTorch job (gloo, 4 ranks on 2 hosts of namespaces) holds the others up: does
`muster collectives`, or the report of a job that failed, name it?

usage: soak_collectives.py [--runs=20] [--seed=1] [--only=CASE,...]

Each case is run so many times, each time as an attempt of one long job, whose workers end themselves when the verdict is there; a
barrier that times out ends them by itself. A case is right if the first
finding has these culprits (or none) and these words. Where PyTorch's own analyser (torchfrtrace) has a verdict on the records
of the same moment, muster must have a finding about the same group with the same ranks. `slow` is a healthy job whose pauses are
longer than the patience: it must have no verdict. Prints a line per case and ends with 1 if one was wrong."""

import argparse
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))

import flight_dumps  # noqa: E402
import netns  # noqa: E402
from tree import MUSTER, clean_env  # noqa: E402
from waits import DEADLINE, wait_for  # noqa: E402

WORKER = r'''
import ctypes, datetime, os, random, sys, threading, time
import torch, torch.distributed as dist
rank, run = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
while not os.path.exists(f"case.{run}"):
    time.sleep(0.02)
case = open(f"case.{run}").read()

def stay():
    time.sleep(100000)

def deadlock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def uninterruptible():  # the parent of a vfork sleeps so until its child is gone
    libc = ctypes.CDLL(None)
    if libc.vfork() == 0:
        libc.pause()

class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            pass

def load():
    next(iter(torch.utils.data.DataLoader(Endless(), num_workers=1)))

def ready():
    from torch._C._distributed_c10d import _dump_fr_trace
    open(f"ready.{run}.{rank}.part", "w").write(str(os.getpid()))
    os.rename(f"ready.{run}.{rank}.part", f"ready.{run}.{rank}")
    def obey():
        while not os.path.exists(f"dump.{run}"):  # for PyTorch's analyser; muster reads its own
            if os.path.exists(f"end.{run}"):
                os._exit(3)
            time.sleep(0.05)
        open(f"trace.{run}.{rank}", "wb").write(_dump_fr_trace(True, False, False))
        open(f"dumped.{run}.{rank}", "w")
        while not os.path.exists(f"end.{run}"):
            time.sleep(0.05)
        os._exit(3)
    threading.Thread(target=obey, daemon=True).start()

patience, short = datetime.timedelta(seconds=3000), datetime.timedelta(seconds=3)
dist.init_process_group("gloo", timeout=patience)
subset = dist.new_group([0, 1, 3], group_desc="subset")
dp = dist.new_group([0, 1, 2], group_desc="dp")
tp = dist.new_group([2, 3], group_desc="tp")
tensor = torch.ones(6, 4)
pauses = random.Random(f"{os.environ['SEED']} {run}")
def slowly():
    time.sleep(pauses.uniform(1.2, 2) if rank == 2 else 0)
    dist.all_reduce(tensor)

for _ in range(3):
    dist.all_reduce(tensor)
for _ in range(4 if case == "slow" else 0):
    slowly()
ready()
if case in ("sleep", "stop"):
    stay() if rank == 2 else dist.all_reduce(tensor)
elif case == "deadlock":
    deadlock() if rank == 2 else dist.all_reduce(tensor)
elif case == "uninterruptible":
    uninterruptible() if rank == 2 else dist.all_reduce(tensor)
elif case == "loader":
    load() if rank == 2 else dist.all_reduce(tensor)
elif case == "order":
    for step in (0, 1) if rank != 2 else (1, 0):
        dist.broadcast(tensor, 0) if step else dist.all_reduce(tensor)
elif case == "size":
    dist.all_reduce(torch.ones(6, 3) if rank == 2 else tensor)
elif case == "type":  # as many bytes: gloo adds them up
    dist.all_reduce(tensor.int() if rank == 2 else tensor)
elif case == "abort":  # more bytes: gloo aborts a rank, and its record is lost
    dist.all_reduce(tensor.double() if rank == 2 else tensor)
elif case == "ahead":
    if rank == 2:
        dist.all_reduce(tensor, async_op=True)
        dist.all_reduce(tensor)
    stay()
elif case == "groups":  # 0 and 1 wait for 2 in dp, and 2 for 3 in tp
    stay() if rank == 3 else dist.all_reduce(tensor, group=tp if rank == 2 else dp)
elif case == "subset":
    stay() if rank in (2, 3) else dist.all_reduce(tensor, group=subset)
elif case == "timeout":
    dist.distributed_c10d._set_pg_timeout(short)
    stay() if rank == 2 else dist.barrier()
elif case == "recv":
    dist.recv(tensor, 2) if rank == 0 else stay()
elif case == "send":
    dist.send(torch.ones(4 << 20), 2) if rank == 0 else stay()
elif case == "irecv":  # 1 and 3 wait for 0 and 2 in a collective, and 0 for 2
    stay() if rank == 2 else dist.irecv(tensor, 2).wait() if rank == 0 else dist.all_reduce(tensor)
elif case == "monitored":
    stay() if rank == 2 else dist.monitored_barrier(timeout=patience)
elif case == "monitored_timeout":
    stay() if rank == 2 else dist.monitored_barrier(timeout=short)
elif case == "slow":
    while True:
        slowly()
stay()
'''

# case: culprits, words. Those in FAILS end by an exception, and the event hang.explained has the verdict.
CASES = {
    "sleep": ([2], "rank 2 on node2 never came; it is at worker.py:10 in stay() (in the system call clock_nanosleep); ranks 0, 1, 3 came"),
    "deadlock": ([2], "rank 2 on node2 never came; it is at worker.py:15 in deadlock()"),
    "uninterruptible": ([2], "rank 2 on node2 never came"),
    "stop": ([2], "rank 2 on node2 gives no record (it is stopped by a signal)"),
    "loader": ([2], "rank 2 on node2 never came"),
    "order": ([2], "rank 2 on node2 came with broadcast, the others with all_reduce"),
    "size": ([2], "rank 2 on node2 came with size [[6,3]], the others with [[6,4]]"),
    "type": ([2], "rank 2 on node2 came with type"),
    "abort": ([2], "rank 2 on node2 came with type"),
    "ahead": ([], "rank 2 on node2 came alone"),
    "groups": ([3], "of group 'tp' (2 ranks)"),
    "subset": ([3], "of group 'subset' (3 ranks)"),
    "timeout": ([2], "rank 2 on node2 never came"),
    "recv": ([2], "rank 2 on node2 never came"),
    "send": ([2], "rank 2 on node2 never came"),
    "irecv": ([2], "ranks 0, 2 never came"),
    "monitored": ([2], "monitored_barrier #1 of the default group (4 ranks) waits"),
    "monitored_timeout": ([2], "rank 2 on node2 never came"),
    "slow": ([], ""),
}
FAILS = ("timeout", "abort", "monitored_timeout")
# Those whose ranks can all write a record for the analyser. It has no verdict on what gloo does not record.
ANALYSED = ("sleep", "deadlock", "uninterruptible", "loader", "order", "size", "type", "ahead", "groups", "subset", "recv", "send", "irecv",
            "monitored", "slow")


class Soak:
    def __init__(self, lab, seed):
        self.lab, self.number = lab, -1
        self.found, self.analysed = [], 0
        (lab.directory / "worker.py").write_text(WORKER)
        self.agents = [host.start(
            MUSTER, "run", "--nnodes=2", "--nproc-per-node=2", "--rdzv-endpoint=node1:29400", f"--node-rank={i}", "--rdzv-id=soak",
            "--preload=torch,torch.distributed,torch.utils.data", "--flight-recorder", "--max-restarts=100000", "--shutdown-timeout=1",
            f"--events={host.name}.events", "worker.py", env=clean_env(SEED=str(seed))) for i, host in enumerate(self.lab.hosts)]

    def stop(self):
        for agent in self.agents:
            agent.signal(signal.SIGKILL)
        wait_for(lambda: not any(agent.running() for agent in self.agents), "the agents to end")
        wait_for(lambda: not any(host.pids() for host in self.lab.hosts), "the workers to end")

    def path(self, what, rank):
        return self.lab.directory / f"{what}.{self.number}.{rank}"

    def begin(self, case):
        """All ranks have come to where the case begins."""
        self.number += 1
        self.told = len(self.explained())
        (self.lab.directory / "case.part").write_text(case)
        (self.lab.directory / "case.part").rename(self.lab.directory / f"case.{self.number}")
        wait_for(lambda: all(self.path("ready", rank).exists() for rank in range(4)), f"the ranks of {case}", 4 * DEADLINE)
        if case == "stop":
            inside = int(self.path("ready", 2).read_text())
            self.lab.hosts[1].call("kill", "-STOP", str(inside))

    def end(self):
        (self.lab.directory / f"end.{self.number}").touch()

    def explained(self):
        file = self.lab.directory / "node1.events"
        events = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [event["detail"] for event in events if event["event"] == "hang.explained"]

    def ask(self):
        done = subprocess.run(self.lab.hosts[0].space.command(
            "env", "XDG_RUNTIME_DIR=/run/here", MUSTER, "collectives", "--patience=1", "--json", "soak"), capture_output=True, text=True,
            env=clean_env(), timeout=DEADLINE)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def verdict(self, case):
        """(culprits, text)"""
        if case in FAILS:
            text = wait_for(lambda: self.explained()[self.told:], "the job to explain the failure", 4 * DEADLINE)[0]
            return None, text
        time.sleep(0 if case == "slow" else 1)  # the patience: before it nobody is named
        if case == "slow":
            seen = []
            for _ in range(4):
                answer = self.ask()
                if not answer:
                    return None, "no answer"
                seen += [(f["culprits"], answer["text"]) for f in answer["findings"] if f["culprits"]]
            return seen[0] if seen else ([], "")
        deadline = time.monotonic() + 30
        answer = None
        while time.monotonic() < deadline:
            answer = self.ask()
            found = answer["findings"] if answer else []
            if found and not any(f["early"] for f in found):
                self.found = found
                return found[0]["culprits"], answer["text"]
            if case == "irecv" and found and found[0]["culprits"]:  # of an irecv nobody knows whether it is waited for
                self.found = found
                return found[0]["culprits"], answer["text"]
        return None, answer["text"] if answer else "no answer"

    def disagrees(self, case):
        """What torchfrtrace says about the records of this moment and muster does not; "" if they agree, or it has no verdict."""
        folder = self.lab.directory / f"traces.{self.number}"
        folder.mkdir()
        (self.lab.directory / f"dump.{self.number}").touch()
        wait_for(lambda: all(self.path("dumped", rank).exists() for rank in range(4)), "the dumps", DEADLINE)
        for rank in range(4):
            flight_dumps.save(pickle.loads(self.path("trace", rank).read_bytes()), rank, folder)
        theirs = flight_dumps.verdicts(folder)
        self.analysed += bool(theirs)
        return "" if case == "slow" else flight_dumps.differences(theirs, self.found)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the pauses of the slow job")
    parser.add_argument("--only", default=",".join(CASES))
    options = parser.parse_args()
    failed = False
    with netns.Lab(2) as lab:
        soak = Soak(lab, options.seed)
        for case in options.only.split(","):
            culprits, words = CASES[case]
            right, apart, soak.analysed = 0, 0, 0
            for run in range(options.runs):
                soak.begin(case)
                named, text = soak.verdict(case)
                good = words in text and (named == culprits or case in FAILS)
                right += good
                if not good:
                    print(f"  {case}, run {run}: culprits {named}: {text.strip()}", flush=True)
                differs = soak.disagrees(case) if good and case in ANALYSED else ""
                apart += bool(differs)
                if differs:
                    print(f"  {case}, run {run}: torchfrtrace says {differs}: {text.strip()}", flush=True)
                soak.end()
            failed |= right < options.runs or apart > 0
            print(f"{case:<17} {right} of {options.runs} right; torchfrtrace had {soak.analysed} verdicts, {apart} others; "
                  f"load {os.getloadavg()[0]:.0f}", flush=True)
        soak.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main())
