"""One job on one host: ranks, restarts, failures, and what the program ends with."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

import able
from proc import alive
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

SH = ("run", "--no-python")


def test_workers_get_their_ranks(muster):
    job = muster("run", "--nproc-per-node=3", "bash", "-c",
                 "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $ROLE_NAME")
    assert job.returncode == 0, job.stderr
    assert sorted(job.stdout.split("\n")[:-1]) == [f"{i} {i} 3 3 0 default" for i in range(3)]


def test_group_restarts_as_a_unit_until_the_budget_is_spent(muster, tmp_path):
    script = f'echo $RANK:$TORCHELASTIC_RESTART_COUNT >>{tmp_path}/starts; [ $RANK = 1 ] && exit 7; exec sleep 600'
    job = muster("run", "--nproc-per-node=2", "--max-restarts=2", "bash", "-c", script)
    assert job.returncode == 7
    starts = sorted((tmp_path / "starts").read_text().split())
    # Rank 0 may be stopped before it has written its line; rank 1 always writes.
    assert [s for s in starts if s.startswith("1:")] == ["1:0", "1:1", "1:2"]
    assert "exit code 7" in job.stderr and "rank 1" in job.stderr


def test_restart_succeeds_and_the_job_with_it(muster, tmp_path):
    script = '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = 0 ] && exit 3; exec sleep 600'
    job = muster("run", "--nproc-per-node=2", "--max-restarts=1", "bash", "-c", script)
    assert job.returncode == 0, job.stderr


def test_the_other_workers_are_signalled_before_a_death_is_told(tmp_path):
    """Between the news of the death and the signal the job calls nothing but the warden: it writes, formats and tells after it."""
    able.need("strace", "-o", "/dev/null", "true")
    calls, to_warden = tmp_path / "calls", {"sendmsg", "kill", "pidfd_send_signal"}
    script = f"[ $RANK = 1 ] && exec sleep 600; until [ -e {tmp_path}/go ]; do sleep 0.05; done; exit 3"
    with subprocess.Popen(["strace", "-o", calls, MUSTER, *SH, "--nproc-per-node=2", f"--log-dir={tmp_path}/log", "bash", "-c", script],
                          env=clean_env()) as tracer:
        wait_for(lambda: "".join(f.read_text() for f in tmp_path.rglob("events.jsonl")).count("worker.started") == 2, "both workers")
        (tmp_path / "go").touch()
        assert tracer.wait(DEADLINE) == 3
    # A request to the warden ends with the signal's number, as a native int.
    before = calls.read_text().partition(r'\17\0\0\0", iov_len')[0].rpartition("recvmsg(")[2].splitlines()[1:]
    assert before and {call.partition("(")[0] for call in before} <= to_warden, before


def test_exit_codes_not_worth_a_restart_end_the_job(muster, tmp_path):
    script = f'echo x >>{tmp_path}/starts; exit 42'
    job = muster("run", "--max-restarts=5", "--no-restart-on=42", "bash", "-c", script)
    assert job.returncode == 42
    assert (tmp_path / "starts").read_text().split() == ["x"]


@pytest.mark.parametrize("how, code", [("kill -SEGV $$", 139), ("kill -KILL $$", 137), ("exit 200", 200)])
def test_exit_status_is_that_of_the_first_cause(muster, how, code):
    assert muster("run", "--nproc-per-node=2", "bash", "-c", f"[ $RANK = 1 ] && {how}; exec sleep 600").returncode == code
    job = muster("run", "--exit-code=torchrun", "bash", "-c", how)
    assert job.returncode == 1


def test_first_cause_is_the_first_death_not_the_lowest_rank(muster, tmp_path):
    # Rank 0 dies because rank 1 did: it waits for its death and follows at once.
    script = f"""
