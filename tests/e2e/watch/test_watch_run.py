"""Timers and hangs under the real launcher: what expires is stopped, the group restarts within its
budget, nothing is left behind."""

import glob
import os
import pathlib
import re
import resource
import shutil
import signal
import shlex
import subprocess
import tempfile
import textwrap
import time

import pytest

from able import need_mount, need_own_name
from proc import alive, cpu_share, gone
from tree import BUILD, MUSTER, ROOT, clean_env
from waits import DEADLINE, read_line, wait_for


@pytest.fixture
def script(place):
    return lambda text: place("worker.py", "import os, sys, time, signal\n"
                              "attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
                              "rank = int(os.environ['RANK'])\n"
                              "def forever():\n    while True: signal.pause()\n" + textwrap.dedent(text))


@pytest.fixture
def runtime():
    """A place for job directories, so that what is left there can be seen; short, for sockets."""
    with tempfile.TemporaryDirectory(prefix="m") as path:
        yield path


def private_dirs(runtime):
    return glob.glob(f"{runtime}/muster/*")


@pytest.fixture
def env(runtime):
    return lambda **extra: clean_env(XDG_RUNTIME_DIR=runtime, **extra)


@pytest.mark.parametrize("sig", ["SIGKILL", "SIGTERM"])
def test_an_expired_file_timer_restarts_the_group_within_its_budget(muster, script, env, runtime, tmp_path, sig):
    # torchrun ends with 137 here, leaves rank 1 as an orphan and the FIFO in /tmp
    path = script(f"""
        import torch.distributed.elastic.timer as timer
        with open(f"pid.{{attempt}}.{{rank}}", "w") as f: f.write(str(os.getpid()))
        timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"], signal.{sig}))
        while not os.path.exists(f"pid.{{attempt}}.{{1 - rank}}"): time.sleep(0.01)
        if attempt == 0:
            if rank == 0:
                with timer.expires(after=0.2, scope="step"): forever()
            forever()
        with timer.expires(after=60, scope="step"): pass
    """)
    done = muster("run", "--nproc-per-node=2", "--max-restarts=1", path,
                  env=env(TORCHELASTIC_ENABLE_FILE_TIMER=1))
    assert done.returncode == 0, done.stderr
    assert "did not finish 'step'" in done.stderr
    pids = [int(p.read_text()) for p in tmp_path.glob("pid.*")]
    assert len(pids) == 4 and gone(pids) == []
    assert private_dirs(runtime) == []


def test_an_expired_timer_of_a_process_that_a_worker_started_ends_it_and_fails_the_worker(muster, script, env, tmp_path):
    # torchrun ends that process and itself, with 137; the worker stays as an orphan
    path = script("""
        import torch.distributed.elastic.timer as timer
        child = os.fork()
        if child == 0:
            with open("child", "w") as f: f.write(str(os.getpid()))
            timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
            with timer.expires(after=0.1): forever()
        os.waitpid(child, 0)
        forever()
    """)
    done = muster("run", path, env=env(TORCHELASTIC_ENABLE_FILE_TIMER=1))
    assert done.returncode == 137, done.stderr
    child = int((tmp_path / "child").read_text())
    assert f"rank 0 (process {child}) did not finish" in done.stderr
    assert gone([child]) == []


def test_without_budget_the_job_ends_with_the_timers_signal(muster, script, env):
    path = script("""
        import torch.distributed.elastic.timer as timer
        timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
        with timer.expires(after=0.1, scope="step"): forever()
    """)
    done = muster("run", path, env=env(TORCHELASTIC_ENABLE_FILE_TIMER=1))
    assert done.returncode == 137, done.stderr


def test_a_worker_that_ignores_sigterm_is_killed_after_the_grace_time(muster, script, env):
    path = script("""
        import subprocess
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.run([os.environ["MUSTER_PROGRAM"], "timer", "acquire", "step", "100ms", "--signal", "TERM"])
        forever()
    """)
    done = muster("run", "--shutdown-timeout=200ms", path, env=env(MUSTER_PROGRAM=MUSTER))
    assert done.returncode == 137, done.stderr


def test_the_timer_path_of_the_user_is_honoured_but_no_file_is_replaced(muster, script, env, tmp_path):
    path = script("print(os.environ['TORCHELASTIC_TIMER_FILE'])")
    fifo = tmp_path / "mine"
    done = muster("run", path, env=env(TORCHELASTIC_ENABLE_FILE_TIMER=1, TORCHELASTIC_TIMER_FILE=fifo))
    assert done.stdout.strip() == str(fifo) and not fifo.exists()
    fifo.write_text("precious")
    done = muster("run", path, env=env(TORCHELASTIC_ENABLE_FILE_TIMER=1, TORCHELASTIC_TIMER_FILE=fifo))
    assert done.returncode == 125 and "not a FIFO" in done.stderr
    assert fifo.read_text() == "precious"


def test_without_the_variable_there_is_no_fifo(muster, script, env):
    done = muster("run", script("print('TORCHELASTIC_TIMER_FILE' in os.environ)"), env=env())
    assert done.stdout.strip() == "False"


