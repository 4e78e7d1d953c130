"""The c10d store: muster store and PyTorch's libuv server under the same load generator (bench/store_load.c).

PyTorch's server looks every client's address up; it gets a private /etc/nsswitch.conf that asks files alone, so that no name
server is measured. Runs alternate between the two servers; each figure is the median of its runs. CPU time is that of the
server process alone, from the scheduler.
"""

import contextlib
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile

from table import BUILD, MUSTER, VENV, head, row

LOAD = str(BUILD / "bench" / "store_load")
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.5"))
RUNS = 3
TRACE_SECONDS = 3  # long enough for the connects before the loop not to count

TORCH = """
import sys
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, is_master=True, use_libuv=True, wait_for_workers=False)
print("listening on 127.0.0.1:%d" % store.port, flush=True)
sys.stdin.read()
"""

PER_REQUEST = ("epoll_wait", "epoll_pwait", "recvfrom", "sendto", "read", "write", "writev", "recvmsg", "sendmsg",
               "timerfd_settime", "futex", "ioctl")


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        self.port = self.process.stdout.readline().rpartition(":")[2].strip()

    def stop(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()

    def cpu_ns(self):
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir())

    def rss(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024

    def load(self, *args):
        out = subprocess.run([LOAD, "127.0.0.1", self.port, *map(str, args)], check=True, capture_output=True, text=True)
        words = out.stdout.split()
        return dict(zip(words[::2], map(float, words[1::2])))


WITHOUT_DNS = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$0" /etc/nsswitch.conf && exec "$@"']


@contextlib.contextmanager
def servers():
    with tempfile.NamedTemporaryFile("w") as names:
        names.write("passwd: files\nhosts: files\n")
        names.flush()
        ours = Server([MUSTER, "store", "--listen", "127.0.0.1:0"])
        torch = Server([*WITHOUT_DNS, names.name, str(VENV / "bin" / "python"), "-c", TORCH])
        try:
            yield ours, torch
        finally:
            ours.stop()
            torch.stop()


def median_of(runs, key):
    return statistics.median(run[key] for run in runs)


def measure(server, *load):
    before = server.cpu_ns()
    result = server.load(*load)
    result["cpu_us"] = (server.cpu_ns() - before) / 1000 / result["ops"]
    result["rate"] = result["ops"] / result["seconds"]
    return result


def closed_loops(ours, torch):
    for operation, size in (("add", 64), ("set", 64), ("get", 64), ("set", 65536), ("get", 65536)):
        for connections in (1, 64, 1000):
            runs = [], []
            for _ in range(RUNS):
                for server, results in zip((ours, torch), runs):
                    results.append(measure(server, operation, connections, size, SECONDS))
            a, b = runs
            label = operation if operation == "add" else f"{operation} {'64 B' if size == 64 else '64 KiB'}"
            name = f"{label}, {connections} connections"
            row(f"{name}: CPU", median_of(a, "cpu_us"), median_of(b, "cpu_us"), "us/op", "<= 0.8")
            our_rate, its_rate = median_of(a, "rate"), median_of(b, "rate")
            row(f"{name}: rate", our_rate, its_rate, "op/s", "<= 0.83", ratio=its_rate / our_rate)
            row(f"{name}: p99", median_of(a, "p99_us"), median_of(b, "p99_us"), "us", "<= 1")


def system_calls(server, *load):
    """System calls of the server for one operation, counted by strace, but for those of accepting and leaving."""
    with tempfile.NamedTemporaryFile("r") as log:
        tracer = subprocess.Popen(["strace", "-c", "-f", "-o", log.name, "-p", str(server.process.pid)],
                                  stderr=subprocess.PIPE, text=True)
        tracer.stderr.readline()  # "attached"
        result = server.load(*load)
        tracer.send_signal(signal.SIGINT)
        tracer.communicate()
        lines = [line.split() for line in log.read().splitlines() if re.match(r"\s*\d+\.\d+ ", line)]
    calls = sum(int(line[3]) for line in lines if line[-1] in PER_REQUEST)
    return calls / result["ops"]


def main():
    head("store", "torch", " (ratio: below 1 is ahead)")
    with servers() as (ours, torch):
        for connections in (64, 1, 1000):
            row(f"system calls an add, {connections} connections", system_calls(ours, "add", connections, 64, TRACE_SECONDS),
                system_calls(torch, "add", connections, 64, TRACE_SECONDS), "calls", "<= 2.1 calls")
        closed_loops(ours, torch)
    connects = [], []
    for _ in range(RUNS):
        with servers() as pair:
            for server, results in zip(pair, connects):
                results.append(server.load("connect", 64))
    row("64 simultaneous connects", median_of(connects[0], "ms"), median_of(connects[1], "ms"), "ms", "< 10 ms")
    wakes, memory = ([], []), ([], [])
    with servers() as pair:
        for server, times in zip(pair, wakes):
            times.append(server.load("wake", 10000))
    row("one SET wakes 10,000 waiters", median_of(wakes[0], "ms"), median_of(wakes[1], "ms"), "ms", "")
    with servers() as pair:
        for server, sizes in zip(pair, memory):
            before = server.rss()
            holder = subprocess.Popen([LOAD, "127.0.0.1", server.port, "hold", "10000"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
            holder.stdout.readline()
            sizes.append((server.rss(), server.rss() - before))
            holder.communicate()
    row("10,000 connections: memory of the server", memory[0][0][0] / 1e6, memory[1][0][0] / 1e6, "MB", "< 50 MB")
    row("10,000 connections: what they add", memory[0][0][1] / 1e6, memory[1][0][1] / 1e6, "MB", "")


sys.exit(main())