if [ $RANK = 1 ]; then echo $$ >{tmp_path}/pid.tmp; mv {tmp_path}/pid.tmp {tmp_path}/pid; kill -SEGV $$; fi
trap '' TERM
until [ -e {tmp_path}/pid ] && ! kill -0 $(cat {tmp_path}/pid) 2>/dev/null; do sleep 0.01; done
exit 9
"""
    job = muster("run", "--nproc-per-node=2", "bash", "-c", script)
    assert job.returncode == 139
    assert "SIGSEGV" in job.stderr


def test_report_json_names_the_cause(muster, tmp_path):
    job = muster("run", "--log-dir", tmp_path / "logs", "--nproc-per-node=2", "bash", "-c",
                 "echo words of the dying >&2; [ $RANK = 1 ] && exit 5; exec sleep 600")
    assert job.returncode == 5
    (path,) = (tmp_path / "logs").glob("*/report.json")
    report = json.loads(path.read_text())
    (attempt,) = report["attempts"]
    cause = attempt["failures"][attempt["first_cause"]]
    assert (cause["rank"], cause["exit_code"]) == (1, 5)
    assert cause["stderr_tail"] == "words of the dying\n"


@pytest.fixture
def small_group():
    """A cgroup with 64 MiB of memory, and a word for the shell to enter it."""
    for mount, limit in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        path = pathlib.Path(f"{mount}/muster-test-{os.getpid()}")
        if not os.path.exists(f"{mount}/cgroup.procs"):  # a directory of hierarchies
            continue
        try:
            path.mkdir()
            (path / limit).open("r+").write(str(64 << 20))
            if (path / "memory.swap.max").exists():
                (path / "memory.swap.max").write_text("0")
        except OSError:
            if path.exists():
                path.rmdir()
            continue
        yield f"echo $$ > {path}/cgroup.procs && exec "
        wait_for(lambda: not (path / "cgroup.procs").read_text(), "the group to be empty")
        path.rmdir()
        return
    pytest.skip("no cgroup with a limit of memory can be made here")


def test_an_oom_kill_is_known_not_guessed(tmp_path, small_group):
    eat = "import os; x = [bytearray(1 << 20) for _ in range(1000)] if os.environ['RANK'] == '1' else os.read(os.pipe()[0], 1)"
    (tmp_path / "eat.py").write_text(eat)
    done = subprocess.run(["sh", "-c", f"{small_group}{MUSTER} run --nproc-per-node=2 --log-dir=logs eat.py"], cwd=tmp_path, text=True,
                          env=clean_env(), capture_output=True, timeout=DEADLINE)
    assert done.returncode == 137, done.stderr
    [path] = tmp_path.glob("logs/*/report.json")
    report = json.loads(path.read_text())
    assert report["verdict"]["class"] == "memory" and report["verdict"]["sure"] == "known", report["verdict"]
    assert report["verdict"]["from"] in ("cgroup", "kernel log") and report["verdict"]["rank"] == 1
    assert "  verdict         memory, from its " in done.stderr


def test_explain_reads_reports_and_logs_of_other_launchers(muster, tmp_path):
    (tmp_path / "full.py").write_text("import os; open('/dev/full', 'w').write('x' * 100000) if os.environ['RANK'] == '1' else os.read(os.pipe()[0], 1)")
    assert muster("run", "--log-dir", tmp_path / "logs", "--nproc-per-node=2", tmp_path / "full.py").returncode == 1
    [found] = json.loads(muster("explain", "--json", tmp_path / "logs").stdout)
    assert found["headline"].startswith("job failed: rank 1 of 2 ended with exit code 1")
    assert (found["verdict"]["class"], found["verdict"]["sure"], found["verdict"]["rank"]) == ("storage", "known", 1)
    (tmp_path / "slurm-7.out").write_text("step 1\nsrun: error: node3: task 2: Killed\nslurmstepd: error: Detected 1 oom-kill event(s)\n")
    said = muster("explain", tmp_path / "slurm-7.out")
    assert said.returncode == 0 and "memory (known, from its error text: oom-kill event); rank 2 on node3" in said.stdout
    (tmp_path / "well.log").write_text("all is well\n")
    said = muster("explain", tmp_path / "well.log")
    assert said.returncode == 1 and "no known kind of failure" in said.stdout
    assert muster("explain").returncode == 2 and muster("explain", tmp_path / "nowhere").returncode == 1


def test_report_json_keeps_the_last_output_of_every_attempt(muster, tmp_path):
    job = muster("run", "--log-dir", tmp_path / "logs", "--nproc-per-node=2", "--max-restarts=2", "bash", "-c",
                 "echo words of life $TORCHELASTIC_RESTART_COUNT >&2; [ $RANK = 1 ] && exit 5; exec sleep 600")
    assert job.returncode == 5
    (path,) = (tmp_path / "logs").glob("*/report.json")
    attempts = json.loads(path.read_text())["attempts"]
    tails = [attempt["failures"][attempt["first_cause"]]["stderr_tail"] for attempt in attempts]
    assert tails == [f"words of life {n}\n" for n in range(3)]


def test_success_leaves_no_temporary_tree(muster, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    job = muster("run", "--nproc-per-node=2", "true", env=clean_env(TMPDIR=temporary))
    assert job.returncode == 0, job.stderr
    assert list(temporary.iterdir()) == []
    assert job.stderr.count("\n") <= 1, job.stderr  # at most the note on OMP_NUM_THREADS


def test_stdin_goes_to_the_first_worker_only(muster):
    job = muster("run", "--nproc-per-node=3", "bash", "-c", 'read -r line; echo "$RANK:$line"', stdin=None, input="hello\n")
    assert sorted(job.stdout.split()) == ["0:hello", "1:", "2:"]


def test_stdin_all_is_shared(muster, tmp_path):
    job = muster("run", "--stdin=all", "--nproc-per-node=2", "bash", "-c", "readlink /proc/self/fd/0", stdin=None, input="")
    assert len(set(job.stdout.split())) == 1 and "null" not in job.stdout


def test_spawn_error_is_an_error_of_the_launcher(muster, tmp_path):
    program = tmp_path / "wrong-format"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    job = muster("run", "--max-restarts=3", program)
    assert job.returncode == 126
    assert "wrong-format" in job.stderr and job.stderr.count("\n") <= 3, job.stderr


def test_leftovers_of_a_good_end_get_time_to_finish(muster, tmp_path):
    # An uploader in the background finishes on SIGTERM; muster waits for it.
    script = f"""
