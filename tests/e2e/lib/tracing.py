"""A tracer: what it has seized stays a zombie after its death, until the tracer has looked."""

import contextlib
import ctypes
import os
import signal

PTRACE_SEIZE = 0x4206
WALL = 0x40000000


@contextlib.contextmanager
def traced(pid):
    """Whoever reaps the process waits until the end of the block; by then it must have been killed, and if the test
    fails before that, it is killed here."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(PTRACE_SEIZE, pid, None, None) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.waitpid(pid, WALL)
