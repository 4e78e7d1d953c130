"""Fixtures of the end-to-end tests: the real program, real processes. What is not a fixture is in lib."""

import contextlib
import subprocess
import sys
import textwrap

import pytest

from ports import Port
from tree import MUSTER, clean_env, python_env
from waits import DEADLINE


@pytest.fixture
def place(tmp_path):
    """place('name.py', text, mode) puts a file into the directory of the test and returns its path."""

    def write(name, text, mode=0o644):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        path.chmod(mode)
        return path

    return write


@pytest.fixture
def port():
    """A port for a program of the test to listen on (ports.py)."""
    with contextlib.closing(Port()) as held:
        yield held


@pytest.fixture
def python(place, tmp_path):
    """python(source, ...) runs a script to its end, with the package at hand."""

    def call(source, *args, env=None, check=True):
        script = place("main.py", source)
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


@pytest.fixture(scope="module")
def slurm():
    """A Slurm of four nodes (slurm.py), for the tests of a file; each test finds it idle (`cluster`)."""
    import netns
    import slurm

    try:
        with slurm.Cluster(nodes=4) as cluster:
            yield cluster
    except netns.Unavailable as why:
        pytest.skip(f"Slurm cannot run here: {why}")


@pytest.fixture
def cluster(slurm):
    yield slurm
    slurm.clear()


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
