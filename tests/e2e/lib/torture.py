"""Jobs whose workers try to leave processes behind (escape.c), ended in every way that a job can end."""

import contextlib
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

import able
from proc import alive, carrying, children, parent, start_time, state, warden_of
from tree import MUSTER, clean_env, helper
from waits import DEADLINE, wait_for

KINDS = ["child", "group", "session", "daemon", "bare", "deaf", "chain", "reaper", "stopped",
         "stopped-daemon"]
USERS = ["root", "nobody"] if os.getuid() == 0 else ["self"]
AS = {"root": (), "self": (), "nobody": able.NOBODY}  # what starts a command as that user
MAP_USER = {"root": (), "self": ("--user", "--map-root-user"), "nobody": ("--user", "--map-root-user")}
WORKERS = 2
SURVIVE_S = 10  # nothing may be there that long after muster's end; most is gone when it ends


class Cell:
    """One job in a directory of its own."""

    workers = WORKERS
    options = ("--shutdown-timeout=0.3",)

    def __init__(self, kind, user, programs):
        self.kind, self.user, self.programs = kind, user, programs
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="torture-"))
        self.dir.chmod(0o1777)  # a plain user writes here, and root refuses a log directory that others could replace
        self.record = self.dir / "record"
        self.mark = f"TORTURE_MARK={uuid.uuid4().hex}"
        self.process = None
        self.copy = None

    def copy_program(self):
        """A copy under a unique name. Made while no other thread starts processes: those would
        hold the file open for writing for a moment, and so keep it from being executed."""
        self.copy = self.dir / ("m" + uuid.uuid4().hex[:10])
        shutil.copy(MUSTER, self.copy)

    def start(self, worker_end, before=(), program=None):
        """Starts the job in a session of its own; `before` is a command that starts commands."""
        escape = [self.programs / "escape", self.kind, self.record, worker_end]
        self.start_command(escape, before, program, self.workers)

    def start_command(self, command, before=(), program=None, workers=1):
        name, _, value = self.mark.partition("=")
        self.process = subprocess.Popen(
            [*AS[self.user], *before, str(program or self.programs / "muster"), "run", f"--nproc-per-node={workers}", *self.options,
             f"--log-dir={self.dir}/logs", *map(str, command)],
            cwd=self.dir, env=clean_env(**{name: value, "HOME": self.dir}), stdin=subprocess.DEVNULL,
            stdout=open(self.dir / "out", "wb"), stderr=subprocess.STDOUT, start_new_session=True)

    def text(self):
        return self.record.read_text() if self.record.exists() else ""

    def all_ready(self):
        wait_for(lambda: self.text().count("ready") == self.workers or self.process.poll() is not None,
                 "workers to be in place")
        assert self.process.poll() is None, "ended early: " + (self.dir / "out").read_text()

    def pause(self):
        """Between the blows of an end that has several."""

    def warden(self):
        return wait_for(lambda: warden_of(self.process.pid), "a warden")

    def names(self):
        """What the processes wrote down: (pid, start time)."""
        lines = [line.split() for line in self.text().replace(".", "").splitlines()]
        return {tuple(words) for words in lines if len(words) == 2}

    def recorded(self):
        """Processes that wrote their names down and are still there."""
        return [pid for pid, start in self.names() if alive(pid) and start_time(pid) == start]

    def marked(self):
        """Processes that carry this job's mark in their environment: muster's own, too."""
        return carrying(self.mark.encode())

    def grows(self):
        """Does a chain of short-lived processes go on? It writes a mark every generation."""
        length = len(self.text())
        time.sleep(0.1)
        return ["a chain goes on"] if len(self.text()) != length else []

    def survivors(self):
        self.process.wait(DEADLINE)
        end = time.monotonic() + SURVIVE_S
        while True:
            looked = time.monotonic()
            left = self.recorded() + self.marked() + self.grows()
            if not left or looked > end:
                return left

    def clean_up(self):
        for entry in self.recorded() + self.marked():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry), signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)


def end_normally(cell):
    cell.start("exit")


def end_by_crash(cell):
    cell.start("crash")


def end_by(sig):
    def end(cell):
        cell.start("wait")
        cell.all_ready()
        os.kill(cell.process.pid, sig)
    return end


def end_by_kill_of_warden(cell):
    cell.start("wait")
    cell.all_ready()
    os.kill(cell.warden(), signal.SIGKILL)


