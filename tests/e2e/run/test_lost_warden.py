"""What is left when the warden, or muster, or both are killed, stopped or blind."""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from proc import children, gone, name, parent, state, warden_of, words
from tracing import traced
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

DISCOVERY = """#!/bin/sh
echo $$ >>{directory}/discovery
echo '127.0.0.1:1 1'
exec cat
"""


def wait_pids(path, count):
    def read():
        found = path.read_text().split() if path.exists() else []
        return found if len(found) == count else None
    return [int(word) for word in wait_for(read, f"{count} pids in {path}")]


def wait_warden(job):
    """It has its name a moment after muster has started."""
    return wait_for(lambda: warden_of(job.pid), "a warden")


def stop_warden(job):
    warden = wait_warden(job)
    os.kill(warden, signal.SIGSTOP)
    wait_for(lambda: state(warden) == "T", "a stopped warden")
    return warden


def start_sleepers(start, tmp_path, *options):
    job = start("run", "--nproc-per-node=2", *options, "bash", "-c",
                f"trap '' TERM; echo $$ >>{tmp_path}/pids; while :; do sleep 600; done")
    return job, wait_pids(tmp_path / "pids", 2)


def test_a_kill_by_the_name_or_the_arguments_of_muster_misses_heir_and_warden(start, tmp_path):
    job, _ = start_sleepers(start, tmp_path, "--shutdown-timeout=0.2")
    warden = wait_warden(job)
    for pid, wanted in (parent(warden), "heir"), (warden, "warden"):
        assert (name(pid), b"".join(words(pid))) == (wanted, wanted.encode())
    assert b"--shutdown-timeout=0.2" in words(job.pid)


def test_workers_end_with_muster_though_the_warden_is_stopped(start, tmp_path):
    job, pids = start_sleepers(start, tmp_path, "--shutdown-timeout=0.2")
    stop_warden(job)
    job.terminate()
    assert job.wait(30) == 143
    assert gone(pids) == []


def test_workers_end_though_muster_is_killed_while_the_warden_is_stopped(start, tmp_path):
    job, pids = start_sleepers(start, tmp_path)
    stop_warden(job)
    job.kill()
    job.wait(30)
    assert gone(pids) == []


FAN_CLASS_CONTENT, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM = 4, 1, 0x40000  # <linux/fanotify.h>


def test_muster_ends_though_the_warden_hangs_in_the_start_of_a_program(start, tmp_path):
    """Executing it never returns: that is how a program on a dead file server looks."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = shutil.copy("/bin/sleep", tmp_path / "program")
    listener = libc.fanotify_init(FAN_CLASS_CONTENT, os.O_RDONLY)
    if listener < 0 or libc.fanotify_mark(listener, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN_EXEC_PERM), -100, os.fsencode(program)) < 0:
        pytest.skip("this system does not let us hold up an execve (fanotify)")
    try:
        job = start("run", "--nproc-per-node=2", "--shutdown-timeout=0.2", program, "600")
        warden = wait_warden(job)
        pid, = wait_for(lambda: children(warden), "a worker that is being started")
        wait_for(lambda: state(pid) == "D", "a worker that hangs")
        job.terminate()
        _, errors = job.communicate(timeout=DEADLINE)
        assert job.returncode == 143
        assert "the warden was killed" in errors
        assert gone([warden, pid]) == []
    finally:
        os.close(listener)


def test_a_lost_warden_does_not_cost_the_discovery_program(start, tmp_path):
    program = tmp_path / "discovery.sh"
    program.write_text(DISCOVERY.format(directory=tmp_path))
    program.chmod(0o755)
    job = start("run", "--nnodes=2", f"--rdzv-backend=exec:{program}", "--rdzv-id=x", "sleep", "600")
    discovery, = wait_pids(tmp_path / "discovery", 1)
    warden = wait_warden(job)
    os.kill(warden, signal.SIGKILL)
    wait_for(lambda: warden_of(job.pid) not in (None, warden), "a new warden")
    assert name(discovery) in ("cat", "sh", "discovery.sh")
    assert (tmp_path / "discovery").read_text().split() == [str(discovery)]


# Names the first that asks, and leaves it a process.
LEAVES_AN_ORPHAN = """#!/bin/sh
if [ ! -s {directory}/place ]; then
    echo "$2" >{directory}/place
    (setsid sleep 1000 & echo $! >{directory}/orphan)
