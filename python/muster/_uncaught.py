"""Reports an uncaught exception to the launcher, without a change to the worker's program.

This runs at the start of every worker's interpreter: through muster.pth where the package is
installed, and from the template of warm workers, which carries a copy of this text. So it
depends on no other module, and imports almost nothing until there is an error.
"""

from __future__ import annotations

import os
import sys

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"


def write_error_file(error: BaseException, skip: int = 0) -> None:
    """Writes `error` to the file that the launcher named to this process, in the form of torch's
    @record; does nothing if it named none. The outermost `skip` frames are ours and not told. Never
    raises: an error that cannot be recorded must not hide the error."""
    path = os.environ.get(ERROR_FILE)
    if not path:
        return
    import json
    import time
    import traceback

    try:
        said = str(error)
    except Exception:
        said = "<cannot be shown>"
    trace = error.__traceback__
    while skip > 0 and trace and trace.tb_next:
        trace, skip = trace.tb_next, skip - 1
    text = "".join(traceback.format_exception(type(error), error, trace))
    info = {"py_callstack": text, "timestamp": str(int(time.time()))}
    write_whole(path, json.dumps({"message": {"message": f"{type(error).__name__}: {said}", "extraInfo": info}}))


def write_whole(path: str, text: str) -> None:
    """Never writes half a file: the launcher may read while we are being killed."""
    part = f"{path}.{os.getpid()}"
    try:
        with open(part, "w", encoding="ascii") as file:
            file.write(text)
        os.replace(part, path)
    except OSError as e:
        import logging

        logging.getLogger("muster").warning("cannot record the error in %s: %s", path, e)


def record_uncaught(error: BaseException) -> None:
    """Only for the worker's main process, which leads its session: the worker judges the errors
    of its helpers. If the file exists, @record wrote it, closer to the error."""
    path = os.environ.get(ERROR_FILE)
    if path and isinstance(error, Exception) and os.getsid(0) == os.getpid() and not os.path.exists(path):
        write_error_file(error)


def install() -> None:
    """Installs a hook that records, then calls the previous one."""
    show = sys.excepthook

    def excepthook(kind, error, trace):  # type: ignore[no-untyped-def]
        record_uncaught(error)
        show(kind, error, trace)

    sys.excepthook = excepthook
