"""Where the muster program is."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys

OVERRIDE = "MUSTER_PROGRAM"


def _installed() -> str | None:
    """The one that was installed together with this package, wherever pip put it."""
    try:
        files = importlib.metadata.files("muster") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "muster" and file.parent.name == "bin":
            return os.path.realpath(str(file.locate()))
    return None


def find_program() -> str:
    """The path of the program: $MUSTER_PROGRAM, else the one installed with the package, else the one
    beside the interpreter, else the first on PATH."""
    candidates = (
        os.environ.get(OVERRIDE),
        _installed(),
        os.path.join(os.path.dirname(sys.executable), "muster"),
        shutil.which("muster"),
    )
    for path in candidates:
        if path and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(f"the muster program is not installed; name it in {OVERRIDE}")
