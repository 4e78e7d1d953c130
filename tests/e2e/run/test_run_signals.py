"""Signals to muster in every state: the job ends cleanly, with the right status, and nothing survives."""

import os
import signal
import subprocess
import time

import pytest

from proc import alive, children, gone, parent, state, warden_of
from tree import MUSTER, clean_env
from waits import wait_for


def wait_pids(path, count):
    def read():
        words = path.read_text().split() if path.exists() else []
        return words if len(words) == count else None
    return [int(word) for word in wait_for(read, f"{count} pids in {path}")]


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_stop_signal_reaches_the_workers_and_is_the_status(start, tmp_path, sig):
    script = f"trap 'echo got >>{tmp_path}/got; exit 0' {sig.name[3:]}; echo $$ >>{tmp_path}/pids; while :; do sleep 0.02; done"
    # The tests may have been started by nohup.
    job = start("run", "--nproc-per-node=2", "bash", "-c", script,
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    pids = wait_pids(tmp_path / "pids", 2)
    job.send_signal(sig)
    assert job.wait(30) == 128 + sig
    assert (tmp_path / "got").read_text().split() == ["got", "got"]
    assert gone(pids) == []


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_what_a_shell_waits_for_as_a_terminal_would(start, tmp_path, sig):
    job = start("run", "--nproc-per-node=2", "bash", "-c", f"echo $$ >>{tmp_path}/pids; sleep 5; echo went on")
    pids = wait_pids(tmp_path / "pids", 2)
    wait_for(lambda: all(children(pid) for pid in pids), "both to sleep")
    job.send_signal(sig)
    out, err = job.communicate(timeout=30)
    assert job.returncode == 128 + sig and out == "", out
    assert ("Ctrl-C again kills" in err) == (sig == signal.SIGINT), err
    assert gone(pids) == []


def test_what_a_worker_started_gets_the_stop_once(start, tmp_path):
    """A program that takes a second signal for impatience must not get one."""
    inner = f"trap 'echo got >>{tmp_path}/got' TERM; echo $$ >>{tmp_path}/pids; while [ ! -e {tmp_path}/end ]; do sleep 0.02; done"
    job = start("run", "bash", "-c", 'bash -c "$0" & wait', inner)
    pids = wait_pids(tmp_path / "pids", 1)
    job.send_signal(signal.SIGTERM)
    wait_for(lambda: parent(pids[0]) == warden_of(job.pid), "the shell between to be gone")
    (tmp_path / "end").touch()
    assert job.wait(30) == 143
    assert (tmp_path / "got").read_text().split() == ["got"]


def test_interrupt_counts_even_if_inherited_ignored(start, tmp_path):
    job = start("run", "bash", "-c", f"echo $$ >>{tmp_path}/pids; exec sleep 600",
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    pids = wait_pids(tmp_path / "pids", 1)
    job.send_signal(signal.SIGINT)
    assert job.wait(30) == 130
    assert gone(pids) == []


def test_hangup_inherited_ignored_stays_ignored(start, tmp_path):
    job = start("run", "bash", "-c", f"echo $$ >>{tmp_path}/pids; exec sleep 600",
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    pids = wait_pids(tmp_path / "pids", 1)
    job.send_signal(signal.SIGHUP)
    time.sleep(0.2)  # nothing must happen: there is no event to wait for
    assert job.poll() is None and alive(pids[0])
    job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 143


def test_worker_that_ignores_the_signal_is_killed_after_the_timeout(start, tmp_path):
    job = start("run", "--shutdown-timeout=1", "bash", "-c", f"trap '' TERM; echo $$ >>{tmp_path}/pids; while :; do sleep 0.1; done")
    pids = wait_pids(tmp_path / "pids", 1)
    job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 143
    assert gone(pids) == []


def test_shutdown_timeout_holds_after_a_failure_too(muster, tmp_path):
    script = "trap '' TERM; [ $RANK = 1 ] && exit 4; while :; do sleep 0.1; done"
    began = time.monotonic()
    assert muster("run", "--shutdown-timeout=1", "--nproc-per-node=2", "bash", "-c", script).returncode == 4
    assert time.monotonic() - began < 20  # torchrun: 30 s whatever was asked for


def test_second_interrupt_kills_at_once(start, tmp_path):
    script = f"trap 'echo x >>{tmp_path}/first' INT; echo $$ >>{tmp_path}/pids; while :; do sleep 0.02; done"
    job = start("run", "--shutdown-timeout=600", "bash", "-c", script)
    pids = wait_pids(tmp_path / "pids", 1)
    job.send_signal(signal.SIGINT)
    wait_for((tmp_path / "first").exists, "the first interrupt")
    job.send_signal(signal.SIGINT)
    assert job.wait(30) == 130
    assert gone(pids) == []


def test_second_terminate_is_not_a_second_interrupt(start, tmp_path):
    script = f"trap 'echo x >>{tmp_path}/first; sleep 0.3; echo saved >{tmp_path}/saved; exit 0' TERM; echo $$ >>{tmp_path}/pids; while :; do sleep 0.02; done"
    job = start("run", "bash", "-c", script)
    wait_pids(tmp_path / "pids", 1)
    job.send_signal(signal.SIGTERM)
    wait_for((tmp_path / "first").exists, "the first signal")
    job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 143
    assert (tmp_path / "saved").exists()


def test_wrapped_program_gets_its_chance_when_the_wrapper_dies(start, tmp_path):
    # The shell dies of SIGTERM at once; its child must still get the signal and the time to save.
    inner = tmp_path / "inner.sh"
    inner.write_text(f"trap 'sleep 0.3; echo saved >{tmp_path}/saved; exit 0' TERM\necho $$ >>{tmp_path}/pids\nwhile :; do sleep 0.02; done\n")
    job = start("run", "bash", "-c", f"bash {inner}; exit 0")
    pids = wait_pids(tmp_path / "pids", 1)
    job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 143
    assert (tmp_path / "saved").exists()
    assert gone(pids) == []


def test_user_signals_go_to_workers_that_catch_them(start, tmp_path):
    script = f"""
[ $RANK = 0 ] && trap 'echo caught >>{tmp_path}/caught' USR1
echo $$ >>{tmp_path}/pids
until [ -e {tmp_path}/end ]; do sleep 0.02; done
"""
    events = tmp_path / "events"
    job = start("run", "--nproc-per-node=2", f"--events={events}", "bash", "-c", script)
    wait_pids(tmp_path / "pids", 2)
    wait_for(lambda: events.exists() and events.read_text().count('"worker.started"') == 2, "muster to know them")
    job.send_signal(signal.SIGUSR1)
    wait_for((tmp_path / "caught").exists, "rank 0 to catch USR1")
    (tmp_path / "end").touch()
    _, errors = job.communicate(timeout=30)
    assert job.returncode == 0
    assert "SIGUSR1" in errors and "rank 1" in errors
    assert (tmp_path / "caught").read_text() == "caught\n"


def test_suspend_stops_the_workers_then_muster_and_continue_goes_on(start, tmp_path):
    script = f"echo $$ >>{tmp_path}/pids; until [ -e {tmp_path}/end ]; do sleep 0.02; done"
    job = start("run", "--nproc-per-node=2", "bash", "-c", script)
    pids = wait_pids(tmp_path / "pids", 2)
    job.send_signal(signal.SIGTSTP)
    wait_for(lambda: state(job.pid) == "T", "muster to stand still")
    wait_for(lambda: all(state(pid) == "T" for pid in pids), "the workers to stand still")
    job.send_signal(signal.SIGCONT)
    wait_for(lambda: all(state(pid) != "T" for pid in pids), "the workers to go on")
    (tmp_path / "end").touch()
    assert job.wait(30) == 0


def test_a_pause_longer_than_the_hang_timeout_kills_nobody(start, tmp_path):
    script = f"echo started; echo $$ >>{tmp_path}/pids; until [ -e {tmp_path}/end ]; do sleep 0.02; done"
    job = start("run", "--hang-timeout=10s", "bash", "-c", script, stdout=subprocess.DEVNULL)
    wait_pids(tmp_path / "pids", 1)
    time.sleep(0.5)  # so that the sign of life was seen before
    job.send_signal(signal.SIGTSTP)
    wait_for(lambda: state(job.pid) == "T", "muster to stand still")
    time.sleep(10)  # the pause itself is what is tested; without it, nothing takes nearly as long
    job.send_signal(signal.SIGCONT)
    time.sleep(0.5)  # so that it is looked at once more
    (tmp_path / "end").touch()
    _, err = job.communicate(timeout=30)
    assert job.returncode == 0 and "hangs" not in err, err


def test_signal_at_any_moment_ends_cleanly(tmp_path):
    """From the first instruction on: the signal comes after 0, 0.3, 0.6 … ms."""
    for i in range(40):
        pidfile = tmp_path / f"pids{i}"
        job = subprocess.Popen([MUSTER, "run", "--nproc-per-node=2", "bash", "-c", f"echo $$ >>{pidfile}; exec sleep 600"],
                               env=clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(i * 0.0003)
        job.send_signal(signal.SIGTERM)
        # Before muster has taken its signals over, the default action ends it: just as clean.
        assert job.wait(30) in (143, -signal.SIGTERM)
        pids = [int(p) for p in pidfile.read_text().split()] if pidfile.exists() else []
        assert gone(pids) == []


def test_kill_of_muster_takes_everything_along(start, tmp_path):
    script = f"sleep 600 & echo $! $$ >>{tmp_path}/pids; setsid sleep 600 & echo $! >>{tmp_path}/pids; wait"
    job = start("run", "--nproc-per-node=2", "bash", "-c", script)
    pids = wait_pids(tmp_path / "pids", 6)
    job.kill()
    job.wait(30)
    assert gone(pids) == []


def test_death_of_the_warden_is_a_failed_attempt_with_unknown_status(start, tmp_path):
    script = f"echo $$ >>{tmp_path}/pids$TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; exec sleep 600"
    job = start("run", "--nproc-per-node=2", "--max-restarts=1", "bash", "-c", script)
    pids = wait_pids(tmp_path / "pids0", 2)
    warden = parent(pids[0])
    assert warden != job.pid
    os.kill(warden, signal.SIGKILL)
    assert job.wait(30) == 0
    assert gone(pids) == []
    wait_pids(tmp_path / "pids1", 2)
