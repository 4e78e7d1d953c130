"""muster for Python: start functions as workers; timers, heartbeats and the store for workers.

    muster.batch        WorkOrder, CorePool, Runner: many commands side by side, measured
    muster.launcher     LaunchConfig, elastic_launch: torch.distributed.launcher's interface
    muster.record       a decorator that reports the exception a worker ends with to the launcher
    muster.timer        "stop me if this block takes too long"
    muster.heartbeat    "I am making progress"
    muster.step         "this is how far I have got"; muster.saved, muster.section: and what is on disk, what I do
    muster.keep         memory that the next worker of this rank gets after a restart
    muster.stop_after   "must I leave after this step?", the same step for all; muster.save_after: "and save?"
    muster.Store        the key-value store all workers of a job share

The muster program does the launching, libmuster the rest. Importing this package loads neither torch
nor the library, and runs nothing in the background.
"""

from __future__ import annotations

import importlib
TYPE_CHECKING = False  # typing.TYPE_CHECKING without typing, which costs more than all else at the start of a Python with the switch on
if TYPE_CHECKING:
    from typing import Any

    from muster import batch, launcher, timer
    from muster._keep import Kept, keep
    from muster._native import heartbeat
    from muster._native import version as _version
    from muster._steps import save_after, saved, section, step, stop_after
    from muster.errors import record
    from muster.store import Store

    __version__: str = _version()

__all__ = ["Kept", "Store", "__version__", "batch", "heartbeat", "keep", "launcher", "record", "save_after", "saved", "section", "step",
           "stop_after", "timer"]

# Loaded when first used: a worker that only records its errors should not pay for the rest.
_PLACES = {
    "Kept": "muster._keep",
    "Store": "muster.store",
    "batch": "muster.batch",
    "heartbeat": "muster._native",
    "keep": "muster._keep",
    "launcher": "muster.launcher",
    "record": "muster.errors",
    "save_after": "muster._steps",
    "saved": "muster._steps",
    "section": "muster._steps",
    "step": "muster._steps",
    "stop_after": "muster._steps",
    "timer": "muster.timer",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("muster._native").version()
    if name not in _PLACES:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    module = importlib.import_module(_PLACES[name])
    value = module if _PLACES[name] == f"muster.{name}" else getattr(module, name)
    globals()[name] = value  # the next use finds it at once
    return value
