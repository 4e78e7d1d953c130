"""Functions, scripts and programs as workers: the interface of torch.distributed.launcher, with the
muster program as the agent.

    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=4, max_restarts=3)
    results = elastic_launch(config, train)(epochs, batch_size)     # {rank: what train() returned}
    elastic_launch(config, "train.py")("--lr", "0.1")
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Union

from muster import _function, errors
from muster._config import DefaultLogsSpecs, LaunchConfig, Std
from muster._job import Job, JobResult, WorkerEnd
from muster.errors import ChildFailedError, ProcessFailure, SignalException

__all__ = [
    "ChildFailedError",
    "DefaultLogsSpecs",
    "LaunchConfig",
    "LaunchError",
    "ProcessFailure",
    "SignalException",
    "Std",
    "elastic_launch",
    "launch_agent",
]

log = logging.getLogger(__name__)

USAGE, TIMEOUT, NOT_EXECUTABLE, NOT_FOUND = 2, 124, 126, 127  # exit codes of the program

Entrypoint = Union[Callable[..., Any], str]


class LaunchError(RuntimeError):
    """The launcher itself failed; no worker did. stderr says what was wrong. `exit_code` is that
    of the muster program: 2 for a wrong option, 124 when no other node came in time, 125 for trouble with
    the system."""

    def __init__(self, exit_code: int, problem: str = "") -> None:
        super().__init__(f"muster ended with {exit_code}: {problem or 'its message is on stderr'}")
        self.exit_code = exit_code


class elastic_launch:
    """elastic_launch(config, entrypoint)(*args) runs the entry point in every worker of a job, and
    returns what it returned on this host by global rank (None for scripts and programs).

    A function runs in a fresh interpreter. A text is a script (*.py, or a file that is not executable) or
    a program; in its arguments $local_rank is replaced.

    Raises ChildFailedError when workers failed and no restart was left, SignalException when this
    process got a signal to end (the workers are gone by then; other nodes go on), LaunchError,
    FileNotFoundError or PermissionError when nothing could be started.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Entrypoint) -> None:
        self._config = config
        self._entrypoint = entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Entrypoint, args: Sequence[Any]) -> dict[int, Any]:
    """What elastic_launch does, as a function."""
    return launch(config, entrypoint, args)


def launch(config: LaunchConfig, entrypoint: Entrypoint, args: Sequence[Any], kinds: Any = errors,
           by_value: bool = False) -> dict[int, Any]:
    """The same with other classes for the errors, those of `kinds`. `by_value`: nothing of the launching script is
    loaded in workers, a function takes along what it uses of it. Raises pickle.PicklingError before anything runs."""
    _function.refuse_nesting()
    config.check()
    if not config.run_id:
        config.run_id = str(uuid.uuid4().int)
        log.warning("config has no run_id, generated a random run_id: %s", config.run_id)
    name = _get_entrypoint_name(entrypoint, args)
    with tempfile.TemporaryDirectory(prefix="muster_") as scratch:
        if callable(entrypoint):
            command = _function.send(scratch, entrypoint, args, by_value)
        elif entrypoint:
            command = [str(entrypoint), *map(str, args)]
        else:
            raise ValueError("there is no entry point")
        workers = run(command, config.options(), config.signals(), name, kinds, _environment(config), config.on_event)
        return {worker.rank: _function.receive(scratch, worker.rank) if callable(entrypoint) else None
                for worker in workers}


def _get_entrypoint_name(entrypoint: Entrypoint | None, args: Sequence[Any]) -> str:
    """How reports call the job: the function, the program, or the script that our own interpreter runs."""
    if callable(entrypoint):
        return getattr(entrypoint, "__name__", type(entrypoint).__name__)
    if entrypoint == sys.executable:
        return next((arg for arg in args if not arg.startswith("-")), "")
    return entrypoint or ""


# -- running --


@dataclass
class _Notes:
    """What the events of a job said."""

    stops: list[signal.Signals] = field(default_factory=list)  # that we or the program were sent
    problem: str = ""  # why a worker could not be started

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "stop.requested":
            self.stops.append(signal.Signals[event["signal"]])
        if event["event"] == "group.failed":
            self.problem = event.get("detail", "")


def run(command: Sequence[str], options: Sequence[str], signals: Sequence[signal.Signals], name: str, kinds: Any,
        env: Mapping[str, str | None], on_event: Callable[[dict[str, Any]], None] | None = None) -> list[WorkerEnd]:
    """Follows a job to its end, and returns the workers of this host if it ended well."""
    notes = _Notes()

    def note(event: dict[str, Any]) -> None:
        notes.take(event)
        if on_event:
            on_event(event)

    with Job(command, options, env) as job, _handling(signals, job, notes.stops):
        result = job.follow(note)
    if notes.stops:
        stop = notes.stops[0]
        raise kinds.SignalException(f"Process {os.getpid()} got signal: {int(stop)}", sigval=stop)
    if result.exit_code != 0:
        raise _error_of(result, name, command[0], notes.problem, kinds)
    return result.workers


def own_environment() -> dict[str, str | None]:
    """Changes to our environment for the program and the workers."""
    env: dict[str, str | None] = {errors.ERROR_FILE: None}  # ours; the workers get one each
    if "PYTHON_EXEC" not in os.environ:
        env["PYTHON_EXEC"] = sys.executable
    return env


def _environment(config: LaunchConfig) -> dict[str, str | None]:
    env = own_environment()
    if config.log_line_prefix_template is not None:
        env["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = config.log_line_prefix_template
    return env


@contextlib.contextmanager
def _handling(signals: Sequence[signal.Signals], job: Job, stops: list[signal.Signals]) -> Iterator[None]:
    """While the job runs, passes signals that mean its end on to it. Only the main thread can set
    handlers; in another thread the existing ones stay."""
    if threading.current_thread() is not threading.main_thread():
        log.warning("not in the main thread: signals do not reach the job")
        yield
        return

    def on_signal(number: int, _: object) -> None:
        stops.append(signal.Signals(number))
        job.signal(number)

    before = {number: signal.signal(number, on_signal) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


# -- failing --


def _error_of(result: JobResult, name: str, program: str, problem: str, kinds: Any) -> Exception:
    started = not any(worker.first and not worker.pid for worker in result.workers)
    failures = _failures(result, kinds)
    if failures and started:
        return kinds.ChildFailedError(name, failures)
    if result.exit_code == NOT_FOUND:
        return FileNotFoundError(errno.ENOENT, problem or "no such script or program", program)
    if result.exit_code == NOT_EXECUTABLE:
        return PermissionError(errno.EACCES, problem or "cannot be executed", program)
    if result.exit_code == TIMEOUT and hasattr(kinds, "RendezvousTimeoutError"):
        return kinds.RendezvousTimeoutError(str(LaunchError(TIMEOUT, problem)))
    if result.exit_code == USAGE and hasattr(kinds, "UsageError"):
        return kinds.UsageError(USAGE, problem)
    return LaunchError(result.exit_code, problem)


def _failures(result: JobResult, kinds: Any) -> dict[int, Any]:
    """The workers that failed, the first one in front: the order decides between equal seconds."""
    ended = sorted((w for w in result.workers if w.exitcode != 0), key=lambda w: (not w.first, w.ended))
    return {worker.rank: _failure(worker, kinds) for worker in ended}


def _failure(worker: WorkerEnd, kinds: Any) -> Any:
    failure = kinds.ProcessFailure(worker.local_rank, worker.pid, worker.exitcode, worker.error_file)
    if failure.error_file != worker.error_file and worker.ended:
        failure.timestamp = int(worker.ended)
    return failure
