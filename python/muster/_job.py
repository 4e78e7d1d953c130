"""A running job: the muster program as libmuster starts and follows it."""

from __future__ import annotations

import ctypes
import functools
import json
import select
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Callable

from muster._native import check, library, text, undisturbed, words
from muster._program import find_program


class _Config(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("program", c_char_p),
        ("command", POINTER(c_char_p)),
        ("options", POINTER(c_char_p)),
        ("env", POINTER(c_char_p)),
        ("cwd", c_char_p),
        ("nproc_per_node", c_int),
        ("max_restarts", c_int),
        ("stdio", c_int * 3),
    ]


class _Event(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("json", c_char_p)]  # what follows is in the JSON too


class _WorkerEnd(ctypes.Structure):
    _fields_ = [
        ("rank", c_int64),
        ("local_rank", c_int64),
        ("pid", c_int),
        ("exit_code", c_int),
        ("signal", c_int),
        ("first", c_int),
        ("ended_ms", c_int64),
        ("error_file", c_char_p),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        ("exit_code", c_int),
        ("restarts", c_int64),
        ("count", c_size_t),
        ("workers", POINTER(_WorkerEnd)),
    ]


_EVENT_FN = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_Event))


@functools.cache
def _lib() -> ctypes.CDLL:
    lib = library()
    lib.muster_job_start.argtypes = (POINTER(_Config), POINTER(c_void_p))
    lib.muster_job_fd.argtypes = (c_void_p,)
    lib.muster_job_step.argtypes = (c_void_p, _EVENT_FN, c_void_p)
    lib.muster_job_signal.argtypes = (c_void_p, c_int)
    lib.muster_job_take_result.argtypes = (c_void_p,)
    lib.muster_job_take_result.restype = POINTER(_Result)
    lib.muster_job_free.argtypes = (c_void_p,)
    lib.muster_job_free.restype = None
    lib.muster_result_free.argtypes = (POINTER(_Result),)
    lib.muster_result_free.restype = None
    return lib


@dataclass(frozen=True)
class WorkerEnd:
    """How one worker of this host ended, in the last round."""

    rank: int
    local_rank: int
    pid: int
    exitcode: int  # negative: a signal; never None: an unknown end is 255
    first: bool  # to fail on this host
    ended: float  # wall clock, seconds
    error_file: str


@dataclass(frozen=True)
class JobResult:
    exit_code: int
    restarts: int
    workers: list[WorkerEnd]


UNKNOWN_END = 255


def _worker_end(raw: Any) -> WorkerEnd:
    code = raw.exit_code if raw.exit_code >= 0 else UNKNOWN_END
    return WorkerEnd(
        rank=raw.rank,
        local_rank=raw.local_rank,
        pid=raw.pid,
        exitcode=-raw.signal if raw.signal else code,
        first=bool(raw.first),
        ended=raw.ended_ms / 1000,
        error_file=(raw.error_file or b"").decode(errors="surrogateescape"),
    )


class Job:
    """Use as a context manager: on exit nothing of the job is left."""

    def __init__(self, command: Sequence[str], options: Sequence[str], env: Mapping[str, str | None]) -> None:
        """Starts `muster run OPTIONS -- COMMAND`. `env` are changes to our environment; None unsets a
        variable."""
        changes = [name if value is None else f"{name}={value}" for name, value in env.items()]
        config = _Config(
            size=ctypes.sizeof(_Config),
            program=text(find_program()),
            command=words(command),
            options=words(options),
            env=words(changes),
            stdio=(c_int * 3)(-1, -1, -1),
        )
        self._handle = c_void_p()
        check(_lib().muster_job_start(byref(config), byref(self._handle)))
        self._lines: list[bytes] = []
        self._on_event = _EVENT_FN(lambda _, event: self._lines.append(event.contents.json))

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        _lib().muster_job_free(self._handle)
        self._handle = c_void_p()

    def signal(self, sig: int) -> None:
        """Passes a signal on to the job; does nothing if it has ended."""
        _lib().muster_job_signal(self._handle, sig)

    def follow(self, on_event: Callable[[dict[str, Any]], None]) -> JobResult:
        """Waits for the end and passes events on. Python's signal handlers run meanwhile."""
        over = False
        poll = select.poll()
        poll.register(_lib().muster_job_fd(self._handle), select.POLLIN)
        while not over:
            poll.poll()
            over = bool(undisturbed(_lib().muster_job_step, self._handle, self._on_event, None))
            lines, self._lines[:] = self._lines[:], []
            for line in lines:
                on_event(json.loads(line))
        return self._result()

    def _result(self) -> JobResult:
        raw = _lib().muster_job_take_result(self._handle)
        try:
            workers = [_worker_end(raw.contents.workers[i]) for i in range(raw.contents.count)]
            return JobResult(raw.contents.exit_code, raw.contents.restarts, workers)
        finally:
            _lib().muster_result_free(raw)
