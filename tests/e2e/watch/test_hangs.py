"""What counts as a hang: programs that are healthy although they look silent, and hangs with the rank that is to blame.

All healthy programs run side by side, each for several times its --hang-timeout."""

import subprocess
import textwrap

import pytest

from tree import MUSTER, python_env
from waits import DEADLINE

TIMEOUT = 4  # s; what healthy programs do for so long must leave a trace in /proc on a busy machine, too

BEGIN = f"""
TIMEOUT = {TIMEOUT}
""" + """
import ctypes, os, signal, subprocess, sys, threading, time
import muster
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store, met = muster.Store(), 0

def meet():
    global met
    met += 1
    store.barrier(f"meeting {met}", world)

def for_long(do, pause=0.0, times=2.5):
    end = time.monotonic() + times * TIMEOUT
    while time.monotonic() < end:
        do()
        time.sleep(pause)

def compute():
    sum(range(10000))

def write():
    with open(f"checkpoint.{rank}", "wb") as file:
        file.write(bytes(1 << 20))

def say():
    print("step", flush=True)

def steps():
    for number in range(5):
        muster.step(number)
        meet()

def in_child(source):
    child = subprocess.Popen([sys.executable, "-c", source])
    child.wait()

def debug():  # what a debugger does that is attached for long
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, for Yama
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        held = libc.ptrace(0x4206, parent, 0, 0) == 0 and libc.ptrace(0x4207, parent, 0, 0) == 0  # SEIZE, INTERRUPT
        time.sleep(2.5 * TIMEOUT)
        os._exit(0 if held else 1)
    os.waitpid(child, 0)
"""

# name: what each rank does. All end well.
HEALTHY = {
    "only rank 0 prints": "[(time.sleep(0.1), meet(), rank == 0 and say()) for _ in range(80)]",
    "nobody prints": "[(time.sleep(0.1), meet()) for _ in range(80)]",
    "nobody prints, and steps are long": "[(time.sleep(0.6), meet()) for _ in range(14)]",
    "all compile at the start": "for_long(compute); meet(); say()",
    "rank 0 compiles, the others wait for it": "rank == 0 and for_long(compute); meet(); say()",
    "a child process compiles": "rank == 0 and in_child('import time\\nend = time.monotonic() + 10\\nwhile time.monotonic() < end: pass'); meet()",
    "short-lived children compile": "rank == 0 and for_long(lambda: in_child('sum(range(10**6))')); meet()",
    "data is loaded at the start": "for_long(lambda: open('/dev/zero', 'rb').read(1 << 20), 0.1); meet()",
    "rank 0 validates and prints, the others wait": "steps(); rank == 0 and for_long(say, 0.5); meet(); muster.step(9)",
    "rank 0 validates in silence": "steps(); rank == 0 and for_long(compute); meet(); muster.step(9)",
    "rank 0 writes a checkpoint": "steps(); rank == 0 and for_long(write, 0.1); meet(); muster.step(9)",
    "a thread of rank 0 writes a checkpoint": "steps()\nif rank == 0:\n    thread = threading.Thread(target=for_long, args=(write, 0.1))\n    thread.start()\n    thread.join()\nmeet()",
    "a checkpoint without steps": "say(); meet(); rank == 0 and for_long(write, 0.1); meet()",
    "the data loader stalls now and then": "[(time.sleep(TIMEOUT * 0.6), meet(), rank == 0 and say()) for _ in range(5)]",
    "the data loader's processes work": "rank == 1 and in_child('import hashlib, time\\nend = time.monotonic() + 10\\nwhile time.monotonic() < end: hashlib.sha256(bytes(100000))'); meet()",
    "heartbeats alone": "for_long(muster.heartbeat, 0.2)",
    "heartbeats of rank 0 alone": "rank == 0 and for_long(muster.heartbeat, 0.2); meet()",
    "rare steps": "[(time.sleep(TIMEOUT * 0.6), meet(), muster.step(number)) for number in range(5)]",
    "a debugger is attached": "say(); rank == 1 and debug(); meet()",
    "a rank is stopped for a while": "meet()\nif rank == 1:\n    subprocess.Popen(['sh', '-c', f'sleep 2; kill -CONT {os.getpid()}'])\n    os.kill(os.getpid(), signal.SIGSTOP)\nmeet(); [(time.sleep(0.1), meet()) for _ in range(50)]",
    "a rank is done early": "[time.sleep(0.1) or say() for _ in range(80)] if rank else None",
    "a file is followed": "rank == 0 and [(open('data', 'ab').write(b'x' * 100000), time.sleep(0.1)) for _ in range(100)]; meet()",
}


@pytest.fixture
def launch(start, tmp_path):
    """launch(name, body) starts three ranks that are watched; returns the process."""

    def begin(name, body, *options, ranks=3):
        script = tmp_path / f"{name}.py"
        script.write_text(BEGIN + textwrap.dedent(body))
        return start("run", f"--nproc-per-node={ranks}", f"--hang-timeout={TIMEOUT}", *options, script, env=python_env(),
                     stdout=subprocess.DEVNULL, stderr=open(tmp_path / f"{name}.err", "w"))

    return begin


