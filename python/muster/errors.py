"""How workers report errors: the error file, and what the launcher makes of it.

The file is the one torch's `@record` writes and torch's agent reads, so that workers and launchers of
both kinds understand each other.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import signal
import socket
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, TypeVar

from muster._uncaught import ERROR_FILE, write_error_file, write_whole

__all__ = ["ChildFailedError", "ProcessFailure", "SignalException", "record", "write_error_file"]

NOT_AVAILABLE = "<N/A>"
NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
WIDTH_MAX = 60

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


def _pass_up(failure: ProcessFailure) -> None:
    """Writes the first failure of our own workers to the error file of our launcher."""
    path = os.environ.get(ERROR_FILE)
    if not path or failure.error_file == NOT_AVAILABLE:
        return
    data = dict(failure.error_file_data)
    if isinstance(data.get("message"), dict):
        data["message"] = {**data["message"], "errorCode": failure.exitcode}
    write_whole(path, json.dumps(data))


def record(fn: F) -> F:
    """A decorator for the main function of a worker: reports the exception it ends with to the launcher,
    which shows it in its report. SystemExit is not an error of its own; `sys.exit(0)` is a return.

    With a ChildFailedError it reports the error of the first worker that failed.
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit as e:
            if e.code == 0:
                return None
            raise
        except Exception as e:
            if _is_child_failed(e):
                _pass_up(e.get_first_failure()[1])  # type: ignore[attr-defined]
            else:
                write_error_file(e, skip=1)
            raise

    return wrapper  # type: ignore[return-value]


def _is_child_failed(error: Exception) -> bool:
    """Ours or torch's, without importing torch."""
    return any(kind.__name__ == "ChildFailedError" for kind in type(error).__mro__)


class SignalException(Exception):
    """A signal asked the launcher to end; its workers are gone when this is raised."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


@dataclass
class ProcessFailure:
    """One worker that failed. `message` is what it recorded (a dict) or a sentence about its end."""

    local_rank: int
    pid: int
    exitcode: int  # negative: the signal that ended it
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data = {"message": "<NONE>"}
        self.message = ""
        self.timestamp = int(time.time())
        self._read_error_file()
        if not self.message:
            self.message = self._describe_end()

    def _read_error_file(self) -> None:
        """Treats a truncated or invalid file as missing."""
        if not os.path.isfile(self.error_file):
            self.error_file = NOT_AVAILABLE
            return
        try:
            with open(self.error_file, encoding="utf-8") as file:
                data = json.load(file)
            message = data["message"]
            stamp = data.get("timestamp", 0) if isinstance(message, str) else message["extraInfo"]["timestamp"]
            self.timestamp = int(stamp)
        except (OSError, ValueError, TypeError, KeyError) as e:
            log.warning("the error file %s is of no use: %s: %s", self.error_file, type(e).__name__, e)
            return
        self.error_file_data = data
        self.message = message

    def _describe_end(self) -> str:
        if self.exitcode < 0:
            return f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        return NO_TRACEBACK

    def signal_name(self) -> str:
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """Local time, YYYY-MM-DD_HH:MM:SS."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Workers failed and no restart was left. `failures` has those of this host by global rank."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError("an error of workers needs a worker that failed")
        self.name = name
        self.failures = failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank and failure that came first."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The table that torchrun prints."""
        title = f"{self.name} FAILED"
        first, _ = self.get_first_failure()
        blocks = {rank: _format_failure(i, rank, failure)
                  for i, (rank, failure) in enumerate(self.failures.items())}
        lines = [line for block in blocks.values() for line in block.split("\n")]
        width = min(WIDTH_MAX, max(map(len, [title, *lines])))
        section = section_delim * width
        others = [block for rank, block in blocks.items() if rank != first]
        return "\n".join([
            "",
            boarder_delim * width,
            title,
            section,
            "Failures:",
            *(others or ["  <NO_OTHER_FAILURES>"]),
            section,
            "Root Cause (first observed failure):",
            blocks[first],
            boarder_delim * width,
        ])


def _format_failure(index: int, rank: int, failure: ProcessFailure) -> str:
    message = failure.message
    if isinstance(message, dict):
        message = message.get("extraInfo", {}).get("py_callstack", message.get("message", NOT_AVAILABLE))
        message = message.replace("\n", "\n  ")
    name = failure.signal_name()
    return "\n".join([
        f"[{index}]:",
        f"  time      : {failure.timestamp_isoformat()}",
        f"  host      : {socket.getfqdn()}",
        f"  rank      : {rank} (local_rank: {failure.local_rank})",
        f"  exitcode  : {failure.exitcode} (pid: {failure.pid}) {'' if name == NOT_AVAILABLE else f' ({name})'}",
        f"  error_file: {failure.error_file}",
        f"  traceback : {message}",
    ])
