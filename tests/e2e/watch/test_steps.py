"""Steps: what workers tell of how far they have got, in the status, metrics, events and the report."""

import json
import os
import re
import subprocess
import textwrap
import urllib.request

import pytest

from page import Page, board_of
from tree import MUSTER, python_env
from waits import DEADLINE, read_line

JOB = f"steps-{os.getpid()}"  # its tests may run side by side, one in each process

# Tells steps up to `last` by rank, waits for the others, then has one rank look at the job.
WORKER = f"""
    JOB = {JOB!r}""" + """
    import json, os, subprocess, sys, muster
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    store = muster.Store()

    def meet(name):
        store.barrier(f"{name} {attempt}", world)

    def look(*command):
        if rank == 0:
            print(subprocess.run([os.environ["MUSTER"], *command], capture_output=True, text=True).stdout, flush=True)
"""


def run(tmp_path, source, *options, code=0, env=None):
    script = tmp_path / "worker.py"
    script.write_text(textwrap.dedent(WORKER) + textwrap.dedent(source))
    done = subprocess.run([MUSTER, "run", f"--rdzv-id={JOB}", f"--log-dir={tmp_path}/logs", *options, str(script)],
                          env={**python_env(), "MUSTER": str(MUSTER), **(env or {})}, cwd=tmp_path, capture_output=True,
                          text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode == code, done.stderr
    return done


def report(tmp_path):
    [path] = (tmp_path / "logs").glob("*/report.json")
    return json.loads(path.read_text())


def test_the_status_has_steps_and_who_is_behind(tmp_path):
    done = run(tmp_path, """
        with muster.section("data"):
            for number in range(1, 8 - 3 * rank):
                muster.step(number, total=100)
            muster.saved(number - 1)
            meet("told")
            look("status", "--json", JOB)
            meet("seen")
        """, "--nproc-per-node=2")
    [host] = json.loads(done.stdout)
    assert host["progress"]["step"] == 4 and host["progress"]["most"] == 7 and host["progress"]["behind"] == 1
    assert host["progress"]["total_steps"] == 100 and host["progress"]["saved_step"] == 3
    first, second = host["workers"]
    assert (first["step"], first["saved_step"], second["step"], second["saved_step"]) == (7, 6, 4, 3)
    assert first["section"] == second["section"] == "data"
    assert first["steps_per_s"] > 0 and first["left_s"] > 0 and first["step_age_s"] >= 0


def test_the_status_for_people_and_the_metrics(tmp_path, port):
    done = run(tmp_path, """
        import urllib.request
        for number in range(1, 6 - 2 * rank):
            muster.step(number)
        meet("told")
        look("status", JOB)
        if rank == 0:
            address = os.environ["HTTP"]
            print(urllib.request.urlopen(f"http://{address}/metrics").read().decode())
        meet("seen")
        """, "--nproc-per-node=2", "--progress-total=50", f"--http={port.endpoint}", env={"HTTP": port.endpoint})
    assert re.search(r"^  step 5 of 50, [\d.e+]+ a second, .* left; rank 1 is behind, at 3$", done.stdout, re.M)
    assert 'muster_worker_step{rank="0",local_rank="0"} 5\n' in done.stdout
    assert 'muster_worker_step{rank="1",local_rank="1"} 3\n' in done.stdout
    assert re.search(r"^muster_left_seconds [\d.]+", done.stdout, re.M)


def test_a_job_without_steps_shows_none(tmp_path):
    done = run(tmp_path, """
        look("status", "--json", JOB)
        look("status", JOB)
        """)
    assert '"progress"' not in done.stdout and '"step"' not in done.stdout and "  step" not in done.stdout


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_pattern_finds_steps_without_code(tmp_path, stream):
    done = run(tmp_path, f"""
        for number in range(1, 31):
            print("epoch 1 step %d/90 loss 0.1" % number, file=sys.{stream}, flush=True)
        sys.exit(5)
        """, "--progress-regex=step (\\d+)/(\\d+)", code=5)
    assert "epoch 1 step 30/90" in getattr(done, stream)
    [attempt] = report(tmp_path)["attempts"]
    assert (attempt["first_step"], attempt["step"], attempt["most_step"]) == (1, 30, 30)
    assert re.search(r"^  progress +step 30$", done.stderr, re.M)


def test_a_pattern_reads_streams_that_are_not_shown(tmp_path):
    run(tmp_path, """
        print("step 4", flush=True)
        sys.exit(5)
        """, "--progress-regex=step (\\d+)", "--redirects=3", code=5)
    assert report(tmp_path)["attempts"][0]["step"] == 4


def test_a_wrong_pattern_is_a_usage_error(tmp_path):
    done = run(tmp_path, "", "--progress-regex=step (\\d+?)", code=2)
    assert "--progress-regex: a second sign of repetition at '+?)'" in done.stderr


def test_the_report_and_events_say_how_far_each_attempt_got(tmp_path):
    done = run(tmp_path, """
        begin = 1 if attempt == 0 else 11
        for number in range(begin, begin + 15):
            muster.step(number)
            if number % 10 == 0:
                muster.saved(number)
        meet("told")
        if rank == 1:
            sys.exit(6)
        meet("never")
        """, "--nproc-per-node=2", "--max-restarts=1", "--events=events.jsonl", code=6)
    first, second = report(tmp_path)["attempts"]
    assert (first["first_step"], first["step"], first["saved_step"]) == (1, 15, 10)
    assert (second["first_step"], second["step"], second["saved_step"]) == (11, 25, 20)
    assert re.search(r"^  progress +step 25; saved up to step 20$", done.stderr, re.M)
    assert re.search(r"1: .*, step 15, saved up to 10, rank 1 ended with exit code 6$", done.stderr, re.M)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert {e["step"] for e in events if e["event"] == "worker.exited"} == {15, 25}


def test_steps_count_as_life(tmp_path):
    run(tmp_path, """
        import time
        end, number = time.monotonic() + 3, 0
        while time.monotonic() < end:
            number += 1
            muster.step(number)
            time.sleep(0.02)
        """, "--start-timeout=60", "--hang-timeout=2")


# Steps that the worker says it told every 0.25 s until 100 s ago, and then others when "go" is there.
STANDS_STILL = """
    import ctypes, os, sys, time
    from muster._native import library

    address = ctypes.c_void_p()
    assert library().muster_page(ctypes.byref(address)) == 0
    page = memoryview((ctypes.c_char * 4096).from_address(address.value)).cast("B").cast("Q")

    def tell(step, when):
        if step == 1:
            page[6], page[7] = step, when
        page[64 + (step & 63)] = when
        page[3], page[4] = step, 2000
        page[2] = step

    last = time.monotonic_ns() - 100 * 10**9
    for step in range(1, 301):
        tell(step, last - (300 - step) * 250 * 10**6)
    print("told", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.05)
    tell(301, time.monotonic_ns())
    while not os.path.exists("end"):
        time.sleep(0.05)
"""


def test_a_job_that_stands_still_says_so_everywhere(start, tmp_path, port):
    (tmp_path / "worker.py").write_text(textwrap.dedent(STANDS_STILL))
    process = start("run", f"--rdzv-id={JOB}", f"--http={port.endpoint}", "--events=events.jsonl", "worker.py",
                    env=python_env())
    assert read_line(process) == "told\n"

    def look(*command):
        return subprocess.run([MUSTER, *command], env=python_env(), capture_output=True, text=True, timeout=DEADLINE).stdout

    pause = r"no step for 1 min \d+ s \(usually 250 ms\)"
    shown = look("status", JOB)
    assert re.search(rf"^  step 300 of 2000\n  {pause}: 'muster stacks {JOB}' shows where", shown, re.M), shown
    [host] = json.loads(look("status", "--json", JOB))
    assert host["progress"]["still_s"] > 90 and host["progress"]["usual_step_s"] == 0.25 and "left_s" not in host["progress"]
    assert re.search(rf"  step 300  {pause}$", look("top", "--once", JOB), re.M)
    metrics = urllib.request.urlopen(f"http://{port.endpoint}/metrics", timeout=DEADLINE).read().decode()
    assert float(re.search(r"^muster_standstill_seconds ([\d.]+)$", metrics, re.M)[1]) > 90
    with Page(str(process.pid), python_env()).stream() as events:
        assert board_of(events, lambda board: board.progress.get("still_s", 0) > 90).progress["usual_ms"] == 250

    assert re.fullmatch(rf"muster: warning: {pause}, the last one is 300; 'muster stacks {JOB}' shows where the workers are\n",
                        read_line(process, "stderr"))
    (tmp_path / "go").touch()
    assert re.fullmatch(r"muster: warning: steps go on after 1 min \d+ s without one\n", read_line(process, "stderr"))
    assert "no step for" not in look("status", JOB)
    (tmp_path / "end").touch()
    assert process.wait(DEADLINE) == 0
    told = [event for event in map(json.loads, (tmp_path / "events.jsonl").read_text().splitlines()) if "standstill" in event["event"]]
    assert [event["event"] for event in told] == ["standstill.began", "standstill.ended"]
    assert told[0]["step"] == 300 and told[0]["usual_ms"] == 250 and told[0]["still_ms"] > 90_000


def test_a_forked_child_tells_steps_of_its_worker(tmp_path):
    run(tmp_path, """
        muster.step(1)
        if os.fork() == 0:
            muster.step(2)
            os._exit(0)
        os.wait()
        sys.exit(5)
        """, code=5)
    assert report(tmp_path)["attempts"][0]["step"] == 2


def test_attempts_that_get_further_use_no_restart_up(tmp_path):
    """Six attempts with one restart each time none of them gets further, and then two that do not."""
    done = run(tmp_path, """
        for number in range(1, 10 * min(attempt + 1, 5) + 1):
            muster.step(number)
        sys.exit(6)
        """, "--max-restarts=1/progress", code=93)
    kept = report(tmp_path)
    assert [attempt["step"] for attempt in kept["attempts"]] == [10, 20, 30, 40, 50, 50, 50]
    assert kept["exit_code"] == 93 and "none: 2 attempts in a row made no new step" in done.stderr
    goodput = kept["goodput"]
    assert goodput["steps"] + goodput["steps_again"] == 10 + 20 + 30 + 40 + 3 * 50 - 7
    assert goodput["steps_again"] == 9 + 19 + 29 + 39 + 2 * 49
    parts = sum(goodput[part] for part in ("steps_s", "again_s", "start_s", "end_s", "wait_s"))
    assert abs(parts - goodput["total_s"]) < 1e-6 and goodput["lost_s"]["exit"] > 0
    assert re.search(r"^  goodput +\d+% of the time in new steps, starting ", done.stderr, re.M)


def test_a_job_that_ends_well_has_its_goodput_in_the_report(tmp_path):
    run(tmp_path, "muster.step(1); muster.step(2)")
    kept = report(tmp_path)
    assert kept["outcome"] == "done" and kept["goodput"]["steps"] == 1


def test_a_final_failure_is_not_a_lack_of_progress(tmp_path):
    run(tmp_path, "muster.step(1); sys.exit(6)", "--max-restarts=3/progress", "--no-restart-on=6", code=6)


def test_max_restarts_takes_a_number_and_the_word_progress(tmp_path):
    done = run(tmp_path, "", "--max-restarts=3/steps", code=2)
    assert "'3/steps' is neither N nor N/progress" in done.stderr