fi
echo "{{\\"coordinator\\":\\"$(cat {directory}/place)\\",\\"epoch\\":1}}"
exec cat
"""


def test_a_round_that_forms_while_there_is_no_warden_starts_with_the_next_one(start, tmp_path):
    program = tmp_path / "discovery.sh"
    program.write_text(LEAVES_AN_ORPHAN.format(directory=tmp_path))
    program.chmod(0o755)
    events = tmp_path / "events"
    command = ["run", "--nnodes=2", f"--rdzv-backend=exec:{program}", "--rdzv-id=x"]
    waiting = start(*command, f"--events={events}", "true")
    orphan, = wait_pids(tmp_path / "orphan", 1)
    wait_for(lambda: parent(orphan) == waiting.pid, "the orphan to be muster's")
    warden = wait_warden(waiting)
    with traced(orphan):
        os.kill(warden, signal.SIGKILL)
        wait_for(lambda: state(orphan) == "Z", "the sweep")
        other = start(*command, "true")
        wait_for(lambda: '"round.formed"' in events.read_text() or waiting.poll() is not None, "a round")
        assert warden_of(waiting.pid) in (None, warden)  # it may still be a zombie
    assert [waiting.wait(DEADLINE), other.wait(DEADLINE)] == [0, 0]


def in_namespace(*options):
    """A command prefix, or skips where there are no such namespaces."""
    prefix = ["unshare", "-r", *options]
    try:
        r = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    except FileNotFoundError as e:
        pytest.skip(str(e))
    if r.returncode:
        pytest.skip(r.stderr.strip())
    return prefix


def test_without_proc_the_main_processes_are_killed(tmp_path):
    prefix = in_namespace("-m")
    os.mkfifo(tmp_path / "fifo")
    job = subprocess.Popen([*prefix, "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", MUSTER, "run", "--nproc-per-node=2",
                            "bash", "-c", f"trap '' TERM; echo $$ >>{tmp_path}/pids; while :; do read -t 600; done <>{tmp_path}/fifo"],
                           env=clean_env())
    try:
        pids = wait_pids(tmp_path / "pids", 2)
    finally:
        job.kill()
        job.wait(30)
    assert gone(pids) == []


def test_process_1_reaps_orphans(tmp_path):
    prefix = in_namespace("-p", "-f", "--mount-proc")
    outer = subprocess.Popen([*prefix, MUSTER, "run", "bash", "-c", f"echo $$ >{tmp_path}/pids; exec sleep 600"], env=clean_env())
    try:
        wait_pids(tmp_path / "pids", 1)
        muster, = children(outer.pid)
        orphans = subprocess.run(["nsenter", "-t", str(muster), "-U", "-p", "-m", "--preserve-credentials", "sh", "-c",
                                  "for i in 1 2 3; do (exec sh -c 'sleep 0.1 & exec true') ; done"])
        assert orphans.returncode == 0
        wait_for(lambda: [name(child) for child in children(muster)] == ["warden"], "no orphans")
    finally:
        for child in children(outer.pid):
            os.kill(child, signal.SIGKILL)
        outer.wait(30)


@pytest.mark.parametrize("worker", [("sleep", "1000"), ("sh", "-c", "setsid sleep 1000 & exec sleep 1000")])
def test_a_killed_job_leaves_nothing_in_its_private_place(start, worker):
    """Nor is one that ends by itself delayed by those that were killed while it ran."""
    with tempfile.TemporaryDirectory(prefix="m") as runtime:  # a socket's path is short
        kill_one_of_two(start, worker, pathlib.Path(runtime))


def kill_one_of_two(start, worker, place):
    env = clean_env(XDG_RUNTIME_DIR=str(place))
    other = start("run", "sleep", "1000", env=env)
    wait_for(lambda: len(list(place.glob("muster/*-*/lock"))) == 1, "the private directory of the other")
    job = start("run", *worker, env=env)
    wait_for(lambda: len(list(place.glob("muster/*-*/watchdog"))) == 2, "its private directory")
    job.kill()
    wait_for(lambda: len(list(place.glob("muster/*"))) == 1, "the directory of the killed one to be removed")
    other.terminate()
    assert other.wait(DEADLINE) == 143 and not list(place.glob("muster/*"))
