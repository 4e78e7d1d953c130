"""libmuster, through ctypes: loading it, errors, and the calls that take no more than a line."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import pathlib
import signal
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

SONAME = "libmuster.so.0"
OVERRIDE = "MUSTER_LIBRARY"

KEY_FN = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
_HANDLE = c_void_p
_VALUE_OUT = (POINTER(c_void_p), POINTER(c_size_t))
_NUMBER_OUT = POINTER(c_int64)

# The argument types of each function; all return an int except those below.
_ARGUMENTS = {
    "muster_timer_acquire": (c_char_p, c_double, c_int),
    "muster_timer_release": (c_char_p,),
    "muster_heartbeat": (),
    "muster_page": (POINTER(c_void_p),),
    "muster_section": (c_char_p,),
    "muster_keep": (c_char_p, c_size_t, POINTER(_HANDLE)),
    "muster_kept_state": (_HANDLE, POINTER(c_uint64)),
    "muster_kept_begin": (_HANDLE,),
    "muster_kept_commit": (_HANDLE, c_uint64),
    "muster_stop_after": (c_uint64,),
    "muster_save_after": (c_uint64,),
    "muster_store_open": (c_char_p, c_double, POINTER(_HANDLE)),
    "muster_store_close": (_HANDLE,),
    "muster_store_set": (_HANDLE, c_char_p, c_char_p, c_size_t, c_double),
    "muster_store_append": (_HANDLE, c_char_p, c_char_p, c_size_t, c_double),
    "muster_store_push": (_HANDLE, c_char_p, c_char_p, c_size_t, c_double),
    "muster_store_get": (_HANDLE, c_char_p, c_double, *_VALUE_OUT),
    "muster_store_pop": (_HANDLE, c_char_p, c_double, *_VALUE_OUT),
    "muster_store_add": (_HANDLE, c_char_p, c_int64, c_double, _NUMBER_OUT),
    "muster_store_compare_set": (_HANDLE, c_char_p, c_char_p, c_size_t, c_char_p, c_size_t, c_double,
                                 *_VALUE_OUT),
    "muster_store_delete": (_HANDLE, c_char_p, c_double),
    "muster_store_check": (_HANDLE, POINTER(c_char_p), c_size_t, c_double),
    "muster_store_wait": (_HANDLE, POINTER(c_char_p), c_size_t, c_double),
    "muster_store_barrier": (_HANDLE, c_char_p, c_int64, c_double),
    "muster_store_num_keys": (_HANDLE, c_double, _NUMBER_OUT),
    "muster_store_keys": (_HANDLE, c_double, KEY_FN, c_void_p),
    "muster_store_queue_len": (_HANDLE, c_char_p, c_double, _NUMBER_OUT),
    "muster_version": (),
    "muster_error": (),
}
_RESULTS = {
    "muster_version": c_char_p,
    "muster_error": c_char_p,
    "muster_kept_state": c_void_p,
    "muster_kept_begin": c_void_p,
}


@functools.cache
def library() -> ctypes.CDLL:
    """$MUSTER_LIBRARY, else the one in this package, else the system's."""
    inside = pathlib.Path(__file__).with_name(SONAME)
    path = os.environ.get(OVERRIDE) or (str(inside) if inside.exists() else SONAME)
    try:
        lib = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"libmuster cannot be loaded: {e}; name it in {OVERRIDE}") from e
    for name, arguments in _ARGUMENTS.items():
        function = getattr(lib, name)
        function.argtypes = arguments
        function.restype = _RESULTS.get(name, c_int)
    return lib


def check(result: int) -> int:
    """Turns the negative errno of a library call into an OSError (a TimeoutError, ...)."""
    if result < 0:
        raise OSError(-result, library().muster_error().decode(errors="replace"))
    return result


def undisturbed(call: Callable[..., int], *arguments: Any) -> int:
    """Calls a function of the library that calls back into Python. Signals wait meanwhile: ctypes drops the
    exception of a signal handler that runs inside a callback, so a Ctrl-C would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        return check(call(*arguments))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def text(value: str | None) -> bytes | None:
    """As C has it; None stays none."""
    return None if value is None else value.encode(errors="surrogateescape")


def words(values: Sequence[str]) -> Any:
    """A list of texts that ends in NULL."""
    return (c_char_p * (len(values) + 1))(*map(text, values), None)


def version() -> str:
    """The version of the library, which is that of everything here."""
    return library().muster_version().decode()


def heartbeat() -> None:
    """Tells the launcher that this worker makes progress (--hang-timeout). Cheap enough for
    the innermost loop; in a process that muster did not start it does nothing."""
    result = library().muster_heartbeat()
    if result not in (0, -errno.ENOTCONN):
        raise OSError(-result, os.strerror(-result))
