"""Timers: "if I am not done with this block in time, stop me, so that the job can start again".

    with muster.timer.expires(after=60):
        load()

In a process that muster did not start, and without configure(), nothing happens.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import os
import signal as signals
import time
from collections.abc import Iterator
from typing import Protocol

from muster._native import library

__all__ = ["TimerClient", "configure", "expires"]


class TimerClient(Protocol):
    """Receives timers; torch's timer clients have this interface."""

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Arms a timer for the wall-clock time given."""

    def release(self, scope_id: str) -> None:
        """Ends the innermost timer of the scope."""


class _MusterClient:
    """The launcher's own watchdog, which ends a late worker with `signal`."""

    def __init__(self, signal: int = signals.SIGKILL) -> None:
        self._signal = signal

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        left = max(0.0, expiration_time - time.time())
        _check(library().muster_timer_acquire(scope_id.encode(), left, self._signal))

    def release(self, scope_id: str) -> None:
        _check(library().muster_timer_release(scope_id.encode()))


def _check(result: int) -> None:
    if result not in (0, -errno.ENOTCONN):
        raise OSError(-result, os.strerror(-result))


_client: TimerClient = _MusterClient()


def configure(timer_client: TimerClient | None = None, *, signal: int = signals.SIGKILL) -> None:
    """Chooses the receiver of this process's timers: a client (torch's, for example), or, without one,
    the launcher, which ends a worker that is late with `signal`."""
    global _client
    _client = timer_client or _MusterClient(signal)


@contextlib.contextmanager
def expires(after: float, scope: str | None = None, client: TimerClient | None = None) -> Iterator[None]:
    """Stops this worker if the block takes more than `after` seconds. `scope` is its name in reports; by
    default the place in the source. Blocks may nest."""
    chosen = client or _client
    name = scope or _caller()
    chosen.acquire(name, time.time() + after)
    try:
        yield
    finally:
        chosen.release(name)


def _caller() -> str:
    """FILE#LINE of the `with` statement: past this function, expires() and contextlib."""
    frame = inspect.currentframe()
    while frame and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}#{frame.f_lineno}" if frame else "unknown"
