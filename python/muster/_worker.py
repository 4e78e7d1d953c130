"""Runs in a worker whose entry point is a function: `python -u _worker.py DIRECTORY`.

The directory holds what muster/_function.py put there, and gets what the function returns. This file runs
as a script, before anything is known about where packages are.
"""

from __future__ import annotations

import os
import pickle
import runpy
import sys
import types
from typing import Any

MAIN = "__mp_main__"  # the name under which multiprocessing's children load the script, too


def _load_main(place: tuple[str, str] | None) -> None:
    """Loads the launching program's script, so that functions in it are found where pickle looks: in
    __main__. Its `if __name__ == "__main__"` part does not run."""
    if place is None:
        return
    from muster import _function

    kind, name = place
    _function.loading = name  # a launch meanwhile is refused: it would start a job in every worker
    module = types.ModuleType(MAIN)
    run = runpy.run_module if kind == "module" else runpy.run_path
    module.__dict__.update(run(name, run_name=MAIN))
    sys.modules["__main__"] = sys.modules[MAIN] = module
    _function.loading = None


def _pickled(value: object) -> bytes:
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        if "cloudpickle" not in sys.modules:
            raise
    import cloudpickle  # type: ignore[import-untyped]  # the function came by value, and with it the class of its result

    return cloudpickle.dumps(value)


def _save(path: str, value: object) -> None:
    with open(f"{path}.part", "wb") as file:
        file.write(_pickled(value))
    os.replace(f"{path}.part", path)


def _work(entry: dict[str, Any], result_path: str) -> None:
    _load_main(entry["main"])
    function, args = pickle.loads(entry["call"])
    result = None
    try:
        result = function(*args)
    except SystemExit as e:
        if e.code not in (0, None):
            raise
    _save(result_path, result)


def main(directory: str) -> None:
    with open(os.path.join(directory, "entry"), "rb") as file:
        entry = pickle.load(file)
    sys.path[:] = entry["path"]
    sys.argv[:] = entry["argv"]

    from muster.errors import record

    record(_work)(entry, os.path.join(directory, f"result.{os.environ['RANK']}"))


if __name__ == "__main__":
    main(sys.argv[1])
