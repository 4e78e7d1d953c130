"""Leaving together: after SIGTERM or SIGUSR1 all workers that ask leave after the same step."""

import json
import os
import re
import signal
import subprocess
import textwrap

import pytest

from page import Page, board_of, saved
from tree import MUSTER, python_env
from waits import DEADLINE, wait_for

JOB = f"left-{os.getpid()}"  # others may run the same tests on this host

# Takes steps of its own pace; says when it has begun.
WORKER = """
    import os, signal, sys, time, muster
    rank = int(os.environ["RANK"])
    for step in range(10**9):
        time.sleep(0.001 * (1 + rank))
        muster.step(step)
        if rank in ASKS:
            if muster.save_after(step) and SAVES:
                muster.saved(step)
            if muster.stop_after(step):
                sys.stdout.write(f"rank {rank} left after {step}\\n")
                sys.stdout.flush()
                if STAYS:
                    time.sleep(10**6)
                sys.exit(0)
        if step == 3:
            sys.stdout.write(f"rank {rank} runs\\n")
            sys.stdout.flush()
"""


class Run:
    """A job of three workers on this host, all of which run."""

    def __init__(self, tmp_path, *options, asks=(0, 1, 2), saves=True, stays=False):
        script = tmp_path / "worker.py"
        script.write_text(f"ASKS, SAVES, STAYS = {asks}, {saves}, {stays}\n" + textwrap.dedent(WORKER))
        self.logs = tmp_path / "logs"
        self.process = subprocess.Popen(
            [MUSTER, "run", "--nproc-per-node=3", f"--log-dir={self.logs}", "--shutdown-timeout=5", *options, str(script)],
            env=python_env(), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3):
            assert re.match(r"rank \d runs", self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ends(self, code):
        out, err = self.process.communicate(timeout=DEADLINE)
        assert self.process.returncode == code, err
        return {int(rank): int(step) for rank, step in re.findall(r"rank (\d) left after (\d+)", out)}, err

    def report(self):
        [path] = self.logs.glob("*/report.json")
        return json.loads(path.read_text())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=lambda number: number.name)
def test_all_workers_leave_after_the_same_step(tmp_path, number):
    with Run(tmp_path) as run:
        run.process.send_signal(number)
        left, err = run.ends(94)
        assert sorted(left) == [0, 1, 2] and len(set(left.values())) == 1
        step = left[0]
        assert f"the workers left together, as asked, after step {step}; 3 of 3 here have saved it" in err
        report = run.report()
        assert report["exit_code"] == 94 and "stop_signal" not in report
        assert report["attempts"][-1]["left"] == [{"rank": rank, "step": step, "saved_step": step} for rank in range(3)]


def test_a_worker_that_never_asks_is_stopped_when_the_time_is_over(tmp_path):
    with Run(tmp_path, "--notice=2", asks=(0, 1)) as run:
        run.process.send_signal(signal.SIGTERM)
        left, _ = run.ends(128 + signal.SIGTERM)
        assert set(left) <= {0, 1} and len(set(left.values())) <= 1  # on a busy machine the time may be too short


@pytest.mark.parametrize("options, asks", [([], ()), (["--notice=0"], (0, 1, 2))], ids=["nobody asks", "no notice"])
def test_otherwise_sigterm_stops_the_job_as_ever(tmp_path, options, asks):
    with Run(tmp_path, *options, asks=asks) as run:
        run.process.send_signal(signal.SIGTERM)
        left, err = run.ends(128 + signal.SIGTERM)
        assert left == {}
        assert "stopped by SIGTERM" in err


def test_a_user_has_all_save_and_go_on_then_leave(tmp_path):
    with Run(tmp_path, f"--rdzv-id={JOB}", f"--events={tmp_path}/events") as run:
        def ask(*options):
            subprocess.run([MUSTER, "checkpoint", *options, JOB], env=python_env(), check=True, timeout=DEADLINE)

        def agreed():
            events = map(json.loads, (tmp_path / "events").read_text().splitlines())
            return [(event["reason"], event["step"]) for event in events if event["event"] == "notice.agreed"]

        ask("--continue")
        wait_for(agreed, "the step after which all save", DEADLINE)
        ask()
        left, _ = run.ends(94)
        (_, saved), (kind, step) = agreed()
        assert kind == "leave" and set(left.values()) == {step} and step > saved


def test_a_user_who_asks_workers_that_do_not_is_told_so(tmp_path):
    with Run(tmp_path, f"--rdzv-id={JOB}", asks=()):
        done = subprocess.run([MUSTER, "checkpoint", JOB], env=python_env(), capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 125 and "no worker here asks" in done.stderr


def test_a_second_sigterm_does_not_wait(tmp_path):
    with Run(tmp_path, "--notice=1h", asks=(0, 1)) as run:
        run.process.send_signal(signal.SIGTERM)
        for _ in range(2):
            assert "left after" in run.process.stdout.readline()
        run.process.send_signal(signal.SIGTERM)
        run.ends(128 + signal.SIGTERM)


@pytest.mark.parametrize("saves", [True, False], ids=["saved", "not saved"])
def test_workers_that_have_saved_have_left_even_if_they_must_be_stopped(tmp_path, saves):
    with Run(tmp_path, "--notice=1h", saves=saves, stays=True) as run:
        run.process.send_signal(signal.SIGTERM)
        for _ in range(3):
            assert "left after" in run.process.stdout.readline()
        run.process.send_signal(signal.SIGTERM)
        _, err = run.ends(94 if saves else 128 + signal.SIGTERM)
        assert ("3 of 3 here have saved it" if saves else "stopped by SIGTERM") in err


def test_the_page_says_that_the_job_left_and_does_not_call_it_done(tmp_path):
    """While it runs and from its log directory alike: 94 is neither a failure nor the end of the training."""
    with Run(tmp_path, f"--rdzv-id={JOB}") as run, Page(JOB, python_env()).stream() as events:
        run.process.send_signal(signal.SIGUSR1)
        live = board_of(events, lambda board: "exit_code" in board.job)
        left, _ = run.ends(94)
    subprocess.run([MUSTER, "report", run.logs, "-o", tmp_path / "page.html"], check=True, timeout=DEADLINE)
    past = saved(tmp_path / "page.html")["board"]
    for job, attempts in (live.job, live.attempts), (past["job"], past["attempts"]):
        assert (job["state"], job["exit_code"]) == ("left", 94)
        assert [attempt["left_step"] for attempt in attempts] == [left[0]]
    assert run.report()["exit_reason"] == "saved"
