"""Nothing survives: every way for a worker's process to get away, against every way for a job to end.

The cells of the matrix run side by side, once, when the first result is asked for."""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal

import pytest

import able
from torture import ENDS, KINDS, USERS, Cell, make_cell, programs_for_all, try_cell, why_not
from waits import DEADLINE, wait_for

AT_ONCE = 12


@pytest.fixture(scope="session")
def programs():
    with programs_for_all() as directory:
        yield directory


@pytest.fixture(scope="session")
def matrix(request, programs):
    """The results of the selected cells."""
    keys = [item.callspec.params["key"] for item in request.session.items if "key" in getattr(
        getattr(item, "callspec", None), "params", {}) and item.module.__name__ == __name__]
    keys = [key for key in keys if not why_not(*key[1:], programs)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(keys, pool.map(try_cell, [make_cell(key, programs) for key in keys])))


@pytest.mark.xdist_group("torture")  # one matrix for all
@pytest.mark.parametrize("key", [(k, e, u) for u in USERS for e in ENDS for k in KINDS],
                         ids=lambda key: "-".join(key))
def test_nothing_survives(matrix, programs, key):
    if why := why_not(*key[1:], programs):
        pytest.skip(why)
    left, ready, output = matrix[key]
    assert left == [], output
    assert ready > 0, "the workers never got to escape: " + output


@pytest.fixture
def stranger(programs):
    """A job with a worker of an ordinary user that has become root's for good, and the worker's pid."""
    able.need_root("a set-uid program of root's is needed")
    able.need(*able.NOBODY, programs / "muster", "--version")
    cell = Cell("child", "nobody", programs)
    become_root = cell.dir / "become-root"
    shutil.copy("/usr/bin/setpriv", become_root)
    become_root.chmod(0o4755)
    if why := able.why_not(*able.NOBODY, become_root, "--reuid=0", "true"):
        cell.clean_up()
        pytest.skip(f"set-uid programs do not work in {cell.dir.parent}: {why}")
    cell.start_command([become_root, "--reuid=0", "sh", "-c", f"echo $$ >{cell.record}; exec sleep 1000"])
    try:
        pid = int(wait_for(cell.text, "the worker's pid"))
        wait_for(lambda: pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n", "the worker to settle")
        yield cell, pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: not cell.marked(), "all processes of the job to go")
    finally:
        cell.clean_up()


def test_what_may_not_be_signalled_is_named_and_holds_nothing_up(stranger):
    cell, pid = stranger
    os.kill(cell.process.pid, signal.SIGTERM)
    assert cell.process.wait(DEADLINE) == 128 + signal.SIGTERM
    said = (cell.dir / "out").read_text()
    assert f"{pid} (sleep)" in said and "may not be signalled" in said


def test_what_may_not_be_signalled_does_not_keep_a_lost_warden_from_being_replaced(stranger):
    cell, pid = stranger
    os.kill(cell.warden(), signal.SIGKILL)
    assert cell.process.wait(DEADLINE) == 125, (cell.dir / "out").read_text()