def test_healthy_programs_are_no_hangs(launch, tmp_path):
    jobs = {name: launch(f"healthy{number}", body, "--hang-action=stop") for number, (name, body) in enumerate(HEALTHY.items())}
    wrong = {}
    for number, (name, job) in enumerate(jobs.items()):
        code, text = job.wait(DEADLINE), (tmp_path / f"healthy{number}.err").read_text()
        if code or "hang" in text:
            wrong[name] = (code, text[-2000:])
    assert not wrong


# name: what the ranks do, who is to blame, and words of the report
HANGS = {
    "steps cease while rank 0 prints": ("meet()\nif rank == 0:\n    while True: time.sleep(0.1); say()\nmuster.step(rank)\n"
                                        "while rank == 2: time.sleep(0.1); muster.step(3)\ntime.sleep(1000)",
                                        1, "rank 1 has sent no heartbeat or step, after 1 of them"),
    "one is stopped": ("say(); meet()\nif rank == 1: os.kill(os.getpid(), signal.SIGSTOP)\nmeet()", 1, "(stopped by a signal)"),
    "one sleeps, the others wait": ("say(); meet()\nif rank == 2: time.sleep(1000)\nmeet()", 2, "(in the system call clock_nanosleep), the others: "),
    "one waits for a lock": ("say(); meet()\nif rank == 2:\n    lock = threading.Lock()\n    lock.acquire()\n    lock.acquire()\nmeet()", 2,
                             "(waiting for a lock), the others: "),
    "the others are done": ("say()\nif rank == 1: time.sleep(1000)", 1, "none works"),
    "nobody shows a sign": ("time.sleep(1000)", None, "no rank has printed, sent a heartbeat or step, and none works"),
}


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_is_found_and_the_rank_that_is_to_blame_is_the_first_cause(launch, tmp_path, name):
    body, culprit, words = HANGS[name]
    job = launch("hang", body, "--hang-action=stop", f"--log-dir={tmp_path}/logs")
    assert job.wait(DEADLINE) == 137
    text = (tmp_path / "hang.err").read_text()
    headline = text[text.index("muster: job failed"):].splitlines()[0]
    assert words in text and (culprit is None or f"rank {culprit} of 3" in headline), text
    assert "it counts as hung because" in text[text.index("muster: job failed"):], text


def test_ranks_of_another_host_keep_the_job_alive_and_are_named_when_they_hang(make_lab, place):
    """Only rank 0, on the first host, prints; then rank 3, on the second, stops, and all wait for it."""
    lab = make_lab(2)
    script = place("worker.py", BEGIN + textwrap.dedent("""
        def stop(): time.sleep(1000)
        for _ in range(80):
            time.sleep(0.1)
            if rank == 0: say()
        meet()
        if rank == 3: stop()
        meet()
        """))
    agents = [host.start(MUSTER, "run", "--nnodes=2", "--nproc-per-node=2", f"--node-rank={number}", f"--rdzv-endpoint={lab.hosts[0].name}:29400",
                         f"--hang-timeout={TIMEOUT}", "--hang-action=stop", f"--log-dir={host.name}.logs", script, env=python_env())
              for number, host in enumerate(lab.hosts)]
    codes = [agent.wait(DEADLINE) for agent in agents]
    texts = [agent.text() for agent in agents]
    assert codes == [137, 137], "\n".join(texts)
    for text in texts:
        report = text[text.index("muster: job failed"):]
        assert "rank 3 of 4" in report.splitlines()[0] and "on node2" in report, report
        assert text.count("hangs:") <= 1


TORCH = """
import os, sys, time
import torch, torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
tensor = torch.ones(4)
def for_long(do):
    end = time.monotonic() + 12
    while time.monotonic() < end: do()
def train(times, pause=0.1):
    for number in range(times):
        time.sleep(pause)
        dist.all_reduce(tensor)
        if rank == 0 and "prints" in sys.argv: print("step", number, flush=True)
train(30)
if "validates" in sys.argv:
    if rank == 0: for_long(lambda: torch.rand(200, 200) @ torch.rand(200, 200))
    dist.barrier()
if "saves" in sys.argv:
    if rank == 0: for_long(lambda: (torch.save(torch.ones(1 << 16), "checkpoint"), time.sleep(0.05)))
    dist.barrier()
train(60)
dist.destroy_process_group()
os._exit(0)  # a thread of gloo may end the interpreter with SIGABRT
"""


def test_healthy_training_is_no_hang(start, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TORCH)
    jobs = {}
    for kind in ("prints", "silent", "validates", "saves"):
        jobs[kind] = start("run", "--nproc-per-node=2", "--flight-recorder", f"--hang-timeout={TIMEOUT}", "--hang-action=stop",
                           "--preload=torch,torch.distributed", script, kind, env=python_env(OMP_NUM_THREADS=1), stdout=subprocess.DEVNULL,
                           stderr=open(tmp_path / f"{kind}.err", "w"))
    wrong = {kind: (job.wait(DEADLINE), (tmp_path / f"{kind}.err").read_text()) for kind, job in jobs.items()}
    assert not {kind: text for kind, (code, text) in wrong.items() if code or "hang" in text}
