"""`muster top`: a picture for pipes, and a screen that lives on a terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios

import pytest

import able
from tree import MUSTER, clean_env
from waits import wait_for

JOB = f"top-{os.getpid()}"
WORKER = ("bash", "-c", "echo here is $RANK; exec sleep 100")
KEYS = {"up": "\033[A", "down": "\033[B", "right": "\033[C", "left": "\033[D", "end": "\033[F", "home": "\033[H"}


@pytest.fixture
def job(start, muster):
    """A job of 30 workers, more than a screen of 24 lines has room for."""
    with tempfile.TemporaryDirectory(prefix="m") as runtime:
        env = clean_env(XDG_RUNTIME_DIR=runtime)
        process = start("run", "--standalone", f"--rdzv-id={JOB}", "--nproc-per-node=30", "--shutdown-timeout=1",
                        "--no-python", *WORKER, env=env)
        process.env = env
        wait_for(lambda: muster("logs", "--grep=here", "--each", JOB, env=env).stdout.count("here") == 30, "all workers to speak")
        yield process


class Screen:
    """A terminal of some size in which `muster top` runs."""

    def __init__(self, env, width, height, *args):
        able.need_terminal()
        self.master, slave = pty.openpty()
        self.resize(width, height)
        self.process = subprocess.Popen([MUSTER, "top", "--period=100ms", *args], stdin=slave, stdout=slave, stderr=slave,
                                        env={**env, "TERM": "xterm"}, start_new_session=True)
        os.close(slave)
        os.set_blocking(self.master, False)
        self.seen = ""

    def resize(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, key):
        os.write(self.master, KEYS.get(key, key).encode())

    def read(self):
        try:
            self.seen += os.read(self.master, 1 << 20).decode()
        except (BlockingIOError, OSError):  # EIO: nobody has it open any more
            pass
        return self.seen

    def frame(self):
        """The lines of the last whole picture, without colours."""
        pictures = self.read().split("\033[H")[1:]
        whole = [picture for picture in pictures if picture.endswith("\033[J")]
        return re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", whole[-1]).splitlines() if whole else []

    def shows(self, what):
        wait_for(lambda: any(what in line for line in self.frame()), f"'{what}' on the screen")
        return self.frame()


def test_a_pipe_gets_one_picture_with_all_workers(job, muster):
    done = muster("top", "--sort=memory", JOB, env=job.env)
    assert done.returncode == 0 and "\033" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{JOB}  running  up ") and lines[0].endswith("hosts 1  workers 30  restarts 0 of 0")
    assert re.fullmatch(r" +0 [0-9]{30}", lines[1])
    assert {f"here is {rank}" for rank in range(30)} == {line.split("  ")[-1] for line in lines[3:]}
    done = muster("top", "nosuch", env=job.env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "muster top: no such job is running here: nosuch; 'muster status' lists those that are\n"


def test_a_terminal_gets_a_screen_that_answers_keys_and_sizes(job, muster):
    screen = Screen(job.env, 80, 24, JOB)
    try:
        frame = screen.shows("1-19 of 30 by rank")
        assert len(frame) <= 24 and max(map(len, frame)) <= 80
        assert "here is 18" in frame[21] and not any("here is 19" in line for line in frame)
        screen.press("down")
        screen.shows("2-20 of 30 by rank")
        screen.press("end")
        assert any("here is 29" in line for line in screen.shows("12-30 of 30 by rank"))
        screen.press("right")
        screen.shows("by cpu")
        screen.press("left")
        screen.press("home")
        screen.shows("1-19 of 30 by rank")
        screen.resize(100, 40)
        screen.shows("1-30 of 30 by rank")
        screen.resize(40, 10)
        frame = screen.shows("1-5 of 30 by rank")
        assert len(frame) <= 10 and max(map(len, frame)) <= 40
        assert muster("stop", JOB, env=job.env).returncode == 0
        assert job.wait(timeout=60) == 143
        screen.shows("no job of this user is running here")
        screen.press("q")
        assert screen.process.wait(timeout=60) == 0
        wait_for(lambda: screen.read().endswith("\033[?25h\033[?1049l"), "the terminal to be as it was")  # a read may give a part
    finally:
        screen.process.kill()
        screen.process.wait()
        os.close(screen.master)
