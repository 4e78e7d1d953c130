"""A running batch: the muster program as libmuster starts and follows it."""

from __future__ import annotations

import collections
import ctypes
import functools
import json
import os
import select
from collections.abc import Iterator, Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any

from muster._native import check, library, text, undisturbed, words
from muster._program import find_program


class _Order(ctypes.Structure):
    _fields_ = [
        ("id", c_char_p),
        ("shell", c_char_p),
        ("argv", POINTER(c_char_p)),
        ("source", c_char_p),
        ("labels", POINTER(c_char_p)),
        ("env", POINTER(c_char_p)),
        ("cwd", c_char_p),
        ("stdin_path", c_char_p),
        ("group", c_char_p),
        ("variant", c_char_p),
        ("timeout", c_double),
        ("cores", c_int),
        ("retries", c_int),
        ("runs", c_int),
    ]


class _Config(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("order_size", c_size_t),
        ("program", c_char_p),
        ("orders", POINTER(_Order)),
        ("order_count", c_size_t),
        ("options", POINTER(c_char_p)),
        ("env", POINTER(c_char_p)),
        ("cwd", c_char_p),
        ("output", c_char_p),
        ("resume", c_int),
        ("stdout_fd", c_int),
        ("stderr_fd", c_int),
    ]


class _Result(ctypes.Structure):
    _fields_ = [("order", c_int64), ("id", c_char_p), ("json", c_char_p)]  # what follows is in the JSON too


_RESULT_FN = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_Result))


@functools.cache
def _lib() -> ctypes.CDLL:
    lib = library()
    lib.muster_batch_start.argtypes = (POINTER(_Config), POINTER(c_void_p))
    lib.muster_batch_fd.argtypes = (c_void_p,)
    lib.muster_batch_step.argtypes = (c_void_p, _RESULT_FN, c_void_p)
    lib.muster_batch_signal.argtypes = (c_void_p, c_int)
    lib.muster_batch_exit_code.argtypes = (c_void_p,)
    lib.muster_batch_free.argtypes = (c_void_p,)
    lib.muster_batch_free.restype = None
    return lib


@dataclass(frozen=True)
class Order:
    """One order, as muster.h has it."""

    command: str | Sequence[str]
    id: str | None
    source: str | None
    labels: Mapping[str, str]
    env: Mapping[str, str | None]
    cwd: str | None
    stdin: str | None
    timeout: float
    cores: int
    retries: int
    runs: int

    def raw(self) -> _Order:
        line = self.command if isinstance(self.command, str) else None
        return _Order(
            id=text(self.id),
            shell=text(line),
            argv=None if line is not None else words(self.command),
            source=text(self.source),
            labels=words([f"{name}={value}" for name, value in self.labels.items()]),
            env=words([name if value is None else f"{name}={value}" for name, value in self.env.items()]),
            cwd=text(self.cwd),
            stdin_path=text(self.stdin),
            timeout=self.timeout,
            cores=self.cores,
            retries=self.retries,
            runs=self.runs,
        )


class Batch:
    """Use as a context manager: on exit nothing of the batch is left. follow() starts it."""

    def __init__(self, orders: Sequence[Order], options: Sequence[str], output: str | None, resume: bool,
                 stderr: int) -> None:
        self._raws = raws = [order.raw() for order in orders]  # the configuration points into them
        self._config = _Config(
            size=ctypes.sizeof(_Config),
            order_size=ctypes.sizeof(_Order),
            program=text(find_program()),
            orders=(_Order * len(raws))(*raws),
            order_count=len(raws),
            options=words(options),
            output=text(output),
            resume=resume,
            stdout_fd=-1,
            stderr_fd=stderr,
        )
        self._handle = c_void_p()
        self._found: collections.deque[tuple[int, dict[str, Any]]] = collections.deque()
        self._on_result = _RESULT_FN(self._take)

    def _take(self, _: Any, result: Any) -> None:
        line = result.contents.json.decode("utf-8", "surrogateescape")
        self._found.append((result.contents.order, json.loads(line)))

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        _lib().muster_batch_free(self._handle)
        self._handle = c_void_p()

    @property
    def started(self) -> bool:
        return bool(self._handle)

    def signal(self, sig: int) -> None:
        """Passes a signal on to the program; does nothing if it has ended."""
        _lib().muster_batch_signal(self._handle, sig)

    def follow(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Starts the program and gives the attempts as they end, with the places of their orders (-1: a canary).
        Python's signal handlers run meanwhile; after an exception of theirs, call it again."""
        if not self.started:
            check(_lib().muster_batch_start(byref(self._config), byref(self._handle)))
        over = False
        poll = select.poll()
        poll.register(_lib().muster_batch_fd(self._handle), select.POLLIN)
        while self._found or not over:
            while self._found:
                yield self._found.popleft()
            if not over:
                poll.poll()
                over = bool(undisturbed(_lib().muster_batch_step, self._handle, self._on_result, None))

    def exit_code(self) -> int:
        return int(_lib().muster_batch_exit_code(self._handle))


def read_output(path: str | None, folder: str) -> str:
    """What an order printed. A file in `folder` is ours and is not needed any more."""
    if path is None:
        return ""
    try:
        with open(path, "rb") as file:
            data = file.read()
        if os.path.dirname(path) == folder:
            os.unlink(path)
    except FileNotFoundError:  # of an earlier run that this one resumes
        return ""
    return data.decode("utf-8", "replace")