(trap 'sleep 0.3; echo done >{tmp_path}/upload; exit 0' TERM; echo $BASHPID >{tmp_path}/ready; while :; do sleep 0.02; done) &
until [ -s {tmp_path}/ready ]; do sleep 0.01; done
exit 0
"""
    job = muster("run", "bash", "-c", script)
    assert job.returncode == 0, job.stderr
    assert (tmp_path / "upload").read_text() == "done\n"
    assert not alive(int((tmp_path / "ready").read_text()))


def test_leftovers_of_a_crash_are_killed_at_once(muster, tmp_path):
    script = f"""
(trap 'echo asked >{tmp_path}/asked' TERM; echo $BASHPID >{tmp_path}/ready; while :; do sleep 0.02; done) &
until [ -s {tmp_path}/ready ]; do sleep 0.01; done
exit 1
"""
    job = muster("run", "bash", "-c", script)
    assert job.returncode == 1
    assert not (tmp_path / "asked").exists()
    assert not alive(int((tmp_path / "ready").read_text()))


def test_restart_goes_on_after_leftovers_were_killed(muster, tmp_path):
    script = f"echo $TORCHELASTIC_RESTART_COUNT >>{tmp_path}/starts; [ $TORCHELASTIC_RESTART_COUNT = 3 ] && exit 0; setsid sleep 600 & exit 1"
    job = muster("run", "--max-restarts=3", "bash", "-c", script)
    assert job.returncode == 0, job.stderr
    assert (tmp_path / "starts").read_text().split() == ["0", "1", "2", "3"]


def test_workers_have_their_own_session_and_clean_signals(muster):
    job = muster("run", "grep", "-hE", "^(Sig(Blk|Ign)|NSpid)|\\(grep\\)", "/proc/self/status", "/proc/self/stat",
                 preexec_fn=lambda: (signal.signal(signal.SIGINT, signal.SIG_IGN),
                                     signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])))
    lines = job.stdout.splitlines()
    assert "SigBlk:\t0000000000000000" in lines and "SigIgn:\t0000000000000000" in lines
    pid, _, _, _, group, session = lines[-1].split()[:6]
    assert pid == group == session


def test_workers_inherit_no_descriptors(muster, tmp_path):
    read, write = os.pipe()
    job = muster("run", "bash", "-c", "ls /proc/self/fd", pass_fds=[read, write])
    # ls itself holds the directory: one more than the three.
    assert len(job.stdout.split()) == 4
    os.close(read), os.close(write)


def test_a_thousand_short_workers(muster):
    job = muster("run", "--nproc-per-node=1000", "--log-dir=/dev/null", "true")
    assert job.returncode == 0, job.stderr


def test_torchrun_is_the_same_program(tmp_path):
    (tmp_path / "torchrun").symlink_to(MUSTER)
    job = subprocess.run([tmp_path / "torchrun", "--no-python", "bash", "-c", "exit 6"], env=clean_env(),
                         capture_output=True, text=True, timeout=60)
    assert job.returncode == 6, job.stderr


@pytest.mark.parametrize("options, script, code", [
    (["--max-restarts=1"], "exit 7", 7),
    (["--max-restarts=1", "--exit-map=budget"], "exit 7", 92),
    (["--max-restarts=1", "--exit-map=budget=33,7=8", "--no-restart-on=7"], "exit 7", 8),
    (["--exit-map=budget,SIGKILL=3"], "kill -KILL $$", 3),
    (["--exit-map=done=5"], "exit 0", 5),
])
def test_a_scheduler_may_have_other_exit_codes(muster, options, script, code):
    assert muster("run", *options, "sh", "-c", script).returncode == code
