"""Where workers stand: their stacks by the real py-spy, like ones together, the odd one first."""

import os
import sys
import tempfile

import pytest

from conftest import clean_env, wait_for

WORKER = """
import os, time
def odd(): time.sleep(1000)
def usual(): time.sleep(1000)
open(f"ready.{os.environ['RANK']}.{os.environ['TORCHELASTIC_RESTART_COUNT']}", "w").close()
odd() if os.environ["RANK"] == "1" else usual()
"""


@pytest.fixture
def env():
    """With py-spy in PATH, and a place of its own for job directories."""
    with tempfile.TemporaryDirectory(prefix="m") as runtime:
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        yield clean_env(XDG_RUNTIME_DIR=runtime, PATH=path)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(WORKER)
    return path


def test_the_odd_rank_comes_first_and_the_others_are_one_group(start, muster, env, script, tmp_path):
    process = start("run", "--nproc-per-node=3", "--rdzv-id=myjob", script, env=env)
    wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 3, "the workers")

    def grouped():  # a worker may still be on its way into its sleep
        text = muster("stacks", "myjob", env=env).stdout
        odd, _, usual = text.partition("2 of 3 workers (ranks 0,2):\n")
        return (odd.startswith("1 of 3 workers (rank 1):\n") and "odd (worker.py:3)" in odd
                and "usual (worker.py:4)" in usual)

    wait_for(grouped, "the stacks")
    assert process.poll() is None
    assert muster("stop", "myjob", env=env).returncode == 0
    process.wait(timeout=60)


def test_what_is_no_python_program_is_said_so(start, muster, env, tmp_path):
    start("run", "--rdzv-id=myjob", "bash", "-c", "touch ready; exec sleep 100", env=env)
    wait_for(lambda: (tmp_path / "ready").exists(), "the worker")
    shown = muster("stacks", "myjob", env=env)
    assert shown.returncode == 0 and "no stack: py-spy: Error" in shown.stdout


def test_without_py_spy_there_is_a_clear_error(start, muster, env, tmp_path):
    start("run", "--rdzv-id=myjob", "bash", "-c", "touch ready; exec sleep 100", env=env)
    wait_for(lambda: (tmp_path / "ready").exists(), "the worker")
    done = muster("stacks", "myjob", env={**env, "PATH": "/nowhere"})
    assert done.returncode == 125 and "py-spy is not in PATH" in done.stderr
