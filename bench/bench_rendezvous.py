"""Rendezvous: agents by the thousand against the real `muster coordinator` over loopback, with authentication, and torchrun's
own rendezvous (real handlers, one process an agent, one libuv TCPStore) beside it.

All agents of ours are real agent cores with a connection each, in one process (bench/rendezvous_load.c). For torchrun `all` is
the time from the start signal to the last agent's return from next_rendezvous(); ours is from the first connect to the last FORMED,
greeting included. CPU and memory are the coordinator's. The aim is about the last JOIN to the last FORMED.
"""

import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile
import time

from table import BUILD, MUSTER, VENV, head, row

LOAD = str(BUILD / "bench" / "rendezvous_load")
SIZES = [int(n) for n in os.environ.get("BENCH_AGENTS", "64 128 1000 10000").split()]
TORCH_SECONDS = {64: 100, 128: 150}  # patience with torchrun; importing torch is part of it
RUNS = 3
TOKEN = "a token that only this bench knows"
WITHOUT_DNS = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$0" /etc/nsswitch.conf && exec "$@"']

TORCH = """
import os, signal, sys, time
from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

count = int(sys.argv[1])
server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
go_read, go_write = os.pipe()
done_read, done_write = os.pipe()
pids = []
for i in range(count):
    pid = os.fork()
    if pid == 0:
        os.read(go_read, 1)
        params = RendezvousParameters("c10d", f"127.0.0.1:{server.port}", "bench", count, count, is_host="0")
        backend, store = create_backend(params)
        create_handler(store, backend, params).next_rendezvous()
        os.write(done_write, b"x")
        time.sleep(600)
        os._exit(0)
    pids.append(pid)
start = time.monotonic()
os.write(go_write, b"x" * count)
seen = 0
while seen < count:
    seen += len(os.read(done_read, count))
print(time.monotonic() - start, flush=True)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
"""


class Coordinator:
    def __init__(self):
        env = dict(os.environ, MUSTER_TOKEN=TOKEN, LOGLEVEL="ERROR")
        self.process = subprocess.Popen([MUSTER, "coordinator", "--listen", "127.0.0.1:0", "--rdzv-id", "bench"], env=env,
                                        stdout=subprocess.PIPE, text=True)
        self.port = self.process.stdout.readline().rpartition(":")[2].strip()

    def rss(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024

    def cpu_us(self):
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1000


def pairs(line):
    words = line.split()
    return dict(zip(words[::2], map(float, words[1::2])))


def measure(count):
    """One job of `count` agents from the first connect to its end."""
    coordinator = Coordinator()
    before = coordinator.rss(), coordinator.cpu_us()
    load = subprocess.Popen([LOAD, "127.0.0.1", coordinator.port, str(count), "bench"], env=dict(os.environ, MUSTER_TOKEN=TOKEN),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        result = pairs(load.stdout.readline())
        result["rss"] = (coordinator.rss() - before[0]) / count
        result["cpu_us"] = (coordinator.cpu_us() - before[1]) / count
        result |= ask(coordinator, count)
        idle = coordinator.cpu_us()
        load.stdin.write("\n")
        load.stdin.flush()
        result |= pairs(load.stdout.readline())
        result["again_cpu_us"] = (coordinator.cpu_us() - idle) / count
        load.stdin.write("\n")
        load.stdin.close()
        if load.wait(60) or coordinator.process.wait(60):
            raise SystemExit(f"bench_rendezvous: the job of {count} agents did not end well")
    finally:
        load.kill()
        coordinator.process.kill()
    return result


def ask(coordinator, count):
    """`muster status` of all agents, at the coordinator, by a command outside the job."""
    rss, cpu_us, began = coordinator.rss(), coordinator.cpu_us(), time.monotonic()
    done = subprocess.run([MUSTER, "status", "--json", f"--rdzv-endpoint=127.0.0.1:{coordinator.port}", "--timeout=2m", "bench"],
                          env=dict(os.environ, MUSTER_TOKEN=TOKEN), stdout=subprocess.PIPE, text=True)
    seconds = time.monotonic() - began
    if done.returncode or done.stdout.count('"local_rank": 7') != count:
        raise SystemExit(f"bench_rendezvous: not all of {count} agents told their state")
    return {"ask_ms": seconds * 1000, "ask_cpu_us": (coordinator.cpu_us() - cpu_us) / count, "ask_rss": coordinator.rss() - rss,
            "ask_bytes": len(done.stdout)}


def torchrun_seconds(count):
    """None if it did not come together in time."""
    with tempfile.NamedTemporaryFile("w") as names, tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        names.write("passwd: files\nhosts: files\n")
        names.flush()
        script.write(TORCH)  # from a file: its logging looks for the source of every caller, and is slower if there is none
        script.flush()
        process = subprocess.Popen([*WITHOUT_DNS, names.name, str(VENV / "bin" / "python"), script.name, str(count)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            out, _ = process.communicate(timeout=TORCH_SECONDS[count])
            return float(out) if out.strip() else None
        except subprocess.TimeoutExpired:
            return None
        finally:
            # The agents of a rendezvous that did not come together: their process group is this bench's own.
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            process.wait()


def report(count, runs):
    def median(key):
        return statistics.median(run[key] for run in runs)

    name = f"{count:,} agents"
    row(f"{name}: last JOIN to last FORMED", f"{median('form_ms'):.1f}", unit="ms", aim="<= 500" if count == 10000 else "")
    if count in TORCH_SECONDS:
        torch = torchrun_seconds(count)
        peer = f"{torch * 1000:.0f}" if torch else f"> {TORCH_SECONDS[count]} s"
        ratio = median("all_ms") / torch / 1000 if torch else None
    else:
        peer, ratio = "-", None
    row(f"{name}: from nothing to the last FORMED", f"{median('all_ms'):.1f}", peer, "ms", "< 1" if ratio else "", ratio)
    row(f"{name}: a worker fails, all have heard", f"{median('stop_ms'):.1f}", unit="ms")
    row(f"{name}: a worker fails, all formed again", f"{median('again_ms'):.1f}", unit="ms")
    row(f"{name}: bytes an agent sends", f"{median('out'):.0f}", unit="B", aim="constant")
    row(f"{name}: bytes an agent receives", f"{median('in'):.0f}", unit="B", aim="constant")
    row(f"{name}: its CPU an agent, first round", f"{median('cpu_us'):.0f}", unit="us")
    row(f"{name}: its CPU an agent, failure to formed", f"{median('again_cpu_us'):.0f}", unit="us")
    row(f"{name}: muster status of all, 8 workers each", f"{median('ask_ms'):.1f}", unit="ms")
    row(f"{name}: bytes an agent sends for it", f"{median('answer'):.0f}", unit="B", aim="constant")
    row(f"{name}: its CPU an agent for it", f"{median('ask_cpu_us'):.0f}", unit="us")
    row(f"{name}: its memory for it, all agents", f"{median('ask_rss') / 1024:.0f}", unit="KiB", aim="bounded")
    row(f"{name}: its memory an agent", f"{median('rss'):.0f}", unit="B")


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    head("rendezvous", "torchrun", " (ratio: below 1 is ahead)")
    for count in SIZES:
        if hard != resource.RLIM_INFINITY and hard < count + 100:
            row(f"{count:,} agents", "-", aim=f"only {hard} open files are allowed here")
            continue
        report(count, [measure(count) for _ in range(RUNS)])
    row("round trips an agent", "3", unit="times", aim="constant: two to greet, one from JOIN to FORMED")


if __name__ == "__main__":
    main()