def end_by_blows(*blows):
    """Signals to muster, its warden and its heir, one right after the other."""
    def end(cell):
        cell.start("wait")
        cell.all_ready()
        warden = cell.warden()
        pids = {"muster": cell.process.pid, "warden": warden, "heir": parent(warden)}
        for target, sig in blows:
            with contextlib.suppress(ProcessLookupError):  # the first blow may have been enough
                os.kill(pids[target], sig)
            cell.pause()
    return end


def end_by_kill_of_group(cell):
    cell.start("wait")
    cell.all_ready()
    os.killpg(cell.process.pid, signal.SIGKILL)


def end_by_timeout(cell):
    cell.start("wait", before=["timeout", "-s", "KILL", "600"])
    cell.all_ready()
    # It does not know its child before it has come back from fork(): an alarm would end timeout alone, and nobody would kill muster.
    wait_for(lambda: cell.process.poll() is not None or children(cell.process.pid) and state(cell.process.pid) == "S", "timeout to wait")
    os.kill(cell.process.pid, signal.SIGALRM)  # its time is up


def end_by_name(cell):
    cell.start("wait", program=cell.copy)
    cell.all_ready()
    subprocess.run(["pkill", "-KILL", "-f", f"/{cell.copy.name} run"], check=True)


class InNamespace:
    """muster is process 1; the kernel takes the rest along, so what counts is that it gets that far.
    Pids inside mean nothing outside, so processes are known by namespace, inner pid and start time
    (the number of a namespace is used again as soon as that is gone)."""

    def __init__(self, worker_end, sig):
        self.worker_end, self.sig = worker_end, sig

    def __call__(self, cell):
        note = cell.dir / "namespace"
        cell.start(self.worker_end, before=[*able.NAMESPACE, *MAP_USER[cell.user], "sh", "-c",
                                            f'readlink /proc/self/ns/pid >{note}; exec "$@"', "sh"])
        cell.recorded = functools.partial(self.inside, cell, note)
        if self.sig:
            cell.all_ready()
            os.kill(self.first(cell), self.sig)

    @staticmethod
    def first(cell):
        """Process 1 of the namespace: the child of unshare."""
        return wait_for(lambda: children(cell.process.pid), "process 1")[0]

    @staticmethod
    def inside(cell, note):
        namespace, names, left = note.read_text().strip() if note.exists() else "none", cell.names(), []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if os.readlink(entry / "ns" / "pid") != namespace or not alive(entry.name):
                    continue
                status = (entry / "status").read_text()
                inner = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1]
                if (inner, start_time(entry.name)) in names:
                    left.append(entry.name)
        return left


ENDS = {
    "normal": end_normally,
    "crash": end_by_crash,
    "TERM": end_by(signal.SIGTERM),
    "INT": end_by(signal.SIGINT),
    "KILL": end_by(signal.SIGKILL),
    "KILL-warden": end_by_kill_of_warden,
    "KILL-both": end_by_blows(("warden", signal.SIGKILL), ("muster", signal.SIGKILL)),
    "KILL-group": end_by_kill_of_group,
    "timeout-KILL": end_by_timeout,
    "KILL-by-name": end_by_name,
    "pid1-normal": InNamespace("exit", None),
    "pid1-TERM": InNamespace("wait", signal.SIGTERM),
    "pid1-KILL": InNamespace("wait", signal.SIGKILL),
}


def why_not(end, user, programs):
    """Why a job of this user cannot be ended so here; None if it can."""
    if isinstance(ENDS[end], InNamespace):
        return able.why_not(*AS[user], *able.NAMESPACE, *MAP_USER[user], "true")
    return able.why_not(*AS[user], programs / "muster", "--version")


def make_cell(key, programs):
    kind, end, user = key
    cell = Cell(kind, user, programs)
    if ENDS[end] is end_by_name:
        cell.copy_program()
    return cell, ENDS[end]


def try_cell(cell_and_end):
    cell, end = cell_and_end
    try:
        end(cell)
        left = cell.survivors()
        ready = cell.text().count("ready")
        return left, ready, (cell.dir / "out").read_text(errors="replace")
    except Exception as error:  # told by the test of this cell
        return [f"{type(error).__name__}: {error}"], 0, (cell.dir / "out").read_text(errors="replace")
    finally:
        cell.clean_up()


@contextlib.contextmanager
def programs_for_all():
    """Copies where every user can read them: the tree may be in a home directory."""
    with tempfile.TemporaryDirectory(prefix="muster-torture-") as directory:
        os.chmod(directory, 0o755)
        for path in (MUSTER, helper("escape")):
            shutil.copy(path, directory)
        yield pathlib.Path(directory)
