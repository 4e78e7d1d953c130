"""A program of the test that runs on its own, with its output in a file."""

import re
import signal
import subprocess

from waits import DEADLINE, wait_for


class Process:
    """`pid` is the program's; `popen` may be of a command that started it."""

    def __init__(self, name, popen, log, pid=None):
        self.name, self.popen, self.log = name, popen, log
        self.pid = pid or popen.pid

    def running(self):
        return self.popen.poll() is None

    def text(self):
        """What it has printed so far."""
        return self.log.read_text(errors="replace")

    def signal(self, number):
        self.popen.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)

    def wait(self, timeout=DEADLINE):
        """The exit status, negative for a signal."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended within {timeout} s:\n{self.text()}") from None

    def says(self, pattern, timeout=DEADLINE):
        """Waits until it has printed what the pattern finds."""
        try:
            return wait_for(lambda: re.search(pattern, self.text()), f"{self.name} to say {pattern!r}", timeout)
        except AssertionError as late:
            raise AssertionError(f"{late}; it said:\n{self.text()}") from None