def test_what_a_killed_launcher_leaves_is_removed_by_the_next(start, muster, script, env, runtime):
    path = script("forever() if 'stay' in os.environ else None")
    first = start("run", path, env=env(stay=1))
    wait_for(lambda: glob.glob(f"{runtime}/muster/*/lock"), "the job directory")
    first.kill()
    first.wait()
    left = private_dirs(runtime)
    assert left
    assert muster("run", path, env=env()).returncode == 0
    assert private_dirs(runtime) == []


def test_what_a_launcher_leaves_that_was_killed_before_it_had_a_lock_is_removed_later(muster, env, runtime):
    old, new = (pathlib.Path(runtime, "muster", name) for name in ("1-00000000", "2-00000000"))
    for directory in (old, new):
        directory.mkdir(mode=0o700, parents=True)
        (directory / "lock.new").touch()
    old.parent.chmod(0o700)
    os.utime(old, (0, 0))
    assert muster("run", "true", env=env()).returncode == 0
    assert private_dirs(runtime) == [str(new)]


def test_a_worker_that_stops_its_heartbeats_is_found_whatever_others_print(muster, script, env):
    path = script("""
        import ctypes
        print("started", flush=True)
        if attempt == 0 and rank == 1:
            ctypes.CDLL(os.environ["LIBMUSTER"]).muster_heartbeat()
            forever()
        while attempt == 0:
            print(".", flush=True)
            time.sleep(0.05)
    """)
    done = muster("run", "--nproc-per-node=2", "--max-restarts=1", "--start-timeout=60", "--hang-timeout=3", path,
                  env=env(LIBMUSTER=BUILD / "libmuster.so"))
    assert done.returncode == 0, done.stderr
    assert "rank 1" in done.stderr and "hangs: it has stopped sending heartbeats or steps" in done.stderr
    assert "rank 0 (process" not in done.stderr


