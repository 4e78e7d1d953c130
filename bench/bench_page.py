"""What looking at a job costs: a question for the states of 1,000 and 10,000 simulated agents, an open page of a job with
1,000 workers (CPU of the agent, bytes to the page), and the wake-ups of that agent while nobody looks.

usage: bench_page.py [status|page] ...
"""

import http.client
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

from table import MUSTER, head, row

WORKERS = int(os.environ.get("PAGE_WORKERS", "1000"))
SECONDS = int(os.environ.get("PAGE_SECONDS", "20"))


def status():
    for agents in (1000, 10000):
        began = time.monotonic()
        done = subprocess.run([MUSTER, "sim", f"--agents={agents}", "--askers=1"], text=True, capture_output=True, check=True)
        took = time.monotonic() - began
        found = re.search(r"at most (\d+) messages .* \((\d+) bytes\) under way", done.stdout)
        row(f"question to {agents} simulated agents: messages an agent", found[1], None, "frames", "constant")
        row(f"question to {agents} simulated agents: on their way at most", f"{int(found[2]) / 1024:.0f}", None, "KiB", "<= 2 MiB")
        row(f"whole simulated job of {agents} agents", f"{took:.1f}", None, "s")


def usage(pid):
    """CPU seconds and voluntary switches of all threads of a process."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    switches = sum(int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text())[1])
                   for task in pathlib.Path(f"/proc/{pid}/task").iterdir())
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"), switches


def page():
    with tempfile.TemporaryDirectory(prefix="m") as runtime:
        env = dict(os.environ, XDG_RUNTIME_DIR=runtime)
        job = subprocess.Popen([MUSTER, "run", "--standalone", "--rdzv-id=bench", f"--nproc-per-node={WORKERS}", "sleep", "600"], env=env)
        try:
            while (dash := subprocess.run([MUSTER, "dash", "bench"], env=env, text=True, capture_output=True)).returncode:
                time.sleep(0.1)
            while subprocess.run([MUSTER, "status", "--json", "bench"], env=env, text=True, capture_output=True).stdout.count('"running"') < WORKERS:
                time.sleep(0.5)
            time.sleep(3)
            before = usage(job.pid)
            time.sleep(SECONDS)
            after = usage(job.pid)
            row("wake-ups of the agent while nobody looks", after[1] - before[1], None, "times", f"0 in {SECONDS} s")
            url, _, token = dash.stdout.strip().partition("/#token=")
            client = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
            client.request("GET", "/api/stream", headers={"Authorization": f"Bearer {token}"})
            answer = client.getresponse()
            first = len(answer.read1(1 << 22))
            began, before, count = time.monotonic(), usage(job.pid), 0
            while time.monotonic() - began < SECONDS:
                count += len(answer.read1(1 << 20))
            took, after = time.monotonic() - began, usage(job.pid)
            row(f"an open page, {WORKERS} workers: CPU of the agent", f"{(after[0] - before[0]) / took * 100:.1f}", None, "%")
            row(f"an open page, {WORKERS} workers: bytes to it", f"{count / took / 1000:.2f}", None, "kB/s", "<= 20")
            row(f"an open page, {WORKERS} workers: its first piece", f"{first / 1000:.0f}", None, "kB")
            client.close()
        finally:
            job.terminate()
            job.wait(60)


head("looking at a job")
for name in sys.argv[1:] or ["status", "page"]:
    {"status": status, "page": page}[name]()
