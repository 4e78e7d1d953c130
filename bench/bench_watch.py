#!/usr/bin/env python3
"""The watchdog beside torch's FileTimerServer at the agent's setting (max_interval 0.1): lateness of
the kill, requests from real clients, cost when idle. Prints ours / torch / ratio / aim."""

import os
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from table import BUILD, MUSTER, WORKER_ENV, head, row

DRIVER = os.path.join(BUILD, "helpers", "watch_driver")
WORKER = os.path.join(BUILD, "bench", "watch_late")
PYTHON = sys.executable
TRIALS = 20

# torch's server in a process of its own, as it kills its own process too.
TORCH_SERVER = """
import sys, time, logging
logging.disable(logging.CRITICAL)
from torch.distributed.elastic.timer import FileTimerServer
server = FileTimerServer(sys.argv[1], "bench", max_interval=0.1, daemon=True)
server.start()
print("ready", flush=True)
for line in sys.stdin:
    print(server._request_count if hasattr(server, "_request_count") else -1, time.process_time(), flush=True)
"""

CLIENT = """
import logging, sys, time
logging.disable(logging.CRITICAL)
from torch.distributed.elastic.timer import FileTimerClient
client, good, refused = FileTimerClient(sys.argv[1]), 0, 0
end = time.monotonic() + 3
while time.monotonic() < end:
    for call in (lambda: client.acquire("step", time.time() + 60), lambda: client.release("step")):
        try:
            call(); good += 1
        except BlockingIOError:
            refused += 1
print("client", good, refused, flush=True)
"""


def line_of(process, start):
    while True:
        assert select.select([process.stdout], [], [], 60)[0], f"no '{start}'"
        text = b""
        while not text.endswith(b"\n"):
            byte = os.read(process.stdout.fileno(), 1)
            assert byte, f"ended before '{start}'"
            text += byte
        if text.decode().startswith(start):
            return text.decode()


def driver(directory, workers, *command):
    fifo, sock = os.path.join(directory, "fifo"), os.path.join(directory, "socket")
    process = subprocess.Popen([DRIVER, fifo, sock, str(workers), *command], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, bufsize=0)
    return process, fifo


def stats(process):
    process.stdin.write(b"?\n")
    return [int(x) for x in line_of(process, "stats").split()[1:]]


def time_of_death(process):
    """How long after its deadline the worker that `process` shows was dead, in ms, by the worker's pidfd."""
    _, pid, deadline = line_of(process, "worker").split()
    pidfd = os.pidfd_open(int(pid))
    assert select.select([pidfd], [], [], 60)[0]
    late = time.time() - float(deadline)
    os.close(pidfd)
    return late * 1e3


def seconds():
    return f"{0.5 + random.random() * 0.2:.4f}"


def lateness_ours():
    """All of muster: the FIFO, the look at /proc, the group's policy, the warden."""
    late = []
    env = dict(os.environ, TORCHELASTIC_ENABLE_FILE_TIMER="1")
    for _ in range(TRIALS):
        process = subprocess.Popen([MUSTER, "run", "sh", "-c",
                                    f'exec "{WORKER}" "$TORCHELASTIC_TIMER_FILE" {seconds()}'],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, bufsize=0)
        late.append(time_of_death(process))
        process.wait(timeout=60)
    return late


