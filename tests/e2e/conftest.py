"""What the end-to-end tests share: the real program, real processes, bounded waits for events."""

import contextlib
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
MUSTER = os.environ.get("MUSTER", str(BUILD / "muster"))
DEADLINE = 60  # seconds; a bound for what should take milliseconds, never a measurement


def clean_env(**extra):
    """The caller's environment without what would change the program's behaviour."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("PET_", "TORCHELASTIC_", "MUSTER_", "SLURM_", "OMP_"))
           and k not in ("LOGLEVEL", "MUSTER", "BUILD", "PYTHON_EXEC", "MASTER_ADDR", "MASTER_PORT")}
    env["PATH"] = f"{os.path.dirname(sys.executable)}:{env['PATH']}"
    # A sanitized libmuster comes into a Python that is not.
    env["ASAN_OPTIONS"] = ":".join(filter(None, [env.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    env.update({k: str(v) for k, v in extra.items()})
    return env


def python_env(**extra):
    """The same, with the Python package of this tree and what was built for it."""
    ours = {"PYTHONPATH": ROOT / "python", "MUSTER_PROGRAM": MUSTER, "MUSTER_LIBRARY": BUILD / "libmuster.so"}
    return clean_env(**{**ours, **extra})


@pytest.fixture
def python(tmp_path):
    """python(source, ...) runs a script to its end, with the package at hand."""

    def call(source, *args, env=None, check=True):
        script = tmp_path / "main.py"
        script.write_text(textwrap.dedent(source))
        done = subprocess.run([sys.executable, str(script), *map(str, args)], env=env or python_env(), cwd=tmp_path,
                              text=True, capture_output=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, done.stderr
        return done

    return call


@pytest.fixture
def muster(tmp_path):
    """muster('run', ...) runs the program to its end and returns it with stdout and stderr as text."""

    def call(*args, env=None, timeout=DEADLINE, cwd=tmp_path, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([MUSTER, *map(str, args)], env=env or clean_env(), cwd=cwd, text=True,
                              capture_output=True, timeout=timeout, **kwargs)

    return call


@pytest.fixture
def start(tmp_path):
    """start('run', ...) starts the program and returns the Popen; what still runs at the end of the
    test is killed."""
    started = []

    def call(*args, env=None, cwd=tmp_path, program=MUSTER, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([program, *map(str, args)], env=env or clean_env(), cwd=cwd, text=True,
                                   **kwargs)
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=DEADLINE)


@pytest.fixture
def make_lab():
    """make_lab(count=4, clocks={2: 20}) makes hosts on a switch (netns.py), for the length of the test."""
    import netns

    with contextlib.ExitStack() as labs:
        def make(*args, **kwargs):
            try:
                return labs.enter_context(netns.Lab(*args, **kwargs))
            except netns.Unavailable as why:
                pytest.skip(f"network namespaces cannot be made here: {why}")

        yield make


@pytest.fixture
def agents(tmp_path):
    """Agents of one job, each a node of its own, all on this host (agents.py)."""
    from agents import Agents

    with contextlib.closing(Agents(tmp_path)) as found:
        yield found


@pytest.fixture
def crew(tmp_path):
    """The workers of a job, as the test sees them (crew.py)."""
    from crew import Crew

    with contextlib.closing(Crew(tmp_path)) as found:
        yield found


@pytest.fixture
def make_cluster(tmp_path):
    """make_cluster(size=3, ...) starts an etcd (etcd_cluster.py), for the length of the test."""
    from etcd_cluster import Cluster

    with contextlib.ExitStack() as clusters:
        yield lambda *args, **kwargs: clusters.enter_context(contextlib.closing(Cluster(tmp_path, *args, **kwargs)))


def wait_for(condition, what, timeout=DEADLINE):
    """Polls a condition that has no event to wait for; fails naming it."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"waited {timeout} s for {what}")


def read_line(process, stream="stdout"):
    """The next line of a started process, with a bound. (Waiting for the descriptor would miss a line
    that was read along with the one before.)"""
    lines = []
    reader = threading.Thread(target=lambda: lines.append(getattr(process, stream).readline()), daemon=True)
    reader.start()
    reader.join(DEADLINE)
    assert lines, f"no line on {stream}"
    return lines[0]


def alive(pid):
    """Is the process there and not a zombie?"""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids, within=1.0):
    """Those of the pids that are still alive after `within` seconds: must be empty."""
    end = time.monotonic() + within
    while True:
        left = [pid for pid in pids if alive(pid)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.01)
