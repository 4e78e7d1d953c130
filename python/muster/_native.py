"""libmuster, through ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib

SONAME = "libmuster.so.0"
OVERRIDE = "MUSTER_LIBRARY"


@functools.cache
def library() -> ctypes.CDLL:
    """$MUSTER_LIBRARY, else the one in this package, else the system's."""
    inside = pathlib.Path(__file__).with_name(SONAME)
    path = os.environ.get(OVERRIDE) or (str(inside) if inside.exists() else SONAME)
    try:
        return ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"libmuster cannot be loaded: {e}; name it in {OVERRIDE}") from e


def check(result: int) -> int:
    """Turns the negative errno of a library call into an OSError."""
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def version() -> str:
    """The version of the library, which is that of everything here."""
    text = library().muster_version
    text.restype = ctypes.c_char_p
    return text().decode()