def lateness_torch():
    """Its server alone."""
    late = []
    for _ in range(TRIALS):
        with tempfile.TemporaryDirectory(prefix="m") as d:
            fifo = os.path.join(d, "fifo")
            server = subprocess.Popen([PYTHON, "-c", TORCH_SERVER, fifo], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
            line_of(server, "ready")
            worker = subprocess.Popen([WORKER, fifo, seconds()], stdout=subprocess.PIPE, bufsize=0)
            late.append(time_of_death(worker))
            worker.wait(timeout=60)
            server.wait(timeout=60)
    return late


def python_clients(count, torch):
    with tempfile.TemporaryDirectory(prefix="m") as d:
        fifo = os.path.join(d, "fifo")
        if torch:
            server = subprocess.Popen([PYTHON, "-c", TORCH_SERVER, fifo], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
            line_of(server, "ready")
            clients = [subprocess.Popen([PYTHON, "-c", CLIENT, fifo], stdout=subprocess.PIPE, bufsize=0)
                       for _ in range(count)]
            results = [line_of(c, "client").split()[1:] for c in clients]
            for c in clients:
                c.wait()
            server.kill()
            server.wait()
            cpu_us = None
        else:
            server, _ = driver(d, count, PYTHON, "-c", CLIENT, fifo)
            results = [line_of(server, "client").split()[1:] for _ in range(count)]
            _, requests, _, _, cpu_ns = stats(server)
            cpu_us = cpu_ns / 1e3 / max(requests, 1)
            server.stdin.close()
            server.wait()
        good, refused = (sum(int(r[i]) for r in results) for i in (0, 1))
        return good / 3, refused / max(good + refused, 1), cpu_us


def c_client():
    with tempfile.TemporaryDirectory(prefix="m") as d:
        process, _ = driver(d, 1, os.path.join(BUILD, "bench", "watch_client"))
        _, *figures = line_of(process, "client").split()
        process.stdin.close()
        process.wait()
        return map(float, figures)


def python_step():
    """The least of many: what a call costs while nothing else runs."""
    code = ("import timeit, muster; muster.step(0); "
            "print(min(timeit.repeat('step(7)', 'from muster import step', number=2000, repeat=300)) / 2000 * 1e9)")
    command = [MUSTER, "run", "--no-python", PYTHON, "-c", code]
    return float(subprocess.run(command, env=WORKER_ENV, check=True, capture_output=True, text=True).stdout)


def idle_switches():
    with tempfile.TemporaryDirectory(prefix="m") as d:
        process, fifo = driver(d, 1, "sleep", "100")
        pid = int(subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True,
                                 text=True).stdout.split()[0])
        with open(fifo, "w") as f:
            for i in range(1000):
                f.write('{"pid": %d, "scope_id": "s%d", "expiration_time": 1e12, "signal": 9}\n' % (pid, i))
        while stats(process)[0] < 1000:
            pass
        time.sleep(0.2)
        count = lambda: sum(int(l.split()[1]) for l in open(f"/proc/{process.pid}/status") if "ctxt_switches" in l)
        before = count()
        time.sleep(5)
        switches = count() - before
        os.kill(pid, signal.SIGKILL)
        process.wait()
        return switches / 5


def snapshot(threads):
    """The median, in ms, of the look at /proc before an expired worker is signalled."""
    out = subprocess.run([os.path.join(BUILD, "bench", "watch_snapshot"), str(threads)], check=True, capture_output=True,
                         text=True).stdout
    return float(out.split()[1]) / 1e3


def main():
    head("watchdog", "torch")
    ours, torch = lateness_ours(), lateness_torch()
    row("lateness of the kill, median", statistics.median(ours), statistics.median(torch), "ms", "<= 1")
    row("lateness of the kill, max", max(ours), max(torch), "ms", "<= 10")
    for threads in 1, 64, 1000:
        row(f"look at /proc, {threads} thread(s), median", snapshot(threads), None, "ms", "<= 2")
    rate, beat, step = c_client()
    row("requests of a C client over the socket", rate, None, "1/s", ">= 100000")
    row("heartbeat", beat, None, "ns", "<= 5")
    row("step", step, None, "ns", "<= 50")
    row("step from Python", python_step(), None, "ns", "<= 300")
    for count in 1, 4:
        (o_rate, o_refused, cpu), (t_rate, t_refused, _) = python_clients(count, False), python_clients(count, True)
        row(f"requests of {count} real Python client(s)", o_rate, t_rate, "1/s", ratio=t_rate / o_rate)
        row(f"  refused, {count} client(s)", o_refused * 100, t_refused * 100, "%", "0")
        row(f"  our CPU a request, {count} client(s)", cpu, None, "us", "<= 3")
    row("wake-ups, idle with 1000 timers", idle_switches(), None, "1/s", "0")


main()
