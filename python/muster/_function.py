"""A function as the entry point of workers: how it gets there, and how its results come back."""

from __future__ import annotations

import io
import os
import pathlib
import pickle
import sys
from collections.abc import Sequence
from typing import Any, Callable

loading: str | None = None  # the script that this process, a worker, is loading right now
WORKER = str(pathlib.Path(__file__).with_name("_worker.py"))
HINT = "a function defined in a module can be sent to workers; for any other, install cloudpickle"


def refuse_nesting() -> None:
    """A worker loads the launching script to find the function in it. A launch at its top level would
    start a job in every worker, and one in each of theirs."""
    if loading is not None:
        raise RuntimeError(f"{loading} launches a job whenever it is loaded, and workers load it to find the function: "
                           'put the launch under `if __name__ == "__main__":`')


def _main_place() -> tuple[str, str] | None:
    """How the workers can load the script that launches them; None: they cannot (a prompt, `python -c`)."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return ("module", spec.name)
    path = getattr(main, "__file__", None)
    if not path or not os.path.exists(path):
        return None
    return ("path", os.path.abspath(path))


def _by_value(call: tuple[Callable[..., Any], tuple[Any, ...]], why: str) -> bytes:
    try:
        import cloudpickle  # type: ignore[import-untyped]
    except ImportError:
        raise pickle.PicklingError(f"{why}: {HINT}") from None
    try:
        return cloudpickle.dumps(call)
    except Exception as e:  # whatever the objects in it raise
        raise pickle.PicklingError(f"{type(e).__name__}: {e}") from e


class _Writer(pickle.Pickler):
    """Refuses what is in __main__, where no worker would find it."""

    def reducer_override(self, obj: Any) -> Any:
        if getattr(obj, "__module__", None) == "__main__" and hasattr(obj, "__qualname__"):
            raise pickle.PicklingError("there is no script to load the function from")
        return NotImplemented


def _pack(function: Callable[..., Any], args: tuple[Any, ...], main: tuple[str, str] | None) -> bytes:
    """By reference as multiprocessing does; by value if workers could not find it by name."""
    data = io.BytesIO()
    try:
        (pickle.Pickler if main else _Writer)(data).dump((function, args))
        return data.getvalue()
    except (pickle.PicklingError, AttributeError, TypeError) as e:
        return _by_value((function, args), str(e))


def send(directory: str, function: Callable[..., Any], args: Sequence[Any], by_value: bool = False) -> list[str]:
    """Writes the call into the directory and returns the command that executes it."""
    main = None if by_value else _main_place()
    entry = {"path": sys.path, "argv": sys.argv, "main": main, "call": _pack(function, tuple(args), main)}
    with open(os.path.join(directory, "entry"), "wb") as file:
        pickle.dump(entry, file)
    return [WORKER, directory]


class _Reader(pickle.Unpickler):
    """The module that the workers know as the launching script is __main__ here."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class("__main__" if module == "__mp_main__" else module, name)


def receive(directory: str, rank: int) -> Any:
    """What the function returned at this rank."""
    try:
        with open(os.path.join(directory, f"result.{rank}"), "rb") as file:
            return _Reader(file).load()
    except FileNotFoundError:
        raise RuntimeError(f"rank {rank} ended with 0 before the function returned: os._exit() was called") from None
