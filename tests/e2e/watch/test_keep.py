"""State that workers keep over restarts: whole, the same step on all ranks, and gone with the job."""

import json
import subprocess
import sys
import textwrap

import pytest

from netns_job import Job
from tree import BUILD, MUSTER, ROOT, python_env
from waits import DEADLINE

# Counts, and keeps what it has counted. Ends itself in one of several ways, a different one in each attempt.
COUNTER = """
    import os, signal, sys, muster
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    SIZE, LAST = 100_000, 60

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def state(number):
        return number.to_bytes(8, "little") * (SIZE // 8)

    kept, second = muster.keep("count", SIZE), muster.keep("again", 8)
    step = kept.step or 0
    assert second.step == kept.step and (kept.state is None or kept.state == state(step)), (rank, kept.step, second.step)
    print(f"attempt {attempt} rank {rank} step {step}", flush=True)
    store = muster.Store()
    while step < LAST:
        store.barrier(f"{attempt} {step}", world)
        step += 1
        ends = attempt < 5 and rank == attempt % world and step == 8 * attempt + 6
        if ends and attempt == 0:
            die()
        place = kept.begin()
        place[:SIZE // 2] = state(step)[:SIZE // 2]
        if ends and attempt == 1:
            die()
        place[SIZE // 2:] = state(step)[SIZE // 2:]
        if ends and attempt == 2:
            die()
        kept.commit(step)
        if ends and attempt == 3:
            die()
        second.save(step, step.to_bytes(8, "little"))
        if ends and attempt == 4:
            die()
    print(f"rank {rank} ends with {step}", flush=True)
"""


def run(tmp_path, source, *options, code=0):
    script = tmp_path / "worker.py"
    script.write_text(textwrap.dedent(source))
    done = subprocess.run([MUSTER, "run", *options, str(script)], env=python_env(LOGLEVEL="INFO"), cwd=tmp_path, capture_output=True,
                          text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("how", [[], ["--preload=json"]], ids=["cold", "warm"])
def test_a_count_goes_on_from_the_last_step_that_all_ranks_committed(tmp_path, how):
    done = run(tmp_path, COUNTER, "--nproc-per-node=3", "--max-restarts=5", f"--events={tmp_path}/events", *how)
    assert sorted(line for line in done.stdout.splitlines() if "ends" in line) == [f"rank {rank} ends with 60" for rank in range(3)]
    started = {}
    for line in done.stdout.splitlines():
        if line.startswith("attempt"):
            started.setdefault(int(line.split()[1]), set()).add(int(line.split()[-1]))
    # The others may have committed the step of the death before they were stopped; the one that died has it
    # only in the last attempt, after both of its commits.
    assert started[0] == {0}
    assert [started[attempt] for attempt in range(1, 5)] == [{8 * attempt + 5 - 8} for attempt in range(1, 5)]
    assert started[5] in ({37}, {38})
    formed = [event for event in map(json.loads, (tmp_path / "events").read_text().splitlines()) if event["event"] == "round.formed"]
    assert [{event["kept_step"]} for event in formed[1:]] == [started[attempt] for attempt in range(1, 6)]
    assert "kept_step" not in formed[0]


def test_what_cannot_be_kept_is_refused_by_name(tmp_path):
    done = run(tmp_path, """
        import errno, muster

        def refused(name, size):
            try:
                muster.keep(name, size)
            except OSError as e:
                print(errno.errorcode[e.errno], e.strerror)

        first = muster.keep("first", 4096)
        refused("big", 1 << 20)
        refused("", 1)
        refused("x" * 65, 1)
        refused("zero", 0)
        muster.keep("first", 100)                    # nothing is in it yet
        first = muster.keep("first", 4096)
        first.save(3, bytes(4096))
        refused("first", 100)
        for number in range(15):
            muster.keep(f"name {number}", 1)
        refused("one more", 1)
        for call in (lambda: first.commit(4), lambda: first.save(3, bytes(4096)), lambda: first.save(4, b"short")):
            try:
                call()
            except (OSError, ValueError) as e:
                print(type(e).__name__, e)
        assert first.step == 3 and first.state == bytes(4096)
        """, "--keep-limit=1M")
    assert done.stdout.splitlines() == [
        "EDQUOT keep 'big': twice 1048576 bytes is more than --keep-limit leaves",
        "EINVAL keep: '' is not a name of 1 to 64 bytes, or 1 not a size",
        f"EINVAL keep: '{'x' * 64}' is not a name of 1 to 64 bytes, or 1 not a size",
        "EINVAL keep: 'zero' is not a name of 1 to 64 bytes, or 0 not a size",
        "EEXIST keep 'first': there is a state of another size than 100 bytes",
        "ENOSPC keep 'one more': this worker keeps 16 others",
        "OSError [Errno 22] commit of step 4: no state was begun",
        "OSError [Errno 22] commit of step 3: a later one is committed",
        "ValueError 5 bytes for a state of 4096",
    ]


def test_without_muster_it_is_ordinary_memory(tmp_path):
    script = tmp_path / "alone.py"
    script.write_text("import muster\nkept = muster.keep('x', 4)\nassert kept.state is None\nkept.save(0, b'abcd')\n"
                      "kept.save(1, b'efgh')\nprint(kept.step, bytes(kept.state))\n")
    done = subprocess.run([sys.executable, str(script)], env=python_env(), capture_output=True, text=True, timeout=DEADLINE)
    assert done.stdout == "1 b'efgh'\n", done.stderr


def test_hosts_go_on_from_a_common_step_and_a_lost_host_takes_its_state_along(make_lab):
    one, two, three = make_lab(3).hosts
    job = Job(one.lab, "2", [one], "--max-restarts=3", "--rdzv-conf=last_call_timeout=1,scale_up_delay=1", flags=["--keep"],
              env=dict(PYTHONPATH=ROOT / "python", MUSTER_LIBRARY=BUILD / "libmuster.so")).start(one, two)
    job.round(2, [one, two])
    job.commits(5, 6)
    job.commits(7, of=[one])  # the other has not got there
    job.now.on(two).order("exit 1")
    job.round(2, [one, two], restarts=1)
    assert [worker.kept for worker in job.now] == [6, 6]
    job.commits(7)
    job.now.on(one).order("exit 1")
    job.round(2, [one, two], restarts=2)
    assert [worker.kept for worker in job.now] == [7, 7]
    job.start(three)
    job.says(one, "node3")
    job.kill(two)
    job.agents.pop(two)
    job.round(2, [one, three], restarts=2)
    assert [worker.kept for worker in job.now] == [None, None]
    job.says(one, "no kept state that all ranks have")
    job.commits(3)
    job.now.on(three).order("exit 1")
    job.round(2, [one, three], restarts=3)
    assert [worker.kept for worker in job.now] == [3, 3]
    job.finish()
    job.ends(0)
