"""Where workers are: their stacks by the real py-spy, eu-stack and gdb, like ones together, the odd one first."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from able import NOBODY, need
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

PATIENT = "--timeout=60"  # a machine under load is slow

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


def wait_running(status):
    """A worker may speak before its muster has heard that it runs."""
    wait_for(lambda: json.loads(status().stdout)[0]["workers"][0]["state"] == "running", "a running worker")


def test_the_odd_rank_comes_first_and_the_others_are_one_group(start, muster, env, script, tmp_path):
    process = start("run", "--nproc-per-node=3", f"--rdzv-id={JOB}", script, env=env)
    wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 3, "the workers")

    def grouped():  # a worker may still be on its way into its sleep
        text = muster("stacks", PATIENT, JOB, env=env).stdout
        lines, _, stacks = text.partition("\n1 of 3 workers (rank 1):\n")
        odd, _, usual = stacks.partition("2 of 3 workers (ranks 0,2):\n")
        return (lines == "rank 1 in odd (worker.py:3)\nranks 0,2 in usual (worker.py:4)" and "odd (worker.py:3)" in odd
                and "usual (worker.py:4)" in usual and "libc.so.6" in odd)

    wait_for(grouped, "the stacks")
    assert process.poll() is None
    assert muster("stop", JOB, env=env).returncode == 0
    process.wait(timeout=60)


def test_folded_and_json_have_the_same_stacks(start, muster, env, script, tmp_path):
    start("run", "--nproc-per-node=3", f"--rdzv-id={JOB}", script, env=env)
    wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 3, "the workers")

    def places():
        found = json.loads(muster("stacks", "--json", PATIENT, JOB, env=env).stdout)["stacks"]
        return {worker["rank"]: stack["place"] for stack in found for worker in stack["workers"]}

    wait_for(lambda: places() == {0: "usual (worker.py:4)", 1: "odd (worker.py:3)", 2: "usual (worker.py:4)"}, "the places")
    folded = muster("stacks", "--folded", PATIENT, JOB, env=env).stdout.splitlines()
    counts = {"odd": 0, "usual": 0}
    for line in folded:
        frames, _, count = line.rpartition(" ")
        for name in counts:
            if f";{name} (worker.py:" in frames:
                counts[name] += int(count)
                assert frames.index("<module>") < frames.index(name)  # the outermost frame comes first
    assert counts == {"odd": 1, "usual": 2}, folded
    assert muster("stacks", "--folded", "--json", JOB, env=env).returncode == 2


CHILDREN = """
import multiprocessing, os, subprocess, time
def load():
    open("ready", "w").close()
    time.sleep(1000)
