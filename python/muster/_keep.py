"""State that outlives the worker: memory that the launcher holds for the next worker of this rank.

    kept = muster.keep("model", nbytes)
    if kept.state is not None:
        load(kept.state, kept.step)          # after a restart: the newest step that all ranks have committed
    ...
    fill(kept.begin())                       # a memoryview of nbytes, for numpy.frombuffer, torch.frombuffer, ...
    kept.commit(step)
"""

from __future__ import annotations

import ctypes
from typing import Any

from muster._native import check, library, text

__all__ = ["Kept", "keep"]


class Kept:
    """Two places for a state of a fixed size. A state counts when it is committed; until the next one is, and while it
    is written, it stays. A worker that is killed at any moment leaves whole states."""

    def __init__(self, handle: Any, size: int) -> None:
        self._handle = handle
        self.size = size
        self._step = ctypes.c_uint64()

    def _view(self, address: int) -> memoryview:
        return memoryview((ctypes.c_char * self.size).from_address(address)).cast("B")

    @property
    def step(self) -> int | None:
        """The step of the newest state; None: there is none."""
        if not library().muster_kept_state(self._handle, ctypes.byref(self._step)):
            return None
        return self._step.value

    @property
    def state(self) -> memoryview | None:
        """The newest state, to read; None: there is none."""
        address = library().muster_kept_state(self._handle, None)
        return self._view(address).toreadonly() if address else None

    def begin(self) -> memoryview:
        """The place for the next state, to be filled. What is in it before is of no use."""
        return self._view(library().muster_kept_begin(self._handle))

    def commit(self, step: int) -> None:
        """What begin() gave is the state after `step`, which must be later than the last one."""
        check(library().muster_kept_commit(self._handle, step))

    def save(self, step: int, data: bytes | bytearray | memoryview) -> None:
        """begin(), a copy of `data`, which has `size` bytes, and commit()."""
        view = memoryview(data).cast("B")
        if view.nbytes != self.size:
            raise ValueError(f"{view.nbytes} bytes for a state of {self.size}")
        self.begin()[:] = view
        self.commit(step)


def keep(name: str, size: int) -> Kept:
    """Memory of this rank with that name for states of `size` bytes, with what the last worker of this rank left in it
    if all ranks can go on from there. Elsewhere than in a worker it is ordinary memory."""
    handle = ctypes.c_void_p()
    check(library().muster_keep(text(name), size, ctypes.byref(handle)))
    return Kept(handle, size)
