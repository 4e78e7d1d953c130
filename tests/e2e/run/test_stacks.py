"""Where workers stand: their stacks by the real py-spy, like ones together, the odd one first."""

import os
import subprocess
import sys
import tempfile

import pytest

from proc import gone
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

WORKER = """
import os, time
def odd(): time.sleep(1000)
def usual(): time.sleep(1000)
open(f"ready.{os.environ['RANK']}.{os.environ['TORCHELASTIC_RESTART_COUNT']}", "w").close()
print("ready", flush=True)
odd() if os.environ["RANK"] == "1" else usual()
"""

JOB = f"job-{os.getpid()}"  # others may run the same tests on this host


@pytest.fixture
def env():
    """With py-spy in PATH, and a place of its own for job directories."""
    with tempfile.TemporaryDirectory(prefix="m") as runtime:
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        yield clean_env(XDG_RUNTIME_DIR=runtime, PATH=path)


@pytest.fixture
def script(place):
    return place("worker.py", WORKER)


def test_the_odd_rank_comes_first_and_the_others_are_one_group(start, muster, env, script, tmp_path):
    process = start("run", "--nproc-per-node=3", f"--rdzv-id={JOB}", script, env=env)
    wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 3, "the workers")

    def grouped():  # a worker may still be on its way into its sleep
        text = muster("stacks", JOB, env=env).stdout
        odd, _, usual = text.partition("2 of 3 workers (ranks 0,2):\n")
        return (odd.startswith("1 of 3 workers (rank 1):\n") and "odd (worker.py:3)" in odd
                and "usual (worker.py:4)" in usual)

    wait_for(grouped, "the stacks")
    assert process.poll() is None
    assert muster("stop", JOB, env=env).returncode == 0
    process.wait(timeout=60)


def test_a_worker_that_is_not_python_is_reported(start, muster, env, tmp_path):
    start("run", f"--rdzv-id={JOB}", "bash", "-c", "touch ready; exec sleep 100", env=env)
    wait_for(lambda: (tmp_path / "ready").exists(), "the worker")
    shown = muster("stacks", JOB, env=env)
    assert shown.returncode == 0 and "no stack: py-spy: Error" in shown.stdout


def test_without_py_spy_there_is_a_clear_error(start, muster, env, tmp_path):
    start("run", f"--rdzv-id={JOB}", "bash", "-c", "touch ready; exec sleep 100", env=env)
    wait_for(lambda: (tmp_path / "ready").exists(), "the worker")
    done = muster("stacks", JOB, env={**env, "PATH": "/nowhere"})
    assert done.returncode == 125 and "py-spy is not in PATH" in done.stderr


def log_dirs(path):
    return sorted(path.glob("*/attempt_*/stacks.txt"))


def test_a_hang_is_diagnosed_before_the_worker_is_ended(muster, env, script, tmp_path):
    done = muster("run", "--nproc-per-node=3", "--start-timeout=60", "--hang-timeout=4", f"--log-dir={tmp_path}/logs", script, env=env)
    assert done.returncode == 137, done.stderr
    [kept] = log_dirs(tmp_path / "logs")
    text = kept.read_text()
    assert text.startswith("1 of 3 workers (rank 1):\n") and "2 of 3 workers (ranks 0,2):\n" in text
    assert text.index("odd (worker.py:3)") < text.index("usual (worker.py:4)")
    before, _, report = done.stderr.partition("muster: job failed")
    assert "odd (worker.py:3)" in before and "odd (worker.py:3)" in report


@pytest.mark.parametrize("option, count", [([], 0), (["--diagnose-timeout=10"], 1)])
def test_a_timer_is_diagnosed_only_when_asked_for(muster, env, script, tmp_path, option, count):
    # SIGTERM reaches the worker though it was held
    script.write_text("import os\nos.system(os.environ['M'] + ' timer acquire step 1 --signal TERM')\n" + WORKER)
    done = muster("run", "--nproc-per-node=2", *option, f"--log-dir={tmp_path}/logs", script,
                  env={**env, "M": str(MUSTER)})
    assert done.returncode == 143, done.stderr
    assert len(log_dirs(tmp_path / "logs")) == count


def test_a_worker_that_was_only_reported_goes_on(muster, env, script, tmp_path):
    script.write_text("import time\ntime.sleep(2)\nprint('went on')\n")
    done = muster("run", "--hang-timeout=500ms", "--hang-action=report", f"--log-dir={tmp_path}/logs", script, env=env)
    assert done.returncode == 0 and "went on" in done.stdout, done.stderr
    assert len(log_dirs(tmp_path / "logs")) == 1


def test_a_job_can_be_stopped_during_a_diagnosis(start, env, script, tmp_path):
    spy = tmp_path / "bin" / "py-spy"  # one that never answers
    spy.parent.mkdir()
    spy.write_text(f"#!/bin/sh\necho $$ >>{tmp_path}/spying\nexec sleep 1000\n")
    spy.chmod(0o755)
    process = start("run", "--hang-timeout=300ms", "--diagnose-timeout=500", "--shutdown-timeout=1", script,
                    env={**env, "PATH": f"{spy.parent}:{env['PATH']}"})
    wait_for(lambda: (tmp_path / "spying").exists() and (tmp_path / "spying").read_text().endswith("\n"), "py-spy")
    process.terminate()
    process.wait(timeout=60)
    assert gone([int(pid) for pid in (tmp_path / "spying").read_text().split()]) == []


def test_workers_let_their_launcher_look_at_them(tmp_path):
    """What Yama needs is asked for; a kernel without it says EINVAL, and that is that."""
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-e", "trace=prctl,execve", "-o", trace, MUSTER, "run", "true"],
                          env=clean_env(ASAN_OPTIONS="detect_leaks=0"),
                          capture_output=True, text=True, timeout=DEADLINE)
    if not trace.exists() or not trace.read_text():
        pytest.skip("strace cannot trace here")
    assert done.returncode == 0
    lines = trace.read_text().splitlines()
    agent = lines[0].split()[0]
    [asked] = [line for line in lines if "PR_SET_PTRACER" in line]
    worker = asked.split()[0]
    assert f"PR_SET_PTRACER, {agent})" in asked and worker != agent
    assert [line for line in lines[lines.index(asked):] if line.startswith(worker + " ") and "execve(" in line]
