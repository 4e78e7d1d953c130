"""Steps: how far this worker has got, told to the launcher through a page of shared memory.

muster.step() is meant for the training loop, so it writes into the page itself: a call into the library
would cost more than all it does. muster-page(7) has the layout.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import time
from collections.abc import Callable, Iterator

from muster._native import check, library, text

__all__ = ["save_after", "saved", "section", "step", "stop_after"]

_PAGE_BYTES = 4096
# Places in the page, in words of 8 bytes. step() has those it always needs as numbers: 2 steps told, 3 the last
# one, 4 steps in all, 64 to 127 the times of the last ones; stop_after() and save_after(): 10 what is asked for.
_SAVED, _FIRST_STEP, _FIRST_NS = 5, 6, 7

_page: memoryview | None = None
_now = time.monotonic_ns


def _map() -> memoryview:
    """The page as words; memory of our own where muster did not start this process."""
    global _page
    address = ctypes.c_void_p()
    result = library().muster_page(ctypes.byref(address))
    if result != -errno.ENOTCONN:
        check(result)
    inside = (ctypes.c_char * _PAGE_BYTES).from_address(address.value) if address.value else bytearray(_PAGE_BYTES)
    _page = memoryview(inside).cast("B").cast("Q")
    return _page


def step(number: int, total: int | None = None) -> None:
    """Tells the launcher that step `number` is done, and how many there will be in all. Costs less than a
    microsecond: it belongs into the training loop. Elsewhere than in a worker it does nothing."""
    page = _page
    if page is None:
        page = _map()
    told = page[2] + 1
    when = _now()
    if told == 1:
        page[_FIRST_STEP] = number
        page[_FIRST_NS] = when
    page[64 + (told & 63)] = when
    page[3] = number
    page[2] = told
    if total is not None:
        page[4] = total


def saved(number: int) -> None:
    """Tells the launcher that the state after step `number` is saved: a restart can begin there."""
    page = _map() if _page is None else _page
    page[_SAVED] = number + 1


def stop_after(number: int) -> bool:
    """Whether to leave after step `number`: after SIGTERM or SIGUSR1 to `muster run` on any
    host, all workers get True after the same step. To be asked after every step, from the first one on:

        if muster.stop_after(step):
            save()
            sys.exit(0)

    One read of memory while there is nothing to do. Elsewhere than in a worker it is always False."""
    if _asks_to_stop and not _asks_to_stop[0][10]:
        return False
    return _ask(library().muster_stop_after, number, _asks_to_stop)


def save_after(number: int) -> bool:
    """Whether to save after step `number`, to leave then (stop_after() says so) or to go on. To be asked before stop_after()."""
    if _asks_to_save and not _asks_to_save[0][10]:
        return False
    return _ask(library().muster_save_after, number, _asks_to_save)


# The page, once the launcher knows that this worker asks.
_asks_to_stop: list[memoryview] = []
_asks_to_save: list[memoryview] = []


def _ask(function: Callable[[int], int], number: int, asks: list[memoryview]) -> bool:
    if not asks:
        asks.append(_map() if _page is None else _page)
    return function(number) == 1


@contextlib.contextmanager
def section(name: str) -> Iterator[None]:
    """Names what the worker does in this block, for `muster status` and reports."""
    outer = _sections[-1] if _sections else None
    _enter(name)
    _sections.append(name)
    try:
        yield
    finally:
        _sections.pop()
        _enter(outer)


_sections: list[str] = []


def _enter(name: str | None) -> None:
    result = library().muster_section(text(name))
    if result != -errno.ENOTCONN:
        check(result)
