"""The watchdog's channels alone, driven by the real clients: torch's FileTimerClient, libmuster through
ctypes, and `muster timer`. The launcher's part is in test_watch_run.py."""

import contextlib
import glob
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from proc import alive, carrying
from tree import BUILD, MUSTER, SANITIZER, clean_env
from waits import DEADLINE, wait_for

PLAIN = """
import os, sys, time, signal, select
FIFO = os.environ["TORCHELASTIC_TIMER_FILE"]
def forever():
    while True: signal.pause()
"""

CLIENT = PLAIN + """
import torch.distributed.elastic.timer as timer
"""

LIB = """
import ctypes, os, signal, sys, time
lib = ctypes.CDLL(os.environ["LIBMUSTER"])
lib.muster_timer_acquire.argtypes = lib.muster_timer_renew.argtypes = [ctypes.c_char_p, ctypes.c_double, ctypes.c_int]
lib.muster_timer_release.argtypes = [ctypes.c_char_p]
"""


class Driver:
    """A watchdog with workers that run `script`; see tests/helpers/watch_driver.c."""

    def __init__(self, tmp_path, script, workers=1, umask=None, prelude=None, env=None):
        self.fifo, self.socket = str(tmp_path / "fifo"), str(tmp_path / "socket")
        prelude = prelude or (CLIENT if "timer." in (script or "") else PLAIN)
        command = [sys.executable, "-c", prelude + textwrap.dedent(script)] if script else []
        self.process = subprocess.Popen(
            [BUILD / "helpers/watch_driver", self.fifo, self.socket, str(workers), *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            env=clean_env(LIBMUSTER=BUILD / "libmuster.so", MUSTER=MUSTER, **(env or {})),
            preexec_fn=(lambda: os.umask(umask)) if umask is not None else None)
        self.lines, self.partial = [], b""
        self.expect("ready")

    def next_line(self):
        """One line, read past any buffering, so that waiting for more bytes is right."""
        fd = self.process.stdout.fileno()
        while b"\n" not in self.partial:
            assert select.select([fd], [], [], DEADLINE)[0], f"no line; so far {self.lines}"
            data = os.read(fd, 65536)
            assert data, f"the driver ended; so far {self.lines}"
            self.partial += data
        line, _, self.partial = self.partial.partition(b"\n")
        self.lines.append(line.decode())
        return self.lines[-1]

    def expect(self, start):
        """The next line that begins so; those before it are kept in `lines`."""
        while not (line := self.next_line()).startswith(start):
            pass
        return line

    def stats(self):
        os.write(self.process.stdin.fileno(), b"?\n")
        return dict(zip(("armed", "requests", "expired", "rejected", "cpu_ns"),
                        map(int, self.expect("stats").split()[1:])))

    def write(self, data):
        fd = os.open(self.fifo, os.O_WRONLY)
        os.write(fd, data if isinstance(data, bytes) else data.encode())
        os.close(fd)

    def end(self):
        rest, _ = self.process.communicate(timeout=DEADLINE)
        self.lines += (self.partial + rest).decode().splitlines()
        return self.lines


@pytest.fixture
def driver(tmp_path):
    made = []

    def make(*args, **kwargs):
        made.append(Driver(tmp_path, *args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()
        for pid in carrying(f"TORCHELASTIC_TIMER_FILE={one.fifo}".encode()):  # workers, and what they forked
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def line(pid, scope="s", expiration=None, sig=9):
    expiration = time.time() + 1000 if expiration is None else expiration
    return json.dumps({"version": 1, "pid": pid, "scope_id": scope, "expiration_time": expiration,
                       "signal": sig}) + "\n"


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_an_expired_timer_of_the_real_client_ends_its_worker_and_no_other(driver, sig):
    watch = driver(f"""
        timer.configure(timer.FileTimerClient(FIFO, signal.Signals({int(sig)})))
        if os.environ["LOCAL_RANK"] == "0":
            with timer.expires(after=0.2, scope="step"):
                forever()
    """, workers=2)
    assert watch.expect("expired").split()[1:4:2] == ["0", str(int(sig))]
    lines = watch.end()
    assert f"exited 0 {-int(sig)}" in lines
    assert "exited 1 0" in lines


def test_released_and_nested_timers_of_the_real_client_do_not_expire(driver):
    watch = driver("""
        timer.configure(timer.FileTimerClient(FIFO))
        with timer.expires(after=600, scope="outer"):
            for i in range(50):
                with timer.expires(after=600, scope=f"inner \\u00e9 {i % 3}"):
                    pass
        timer.FileTimerClient(FIFO).acquire("far", time.time() + 600)
        print("done", flush=True)
        forever()
    """)
    watch.expect("done")
    stats = watch.stats()
    assert (stats["armed"], stats["requests"], stats["expired"], stats["rejected"]) == (1, 103, 0, 0)


def test_leaving_an_inner_scope_keeps_the_outer_timer(driver):
    watch = driver("""
        timer.configure(timer.FileTimerClient(FIFO, signal.SIGTERM))
        with timer.expires(after=0.3, scope="outer"):
            with timer.expires(after=60, scope="inner"):
                pass
            forever()
    """)
    assert watch.expect("expired").endswith("outer")


def test_four_real_clients_at_full_speed_are_never_refused(driver):
    watch = driver("""
        import logging; logging.disable(logging.CRITICAL)
        client = timer.FileTimerClient(FIFO)
        for i in range(1100):  # what the pipe can hold, if it is not read
            client.acquire("step", time.time() + 60)
            client.release("step")
    """, workers=4)
    lines = watch.end()
    assert [l for l in lines if l.startswith("exited")].count("exited 0 0") <= 1
    for rank in range(4):
        assert f"exited {rank} 0" in lines


def test_the_earliest_expired_timer_with_a_signal_decides(driver):
    watch = driver("""
        now = time.time()
        for i, sig in enumerate((0, 15, 9)):
            timer.FileTimerClient(FIFO, sig).acquire(f"t{i}", now + 0.3 + i / 1e6)
        forever()
    """)
    lines = watch.end()
    assert [(l.split()[3], l.split()[5]) for l in lines if l.startswith("expired")] == [("0", "t0"), ("15", "t1")]
    assert "exited 0 -15" in lines


def test_a_timer_without_signal_is_only_told(driver):
    watch = driver("""
        timer.FileTimerClient(FIFO, 0).acquire("soft", time.time() + 0.1)
        timer.FileTimerClient(FIFO, -1).acquire("softer", time.time() + 0.2)
        forever()
    """)
    watch.expect("expired")
    assert watch.expect("expired").endswith("softer")
    assert watch.stats()["armed"] == 0
    assert watch.process.poll() is None


def test_a_worker_that_ends_takes_its_timers_along(driver):
    watch = driver("""
        if os.environ["LOCAL_RANK"] == "0":
            timer.FileTimerClient(FIFO).acquire("left behind", time.time() + 600)
        else:
            forever()
    """, workers=2)
    watch.expect("exited 0")
    wait_for(lambda: watch.stats()["armed"] == 0, "the timers of the dead worker to go")


def test_garbage_between_two_good_lines_loses_neither(driver):
    watch = driver("forever()")
    [pid] = children(watch)
    watch.write(line(pid, "one").encode() + b"this is not json\n{}\n\n\xff\n" + line(pid, "two").encode())
    stats = wait_for(lambda: (s := watch.stats())["rejected"] == 4 and s, "four rejections")
    assert stats["armed"] == 2
    told = [l for l in watch.lines if l.startswith("rejected")]
    assert len(told) == len(set(told)) == 4


def children(watch):
    return [int(p) for p in subprocess.run(["ps", "-o", "pid=", "--ppid", str(watch.process.pid)],
                                           capture_output=True, text=True).stdout.split()]


# Each row: what is written, and what torch's server did with it.
HOSTILE = {
    "pid 0 (torch: kills its own group)": 0,
    "pid 1 (torch: kills itself)": 1,
    "pid -1 (torch: kills everything)": -1,
    "pid 2^40 (torch: every later round fails)": 2**40,
    "pid 2^70 (torch: every later round fails)": 2**70,
    "pid 'abc' (torch: every later round fails)": "abc",
    "pid 1.5 (torch: dropped, worker unwatched)": 1.5,
    "our own pid (torch: dies)": "SELF",
    "a stranger (torch: kills it)": "STRANGER",
    "the stranger's group (torch: kills it)": "GROUP",
}


@pytest.mark.parametrize("row", HOSTILE)
def test_only_our_workers_can_be_named(driver, row):
    stranger = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        watch = driver("forever()")
        [worker] = children(watch)
        pid = {"SELF": watch.process.pid, "STRANGER": stranger.pid, "GROUP": -stranger.pid}.get(
            HOSTILE[row], HOSTILE[row])
        watch.write(line(pid, expiration=1.0) + line(worker, "good"))
        stats = watch.stats()
        assert (stats["rejected"], stats["armed"], stats["expired"]) == (1, 1, 0)
        assert stranger.poll() is None and watch.process.poll() is None and alive(worker)
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("row, expiration, armed, rejected", [
    ("NaN (torch: stored, never expires)", float("nan"), 0, 1),
    ("Infinity", float("inf"), 1, 0),
    ("-Infinity is a release", float("-inf"), 0, 0),
    ("1e300", 1e300, 1, 0),
    ("a string (torch: batch lost)", "soon", 0, 1),
])
def test_odd_deadlines(driver, row, expiration, armed, rejected):
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write(line(worker, expiration=expiration))
    stats = watch.stats()
    assert (stats["armed"], stats["rejected"], stats["expired"]) == (armed, rejected, 0)


def test_minus_zero_is_long_past(driver):
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write(line(worker, expiration=-0.0))
    assert "exited 0 -9" in watch.end()


def test_unknown_signals_still_end_the_worker(driver):  # torch: "will retry", then unwatched
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write(line(worker, expiration=1.0, sig=200))
    assert "exited 0 -9" in watch.end()


def test_a_flood_of_newlines_costs_one_line_of_report(driver):  # torch: 88.9 MB of log in 27.5 s
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write(b"\n" * 100_000 + line(worker).encode())
    stats = wait_for(lambda: (s := watch.stats())["armed"] == 1 and s, "the good line after the flood")
    assert stats["rejected"] == 100_000
    assert len([l for l in watch.lines if l.startswith("rejected")]) == 1
    assert stats["cpu_ns"] < 1_000_000_000


def test_a_silent_writer_delays_nothing(driver):  # torch: frozen until it closes
    watch = driver("""
        held = os.open(FIFO, os.O_WRONLY)
        os.write(held, b'{"version": 1, ')
        forever()
    """)
    [worker] = children(watch)
    # The unfinished line spoils the next one at most; a second later it is forgotten.
    watch.expect("rejected malformed request: unfinished line")
    watch.write(line(worker, expiration=time.time() + 0.05))
    watch.expect("expired")


def test_a_line_in_two_pieces_is_one_line(driver):  # torch: two parse errors, lost
    watch = driver("forever()")
    [worker] = children(watch)
    text = line(worker)
    watch.write(text[:40])
    assert watch.stats()["armed"] == 0
    watch.write(text[40:])
    assert watch.stats()["armed"] == 1


def test_lines_longer_than_pipe_buf_from_one_writer_are_obeyed_and_endless_ones_dropped(driver):
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write(line(worker, "x" * 6000))
    assert watch.stats()["armed"] == 1
    watch.write(b"x" * 50_000 + b"\n" + line(worker, "after").encode())
    wait_for(lambda: watch.stats()["armed"] == 2, "the line after the endless one")
    assert watch.stats()["rejected"] == 1


def test_a_release_next_to_garbage_counts(driver):  # torch: lost, and the worker and the agent are killed
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write(line(worker, "step", expiration=time.time() + 100))
    assert watch.stats()["armed"] == 1
    watch.write(line(worker, "step", expiration=-1, sig=0) + "{}\n")
    stats = watch.stats()
    assert (stats["armed"], stats["rejected"]) == (0, 1)


def test_long_lines_of_several_writers_harm_no_worker(driver):  # torch: interleaved and corrupt; they kill the pids they name
    watch = driver("forever()")
    [worker] = children(watch)
    script = f"""
import os
fd = os.open({watch.fifo!r}, os.O_WRONLY)
for i in range(200):
    os.write(fd, ('{{"pid": {worker}, "scope_id": "%s", "expiration_time": 1e10, "signal": 9}}' % ("x" * 6000) + chr(10)).encode())
"""
    writers = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(4)]
    assert [writer.wait(timeout=DEADLINE) for writer in writers] == [0] * 4
    watch.write("\n" + line(worker, "good"))
    wait_for(lambda: watch.stats()["armed"] >= 1 and alive(worker), "the good line behind them")
    watch.write(line(worker, "good", expiration=1.0))
    assert watch.expect("expired").endswith(" good")


def test_a_fifo_that_is_deleted_stops_no_timer(driver):  # torch: goes on as well
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write(line(worker, "step", expiration=time.time() + 0.5))
    os.unlink(watch.fifo)
    assert watch.expect("expired").endswith(" step")
    watch.expect("exited 0 -9")


def test_version_and_extra_members_are_ignored(driver):
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write(json.dumps({"version": 99, "more": [1, {"a": None}], "pid": worker, "scope_id": "s",
                            "expiration_time": 1e12, "signal": 9}) + "\n")
    assert watch.stats()["armed"] == 1


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_the_fifo_is_private_whatever_the_umask(driver, umask):
    watch = driver(None, workers=0, umask=umask)
    assert os.stat(watch.fifo).st_mode & 0o777 == 0o600
    assert os.stat(watch.socket).st_mode & 0o777 == 0o600


def test_only_a_fifo_of_ours_is_replaced(tmp_path):
    (tmp_path / "fifo").write_text("precious")
    done = subprocess.run([BUILD / "helpers/watch_driver", tmp_path / "fifo", tmp_path / "socket", "0"],
                          capture_output=True, text=True, timeout=DEADLINE, input="")
    assert done.returncode == 1 and "not a FIFO" in done.stderr
    assert (tmp_path / "fifo").read_text() == "precious"
    os.unlink(tmp_path / "fifo")
    os.mkfifo(tmp_path / "fifo")
    done = subprocess.run([BUILD / "helpers/watch_driver", tmp_path / "fifo", tmp_path / "socket", "0"],
                          capture_output=True, text=True, timeout=DEADLINE, input="")
    assert done.returncode == 0
    assert not (tmp_path / "fifo").exists() and not (tmp_path / "socket").exists()


def test_a_release_that_waited_while_we_were_stopped_counts(driver):
    watch = driver("""
        client = timer.FileTimerClient(FIFO)
        client.acquire("step", time.time() + 3)
        open("armed", "w").close()
        while not os.path.exists("stopped"): time.sleep(0.01)
        client.release("step")
        forever()
    """.replace('"armed"', 'FIFO + ".armed"').replace('"stopped"', 'FIFO + ".stopped"'))
    wait_for(lambda: os.path.exists(watch.fifo + ".armed"), "the timer")
    assert watch.stats()["armed"] == 1
    os.kill(watch.process.pid, signal.SIGSTOP)
    open(watch.fifo + ".stopped", "w").close()
    time.sleep(3.3)  # past the deadline: this is the case in question
    os.kill(watch.process.pid, signal.SIGCONT)
    stats = watch.stats()
    assert (stats["armed"], stats["expired"]) == (0, 0)


def test_a_descendant_may_arm_and_is_the_one_to_be_hit(driver):
    watch = driver("""
        if os.fork() == 0:
            if os.fork() == 0:
                timer.FileTimerClient(FIFO, signal.SIGKILL).acquire("deep", time.time() + 0.2)
            forever()
        forever()
    """)
    assert watch.expect("expired").split()[2] not in map(str, children(watch))


def test_libmuster_nests_equal_scopes(driver):
    watch = driver("""
        assert lib.muster_timer_acquire(b"step", 0.4, 15) == 0
        assert lib.muster_timer_acquire(b"step", 60.0, 9) == 0
        assert lib.muster_timer_release(b"step") == 0
        time.sleep(60)
    """, prelude=LIB)
    assert watch.expect("expired").split()[3] == "15"
    assert "exited 0 -15" in watch.end()


def test_libmuster_works_after_fork_and_beats(driver):
    watch = driver("""
        for _ in range(1000): assert lib.muster_heartbeat() == 0
        assert lib.muster_timer_acquire(b"parent", 60.0, 9) == 0
        child = os.fork()
        if child == 0:
            good = lib.muster_timer_renew(b"mine", 60.0, 9) == 0 and lib.muster_heartbeat() == 0
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert lib.muster_heartbeat() == 0
        assert lib.muster_timer_release(b"parent") == 0
        assert lib.muster_timer_acquire(b"x" * 2000, 1.0, 9) < 0
        assert lib.muster_timer_acquire(b"x", float("nan"), 9) < 0
    """, prelude=LIB)
    lines = watch.end()
    assert "exited 0 0" in lines and "heartbeats 0 1002" in lines
    assert not [l for l in lines if l.startswith(("rejected", "expired"))]


def test_libmuster_outside_a_job_says_so_and_does_nothing():
    done = subprocess.run([sys.executable, "-c", LIB + textwrap.dedent("""
        import errno
        assert lib.muster_timer_acquire(b"x", 1.0, 9) == -errno.ENOTCONN
        assert lib.muster_heartbeat() == -errno.ENOTCONN
        """)], env=clean_env(LIBMUSTER=BUILD / "libmuster.so"), timeout=DEADLINE)
    assert done.returncode == 0


def test_other_processes_at_the_socket_are_refused(driver):
    watch = driver("time.sleep(60)", prelude=LIB)
    done = subprocess.run([MUSTER, "timer", "acquire", "x", "0"], capture_output=True, text=True,
                          env=clean_env(MUSTER_WATCHDOG=watch.socket), timeout=DEADLINE)
    assert done.returncode == 125 and "refused" in done.stderr
    assert watch.stats()["rejected"] == 1


def test_a_shell_script_has_timers_too(tmp_path, driver):
    watch = driver("""
        os.execvp("bash", ["bash", "-c", '''
            set -e
            "$MUSTER" timer acquire build 10m
            "$MUSTER" timer heartbeat
            ( "$MUSTER" timer heartbeat )
            "$MUSTER" timer release build
            "$MUSTER" timer acquire late 200ms --signal TERM
            exec sleep 60
        '''])
    """, prelude=LIB)
    assert watch.expect("expired").endswith("late")
    lines = watch.end()
    assert "exited 0 -15" in lines and "heartbeats 0 2" in lines


def test_nothing_wakes_up_while_a_thousand_timers_are_idle(driver):
    watch = driver("forever()")
    [worker] = children(watch)
    watch.write("".join(line(worker, f"scope {i}") for i in range(1000)))
    assert wait_for(lambda: watch.stats()["armed"] == 1000, "1000 timers")
    read_counter = lambda: sum(int(l.split()[1]) for l in open(f"/proc/{watch.process.pid}/status")
                               if l.startswith("voluntary_ctxt_switches"))

    def switches_in(seconds):  # a count over a stretch of time, not a wait
        before = read_counter()
        time.sleep(seconds)
        return read_counter() - before

    wait_for(lambda: switches_in(0.2) == 0, "the driver to sleep")
    assert switches_in(2) <= 1  # polling ten times a second makes 20


FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")


@pytest.mark.skipif(not FAKETIME, reason="libfaketime is not installed")
@pytest.mark.skipif(bool(SANITIZER), reason="libfaketime and a sanitizer both want to come first")
def test_a_step_of_the_clock_neither_kills_nor_saves_a_worker(driver, tmp_path):
    """The wall clock of the watchdog and its worker jumps an hour ahead, then two hours back."""
    clock = tmp_path / "clock"

    def step(offset):
        (tmp_path / "next").write_text(offset + "\n")
        os.replace(tmp_path / "next", clock)

    step("+0")
    faked = dict(LD_PRELOAD=FAKETIME[0], FAKETIME_TIMESTAMP_FILE=clock, FAKETIME_NO_CACHE=1, FAKETIME_DONT_FAKE_MONOTONIC=1)
    watch = driver("""
        client = timer.FileTimerClient(FIFO, signal.SIGTERM)
        client.acquire("step", time.time() + 600)
        began = time.time()
        print("armed", flush=True)
        while time.time() < began + 3000: select.select([], [], [], 0.01)
        print("ahead", flush=True)
        while time.time() > began - 3000: select.select([], [], [], 0.01)
        client.acquire("another", time.time() + 600)
        print("behind", flush=True)
        while time.time() < began: select.select([], [], [], 0.01)
        client.acquire("short", time.time() + 0.2)
        forever()
    """, env=faked)
    watch.expect("armed")
    assert watch.stats()["armed"] == 1  # it has been read, and by the clock of before
    step("+3600")
    watch.expect("ahead")
    stats = watch.stats()  # asks the loop, which has seen the new time by now
    assert (stats["armed"], stats["expired"]) == (1, 0)
    step("-3600")
    watch.expect("behind")
    stats = watch.stats()  # a watchdog with another clock would find it long past
    assert (stats["armed"], stats["expired"]) == (2, 0)
    step("+0")
    assert watch.expect("expired").endswith("short")
    watch.expect("exited 0 -15")
