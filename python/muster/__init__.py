"""muster for Python: start functions as workers; timers, heartbeats and the store for workers.

    muster.launcher     LaunchConfig, elastic_launch: torch.distributed.launcher's interface
    muster.record       a decorator that reports the exception a worker ends with to the launcher
    muster.timer        "stop me if this block takes too long"
    muster.heartbeat    "I am making progress"
    muster.Store        the key-value store all workers of a job share

The muster program does the launching, libmuster the rest. Importing this package loads neither torch
nor the library, and runs nothing in the background.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster import launcher, timer
    from muster._native import heartbeat
    from muster._native import version as _version
    from muster.errors import record
    from muster.store import Store

    __version__: str = _version()

__all__ = ["Store", "__version__", "heartbeat", "launcher", "record", "timer"]

# Loaded when first used: a worker that only records its errors should not pay for the rest.
_PLACES = {
    "Store": "muster.store",
    "heartbeat": "muster._native",
    "launcher": "muster.launcher",
    "record": "muster.errors",
    "timer": "muster.timer",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("muster._native").version()
    if name not in _PLACES:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    module = importlib.import_module(_PLACES[name])
    return module if _PLACES[name] == f"muster.{name}" else getattr(module, name)