def test_heartbeats_count_as_life(muster, script, env):
    path = script("""
        import ctypes
        lib = ctypes.CDLL(os.environ["LIBMUSTER"])
        end = time.monotonic() + 4
        while time.monotonic() < end:
            lib.muster_heartbeat()
            time.sleep(0.02)
    """)
    done = muster("run", "--start-timeout=60", "--hang-timeout=2", path, env=env(LIBMUSTER=BUILD / "libmuster.so"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("action, code", [("report", 0), ("stop", 137)])
def test_hang_actions(start, script, env, tmp_path, action, code):
    path = script("""
        signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
        open("pid.part", "w").write(str(os.getpid()))
        os.rename("pid.part", "pid")
        forever()
    """)
    with open(tmp_path / "err", "w+") as err:
        job = start("run", "--max-restarts=1", "--hang-timeout=300ms", f"--hang-action={action}", path, env=env(), stderr=err)
        wait_for(lambda: "hangs:" in (tmp_path / "err").read_text(), "the hang to be told")
        if action == "report":
            wait_for((tmp_path / "pid").exists, "the worker")
            wait_for(lambda: "it counts as hung" in (tmp_path / "err").read_text(), "the reason")
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGUSR1)
        assert job.wait(DEADLINE) == code, (tmp_path / "err").read_text()
    assert (tmp_path / "err").read_text().count("hangs:") == 1


def test_a_start_has_its_own_time(muster, script, env):
    path = script("forever()")
    done = muster("run", "--hang-timeout=60", "--start-timeout=300ms", path, env=env())
    assert done.returncode == 137 and "since its start" in done.stderr


def test_a_hang_in_a_gloo_collective_ends_in_a_completed_job(muster, script, env):
    # torchrun has no such watch; with its file timer the same ends with 137 and an orphan
    path = script("""
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        print("joined", flush=True)
        if attempt == 0 and rank == 1: forever()
        dist.all_reduce(torch.ones(4))
        print("reduced", flush=True)
        dist.destroy_process_group()
    """)
    done = muster("run", "--nproc-per-node=2", "--max-restarts=3", "--hang-timeout=12",
                  "--start-timeout=60", "--shutdown-timeout=2", path, env=env(), timeout=3 * DEADLINE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("reduced") >= 2
    assert "hangs:" in done.stderr and "thread" in done.stderr


def test_a_hang_that_muster_survives_ends_torchrun_and_leaves_an_orphan(muster, start, env, tmp_path):
    """examples/hang, unchanged, under both."""
    need_own_name()
    script = ROOT / "examples/hang/train.py"
    options = ["--nproc-per-node=2", "--max-restarts=3"]
    done = muster("run", *options, "--diagnose-timeout=20", script, timeout=3 * DEADLINE,
                  env=env(TORCHELASTIC_ENABLE_FILE_TIMER=1))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("is done") == 2
    assert "did not finish 'step 3'" in done.stderr
    assert "load_batch" in done.stderr and "all_reduce" in done.stderr
    assert gone([int(pid) for pid in re.findall(r"is process (\d+)", done.stdout)]) == []

    log = tmp_path / "torchrun.out"  # a file: the orphan would keep a pipe open
    pids = lambda: {rank: int(pid) for rank, pid in re.findall(r"rank (\d) is process (\d+)", log.read_text())}
    try:
        with open(log, "w") as out:
            peer = start(*options, script, program=shutil.which("torchrun", path=env()["PATH"]), stdout=out,
                         stderr=subprocess.DEVNULL, env=env(TORCHELASTIC_ENABLE_FILE_TIMER=1, TMPDIR=tmp_path))
            assert peer.wait(timeout=3 * DEADLINE) == -signal.SIGKILL
        assert alive(pids()["1"])
    finally:
        for pid in filter(alive, pids().values()):
            os.kill(pid, signal.SIGKILL)


def test_a_worker_in_d_state_fails_the_job_for_good(muster, env):
    # torchrun: exit 0, reported as a success
    done = muster("run", "--max-restarts=3", BUILD / "helpers/uninterruptible",
                  env=env(TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=1))
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    assert "uninterruptible" in done.stderr and done.stderr.count("hangs:") == 1


def test_what_a_worker_asks_for_at_its_very_start_is_heard(muster, env, tmp_path):
    """All of them before the last one is started: who they are is known only a moment later."""
    worker = """printf '{"pid": %d, "scope_id": "s", "expiration_time": 1e10, "signal": 9}\\n' $$ >"$TORCHELASTIC_TIMER_FILE"; sleep 2"""
    done = muster("run", "--nproc-per-node=32", f"--events={tmp_path}/events", "sh", "-c", worker,
                  env=env(TORCHELASTIC_ENABLE_FILE_TIMER=1))
    assert done.returncode == 0 and "rejected" not in done.stderr
    assert "timer.rejected" not in (tmp_path / "events").read_text()


def test_a_flood_on_the_fifo_starves_nothing_else(muster):
    worker = """
        if [ $RANK -gt 0 ]; then exec yes '' >"$TORCHELASTIC_TIMER_FILE"; fi
        printf '{"pid": %d, "scope_id": "s", "expiration_time": %d, "signal": 9}\\n' $$ $(($(date +%s) + 1)) >"$TORCHELASTIC_TIMER_FILE"
        exec sleep 1000"""
    done = muster("run", "--nproc-per-node=3", "bash", "-c", worker, env=clean_env(TORCHELASTIC_ENABLE_FILE_TIMER="1"))
    assert done.returncode == 137, done.stderr


def test_a_name_that_another_user_has_taken_in_tmp_harms_no_job():
    """Anyone can make /tmp/muster-UID first: the job gets a directory all the same, and `status` finds it."""
    need_mount()
    # The tree may lie below /tmp itself, so the program moves out of it first.
    aside = f"mount -t tmpfs none /mnt && cp {shlex.quote(MUSTER)} /mnt/muster && "
    taken = aside + 'mount -t tmpfs none /tmp && mkdir /tmp/muster-0 && chown 65534 /tmp/muster-0 && "$@"; echo "exit $?"; ls -d /tmp/muster*'
    worker = 'test -p "$TORCHELASTIC_TIMER_FILE" && test -S "$MUSTER_WATCHDOG" && /mnt/muster status taken'
    done = subprocess.run(["unshare", "--mount", "sh", "-c", taken, "sh", "/mnt/muster", "run", "--rdzv-id=taken", "sh", "-c", worker],
                          env=clean_env(TORCHELASTIC_ENABLE_FILE_TIMER=1, XDG_RUNTIME_DIR="", TMPDIR=""), text=True,
                          capture_output=True, timeout=DEADLINE)
    said = done.stdout.splitlines()
    assert said[-2:] == ["exit 0", "/tmp/muster-0"], done
    assert "taken" in said[0] and done.stderr == "", done


CROWD = """
    import socket
    def connect():
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link.connect(os.environ["MUSTER_WATCHDOG"])
        return link
    first = connect()
    print("ready", flush=True)
    sys.stdin.readline()
    links = [connect() for _ in range(100)]
    select.select(links, [], [])  # until one is turned away
    refused = [link for link in links if select.select([link], [], [], 0)[0]]
    print(f"{len(refused) > 0} {len(refused) < 100}", flush=True)
    sys.stdin.readline()
    sys.exit(7)
"""


def test_more_clients_than_descriptors_are_turned_away_and_muster_rests(start, script):
    """Else it would find the same client waiting again and again, for ever."""
    job = start("run", script("import select\n" + textwrap.dedent(CROWD)), stdin=subprocess.PIPE)
    assert read_line(job) == "ready\n"
    room = len(os.listdir(f"/proc/{job.pid}/fd")) + 10
    resource.prlimit(job.pid, resource.RLIMIT_NOFILE, (room, room))
    job.stdin.write("go\n")
    job.stdin.flush()
    assert read_line(job) == "True True\n"
    assert cpu_share(job.pid) < 1 / 3
    job.stdin.write("go\n")
    job.stdin.flush()
    assert job.wait(DEADLINE) == 7
