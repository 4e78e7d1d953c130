"""The page of a job on four hosts with a restart, a hang and a failure, in a real browser."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import threading

import pytest

import browser as browser_lib
from netns_job import PORT
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.skipif(bool(browser_lib.MISSING), reason=str(browser_lib.MISSING))]

SHOTS = os.environ.get("MUSTER_SHOTS")  # a directory: a picture of each view goes there

# Rank 5 fails in the first attempt, rank 2 hangs in the second, rank 6 fails in the third, each when a file says so.
WORKER = """
import os, pathlib, sys, time
rank, attempt, gates = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"]), pathlib.Path(sys.argv[1])
def hang(): time.sleep(1000)
def wait(): time.sleep(1000)
print(f"attempt {attempt}: loading the data", flush=True)
for step in range(attempt * 100, 100000):
    print(f"step {step} loss {10 / (step + 3):.4f}", flush=True)
    if rank == 5 and attempt == 0 and (gates / "fail").exists():
        sys.exit("rank 5: CUDA error: an illegal memory access was encountered")
    if attempt == 1 and (gates / "hang").exists():  # and the others wait for it
        hang() if rank == 2 else wait()
    if rank == 6 and attempt == 2 and (gates / "end").exists():
        sys.exit("rank 6: loss is nan")
    time.sleep(0.1)
"""

RELAY = """
import os, socket, sys, threading
there = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def back():
    while data := there.recv(65536):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=back).start()
while data := os.read(0, 65536):
    there.sendall(data)
there.shutdown(socket.SHUT_WR)
"""


@contextlib.contextmanager
def reach(host, port):
    """A port here that leads to one of the host's loopback interface, as `ssh -L` does."""
    listener, started = socket.create_server(("127.0.0.1", 0)), []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as client:
                    started.append(subprocess.Popen(host.space.command("python3", "-c", RELAY, port), stdin=client, stdout=client,
                                                    stderr=subprocess.DEVNULL))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(DEADLINE)
        for process in started:
            process.kill()
            process.wait(DEADLINE)


def shoot(browser, name):
    if SHOTS:
        browser.driver.save_screenshot(str(pathlib.Path(SHOTS, f"page-{name}.png")))


def test_each_view_shows_a_restart_a_hang_and_a_failure_on_four_hosts(make_lab, tmp_path):
    hosts = make_lab(4).hosts
    (tmp_path / "train.py").write_text(WORKER)
    agents = [host.start(MUSTER, "run", "--nnodes=4", "--nproc-per-node=2", f"--rdzv-endpoint=node1:{PORT}", "--rdzv-id=train", "--max-restarts=3",
                         "--start-timeout=120", "--hang-timeout=10s", "--shutdown-timeout=1", "--progress-regex=^step (\\d+)", "--progress-total=2000",
                         tmp_path / "train.py", tmp_path, env=clean_env()) for host in hosts]
    dash = hosts[2].space.command("env", "TMPDIR=/run/here", "XDG_RUNTIME_DIR=/run/here", MUSTER, "dash", "train")

    def address():
        done = subprocess.run(dash, text=True, capture_output=True, timeout=DEADLINE, env=clean_env())
        return done.returncode == 0 and done.stdout.strip()

    url, _, token = wait_for(address, "the page of a host that does not coordinate").partition("/#token=")
    browser = browser_lib.Browser()
    try:
        with reach(hosts[2], url.rpartition(":")[2]) as port:
            browser.open(f"http://127.0.0.1:{port}/#token={token}")
            browser.shows("#cards", "8 of 8")
            (tmp_path / "fail").touch()
            browser.shows("#cards", "Restarts12 left")
            browser.shows("#cards", "8 of 8")
            shoot(browser, "ranks")
            browser.keys("body", "2")
            browser.shows("#log", "attempt 1: loading the data")
            shoot(browser, "log")
            browser.keys("#tab-log-view", browser_lib.key("ARROW_RIGHT"))
            assert all(f"node{i}" in browser.text("#hosts") for i in range(1, 5))
            shoot(browser, "hosts")
            browser.keys("body", "5")
            browser.shows("#charts-view .chart", "Ranks running 8")
            shoot(browser, "charts")
            browser.keys("body", "6")
            browser.click("#read-stacks")
            browser.shows("#stack-text", "8 of 8 workers")
            shoot(browser, "stacks")
            browser.keys("body", "7")
            browser.shows("#command", "train.py")
            assert "null" not in browser.text("#command-view")
            shoot(browser, "command")
            (tmp_path / "hang").touch()
            browser.keys("body", "4")
            browser.shows("#attempts", "hang")
            browser.shows("#cards", "Restarts21 left")
            browser.shows("#attempts", "running")
            (tmp_path / "end").touch()
            browser.shows("#cards", "Restarts30 left")
            browser.shows("#attempts", "rank 6 on node")
            text = browser.text("#attempts")
            assert "rank 5 on node" in text and "rank 2 on node" in text and "(hang)" in text, text
            shoot(browser, "timeline")
            assert browser.complaints() == []
    finally:
        browser.close()
    assert subprocess.run([*dash[:-2], "stop", "train"], timeout=DEADLINE, env=clean_env()).returncode == 0
    assert {agent.wait() for agent in agents} == {128 + signal.SIGTERM}