multiprocessing.get_context("fork").Process(target=load, daemon=True).start()
subprocess.Popen(["sleep", "1000"])
time.sleep(1000)
"""


def test_child_processes_come_after_the_workers(start, muster, env, place, tmp_path):
    need("eu-stack", "--version")
    start("run", f"--rdzv-id={JOB}", place("worker.py", CHILDREN), env=env)
    wait_for(lambda: (tmp_path / "ready").exists(), "the child")

    def shown():
        text = muster("stacks", PATIENT, JOB, env=env).stdout
        workers, _, children = text.partition("1 of 2 child processes (")
        return (workers.startswith("rank 0 in <module> (worker.py:8)\n") and "load (worker.py:5)" in children
                and "1 of 2 child processes (sleep, of rank 0)" in text and "nanosleep (libc.so.6)" in children)

    wait_for(shown, "the children")


PROGRAM = """
#include <unistd.h>
static void inner(void) { char byte; if (read(0, &byte, 1) < 0) _exit(1); }
int main(void) { inner(); return 0; }
"""


@pytest.mark.parametrize("tool", ["eu-stack", "gdb"])
def test_a_program_in_c_has_its_stack_from(tool, start, muster, env, place, tmp_path):
    need(tool, "--version")
    source = place("solver.c", PROGRAM)
    subprocess.run(["gcc", "-g", "-O0", "-o", tmp_path / "solver", source], check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    start("run", f"--rdzv-id={JOB}", "./solver", env=env, stdin=subprocess.PIPE)

    def place_shown():
        text = muster("stacks", PATIENT, JOB, env={**env, "PATH": str(tmp_path / "bin")}).stdout
        first, _, stack = text.partition("\n")
        return first.endswith("read (solver.c:3)") and "inner (solver.c:3)\n    main (solver.c:4)" in stack

    wait_for(place_shown, "the place")


def test_without_any_tool_the_kernel_tells_and_what_is_missing_is_named(start, muster, env, tmp_path):
    start("run", f"--rdzv-id={JOB}", "bash", "-c", "touch ready; exec sleep 1000", env=env)

    def told():  # the worker may be on its way into its sleep
        done = muster("stacks", JOB, env={**env, "PATH": "/nowhere"})
        return (done.returncode == 0 and "nanosleep (system call)\n1 of 1 workers (rank 0):\n" in done.stdout
                and "sleeping (state S)" in done.stdout and done.stdout)

    text = wait_for(told, "the sleep")
    assert "only what the kernel tells: eu-stack is not in PATH (the package elfutils); gdb is not in PATH" in text
    assert 'Thread "sleep":' in text


def test_a_tool_that_hangs_or_prints_garbage_costs_its_time_not_the_answer(start, muster, env, script, place, tmp_path):
    place("bin/py-spy", f"#!/bin/sh\necho $$ >>{tmp_path}/spying\nexec sleep 1000\n", 0o755)
    place("bin/eu-stack", "#!/bin/sh\necho 'TID 5:' '#x' >&2\nhead -c 100000 /dev/urandom\n", 0o755)
    place("bin/gdb", "#!/bin/sh\nexit 3\n", 0o755)
    start("run", f"--rdzv-id={JOB}", script, env=env)
    wait_for(lambda: (tmp_path / "ready.0.0").exists(), "the worker")
    wait_running(lambda: muster("status", "--json", JOB, env=env))
    done = muster("stacks", "--timeout=3", JOB, env={**env, "PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
    assert done.returncode == 0
    assert "only what the kernel tells: py-spy did not answer in time; " in done.stdout
    assert "(system call)" in done.stdout or "(state " in done.stdout
    assert gone([int(pid) for pid in (tmp_path / "spying").read_text().split()]) == []


HIDES = """
#include <sys/prctl.h>
#include <unistd.h>
int main(void) { prctl(PR_SET_DUMPABLE, 0); if (write(1, "ready\\n", 6) < 0) return 1; return read(0, &(char){ 0 }, 1); }
"""


def test_a_user_who_may_not_trace_a_worker_reads_the_remedy(start, muster, place):
    need(*NOBODY, "true")
    with tempfile.TemporaryDirectory(prefix="m") as home:
        os.chmod(home, 0o777)
        source = place("hides.c", HIDES)
        subprocess.run(["gcc", "-o", f"{home}/hides", source], check=True)
        program = shutil.copy(MUSTER, f"{home}/muster")  # the build may be out of that user's reach
        env = clean_env(XDG_RUNTIME_DIR=home, PATH=os.environ["PATH"])
        job = start(*NOBODY[1:], program, "run", f"--rdzv-id={JOB}", f"{home}/hides", env=env, cwd=home, stdin=subprocess.PIPE,
                    program=NOBODY[0])
        assert job.stdout.readline() == "ready\n"
        def ask(what, *options):
            return subprocess.run([*NOBODY, program, what, *options, JOB], env=env, cwd=home, capture_output=True, text=True,
                                  timeout=DEADLINE)

        wait_running(lambda: ask("status", "--json"))
        done = ask("stacks", PATIENT)
        job.terminate()
        job.wait(timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    assert "only what the kernel tells: " in done.stdout and "CAP_SYS_PTRACE" in done.stdout, done.stdout
    assert 'Thread "hides":' in done.stdout


def test_a_job_whose_workers_have_not_started_says_so(start, muster, env, port):
    process = start("run", "--nnodes=2", f"--rdzv-endpoint={port.endpoint}", f"--rdzv-id={JOB}", "--no-python", "true", env=env)
    wait_for(lambda: muster("status", JOB, env=env).returncode == 0, "a job that waits for its second node")
    done = muster("stacks", "--here", JOB, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "muster stacks: none of these workers runs now\n")
    process.terminate()
    process.wait(timeout=DEADLINE)


def log_dirs(path):
    return sorted(path.glob("*/attempt_*/stacks.txt"))


def test_a_hang_is_diagnosed_before_the_worker_is_ended(muster, env, script, tmp_path):
    done = muster("run", "--nproc-per-node=3", "--start-timeout=60", "--hang-timeout=4", f"--log-dir={tmp_path}/logs", script, env=env)
    assert done.returncode == 137, done.stderr
    [kept] = log_dirs(tmp_path / "logs")
    text = kept.read_text()
    lines = "rank 1 in odd (worker.py:3)\nranks 0,2 in usual (worker.py:4)\n"
    assert text.startswith(lines + "1 of 3 workers (rank 1):\n") and "2 of 3 workers (ranks 0,2):\n" in text
    assert text.index("odd (worker.py:3)") < text.index("usual (worker.py:4)")
    before, _, report = done.stderr.partition("muster: job failed")
    assert "odd (worker.py:3)" in before and "odd (worker.py:3)" in report
    assert "rank 1 in odd (worker.py:3)" in report and "ranks 0,2 in usual (worker.py:4)" in report


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
    process = start("run", "--start-timeout=60", "--hang-timeout=300ms", "--diagnose-timeout=500", "--shutdown-timeout=1", script,
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
