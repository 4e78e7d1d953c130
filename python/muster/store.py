"""The key-value store that all workers of a job share; torch's TCPStore sees the same keys."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int64, c_size_t, c_void_p
from datetime import timedelta
from typing import Any, Callable, Union

from muster._native import KEY_FN, check, library

__all__ = ["Store"]

DEFAULT_TIMEOUT = 300.0
Value = Union[str, bytes]
Timeout = Union[float, timedelta, None]

_libc = ctypes.CDLL(None)
_libc.free.argtypes = (c_void_p,)


class Store:
    """A connection to a store. Keys are texts; values go in as texts or bytes and come out as bytes.

    Every call takes at most `timeout` seconds (the one of the store unless it is given; negative for
    ever) and raises TimeoutError past that. Threads may share a connection; their calls follow one
    another.

        store = muster.Store()          # of the job that this worker belongs to
        store.set("a", "1")
        store.add("sum", rank)
        store.barrier("done", world)
    """

    def __init__(self, address: str | None = None, timeout: Timeout = DEFAULT_TIMEOUT, prefix: str = "") -> None:
        """`address`: "host:port"; None: $MASTER_ADDR and $MASTER_PORT. Tries until the store answers.
        With a prefix P the keys are P/KEY, as with torch's PrefixStore."""
        self._handle = c_void_p()
        self._prefix = f"{prefix}/" if prefix else ""
        self.timeout = _seconds(timeout, DEFAULT_TIMEOUT)
        check(library().muster_store_open(address.encode() if address else None, self.timeout,
                                          byref(self._handle)))

    def close(self) -> None:
        """Closes the connection; any later call fails."""
        if self._handle:
            library().muster_store_close(self._handle)
            self._handle = c_void_p()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def set(self, key: str, value: Value, timeout: Timeout = None) -> None:
        self._write("muster_store_set", key, value, timeout)

    def append(self, key: str, value: Value, timeout: Timeout = None) -> None:
        """Adds to the end of the value."""
        self._write("muster_store_append", key, value, timeout)

    def get(self, key: str, timeout: Timeout = None) -> bytes:
        """Waits for the key."""
        return self._read("muster_store_get", key, timeout) or b""

    def add(self, key: str, amount: int = 1, timeout: Timeout = None) -> int:
        """Adds to a number kept as decimal text, and returns the sum."""
        return self._number("muster_store_add", self._key(key), amount, timeout=timeout)

    def compare_set(self, key: str, expected: Value, desired: Value, timeout: Timeout = None) -> bytes:
        """Sets the key to `desired` if it is `expected`, or if it is not there and `expected` is empty.
        Returns the value it has afterwards."""
        old, new = _bytes(expected), _bytes(desired)
        value, length = c_void_p(), c_size_t()
        self._call("muster_store_compare_set", self._key(key), old, len(old), new, len(new),
                   self._patience(timeout), byref(value), byref(length))
        return _take(value, length)

    def delete_key(self, key: str, timeout: Timeout = None) -> bool:
        """True if it existed."""
        return bool(self._call("muster_store_delete", self._key(key), self._patience(timeout)))

    def check(self, keys: Sequence[str], timeout: Timeout = None) -> bool:
        """True if all exist."""
        return bool(self._call("muster_store_check", *self._keys(keys), self._patience(timeout)))

    def wait(self, keys: Sequence[str], timeout: Timeout = None) -> None:
        """Waits until all exist."""
        self._call("muster_store_wait", *self._keys(keys), self._patience(timeout))

    def barrier(self, key: str, world_size: int, timeout: Timeout = None) -> None:
        """Waits until `world_size` processes have called it; a key serves once."""
        self._call("muster_store_barrier", self._key(key), world_size, self._patience(timeout))

    def keys(self, timeout: Timeout = None) -> list[str]:
        """All keys (below the prefix), in any order."""
        found: list[str] = []
        on_key: Callable[..., Any] = KEY_FN(lambda _, key: found.append(key.decode(errors="surrogateescape")))
        self._call("muster_store_keys", self._patience(timeout), on_key, None)
        return [key[len(self._prefix):] for key in found if key.startswith(self._prefix)]

    def num_keys(self, timeout: Timeout = None) -> int:
        """The number of keys, torch's own included, whatever the prefix."""
        return self._number("muster_store_num_keys", timeout=timeout)

    def queue_push(self, key: str, value: Value, timeout: Timeout = None) -> None:
        self._write("muster_store_push", key, value, timeout)

    def queue_pop(self, key: str, timeout: Timeout = None) -> bytes | None:
        """The oldest value of the queue; None if there is none."""
        return self._read("muster_store_pop", key, timeout, none_at=0)

    def queue_len(self, key: str, timeout: Timeout = None) -> int:
        return self._number("muster_store_queue_len", self._key(key), timeout=timeout)

    # -- calls --

    def _call(self, function: str, *args: Any) -> int:
        if not self._handle:
            raise ValueError("the store is closed")
        return check(getattr(library(), function)(self._handle, *args))

    def _write(self, function: str, key: str, value: Value, timeout: Timeout) -> None:
        data = _bytes(value)
        self._call(function, self._key(key), data, len(data), self._patience(timeout))

    def _read(self, function: str, key: str, timeout: Timeout, none_at: int = -1) -> bytes | None:
        value, length = c_void_p(), c_size_t()
        result = self._call(function, self._key(key), self._patience(timeout), byref(value), byref(length))
        return None if result == none_at else _take(value, length)

    def _number(self, function: str, *args: Any, timeout: Timeout) -> int:
        number = c_int64()
        self._call(function, *args, self._patience(timeout), byref(number))
        return number.value

    def _key(self, key: str) -> bytes:
        text = (self._prefix + key).encode(errors="surrogateescape")
        if b"\0" in text:
            raise ValueError("a key has no NUL")
        return text

    def _keys(self, keys: Sequence[str]) -> tuple[Any, int]:
        return (c_char_p * max(1, len(keys)))(*map(self._key, keys)), len(keys)

    def _patience(self, timeout: Timeout) -> float:
        return _seconds(timeout, self.timeout)


def _seconds(timeout: Timeout, default: float) -> float:
    if timeout is None:
        return default
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _bytes(value: Value) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _take(value: c_void_p, length: c_size_t) -> bytes:
    """Copies the library's result and frees it."""
    try:
        return ctypes.string_at(value, length.value)  # type: ignore[arg-type]
    finally:
        _libc.free(value)
