"""Processes as /proc shows them."""

import contextlib
import os
import pathlib
import time

STATE, PARENT, START_TIME = 0, 1, 19  # fields of /proc/PID/stat, counted behind the name
USER_TICKS, SYSTEM_TICKS = 11, 12


def stat(pid):
    """The fields of /proc/PID/stat behind the name, as text; None for a process that is not there."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return None


def state(pid):
    """The letter of the process's state, as in ps; X for one that is not there."""
    fields = stat(pid)
    return fields[STATE] if fields else "X"


def parent(pid):
    return int(stat(pid)[PARENT])


def start_time(pid):
    """In clock ticks since boot, as text; with the pid it names a process for good. None: not there."""
    fields = stat(pid)
    return fields[START_TIME] if fields else None


def cpu_ticks(pid):
    """The CPU time the process has used, in clock ticks."""
    fields = stat(pid)
    return int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])


def cpu_share(pid, seconds=0.3):
    """The CPU time of a process while this one uses so many seconds of it: about 1 if it never rests, however busy the host is."""
    ticks, end = cpu_ticks(pid), time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return (cpu_ticks(pid) - ticks) / os.sysconf("SC_CLK_TCK") / seconds


def alive(pid):
    """Is the process there and not a zombie?"""
    return state(pid) not in "ZX"


def name(pid):
    """As in ps; None for a process that is not there."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return None


def read(pid, file):
    """The bytes of /proc/PID/file; b"" for a process that has just gone."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/{file}").read_bytes()
    return b""


def words(pid):
    """The command line of a process, as bytes; [b""] for one that has just gone."""
    return read(pid, "cmdline").split(b"\0")


def children(pid):
    with contextlib.suppress(OSError):
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def warden_of(agent):
    """The warden of a muster: below its heir, or its own child where muster is process 1. None: there is none now."""
    found = children(agent)
    return next((pid for pid in found + [below for pid in found for below in children(pid)] if name(pid) == "warden"), None)


def agent_of(worker):
    """The muster of a worker: above warden and heir."""
    return parent(parent(parent(worker)))


def carrying(mark):
    """Live processes that have the bytes in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes() and alive(entry.name):
                    found.append(int(entry.name))
    return found


def gone(pids, within=10):
    """Those of the pids that are still alive after `within` seconds: must be empty. (What was killed dies at
    once, but on a busy machine that takes its time.)"""
    end = time.monotonic() + within
    while True:
        left = [pid for pid in pids if alive(pid)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.01)
