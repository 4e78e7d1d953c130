"""Bounded waits for events."""

import threading
import time

DEADLINE = 180  # seconds; a bound for what should take milliseconds, never a measurement


def wait_for(condition, what, timeout=DEADLINE):
    """Polls a condition that has no event to wait for; fails naming it."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"waited {timeout} s for {what}")


def read_line(process, stream="stdout"):
    """The next line of a started process, with a bound. (Waiting for the descriptor would miss a line
    that was read along with the one before.)"""
    lines = []
    reader = threading.Thread(target=lambda: lines.append(getattr(process, stream).readline()), daemon=True)
    reader.start()
    reader.join(DEADLINE)
    assert lines, f"no line on {stream}"
    return lines[0]
