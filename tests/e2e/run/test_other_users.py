"""What other users of the host can do to a job: nothing. The job is root's, the other user is nobody."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import able
from tree import clean_env
from waits import DEADLINE, wait_for


@pytest.fixture
def theirs():
    """A directory of the other user in one of root's that they may enter."""
    able.need_root("another user's directories are needed")
    able.need(*able.NOBODY, "true")
    with tempfile.TemporaryDirectory(prefix="m") as home:
        os.chmod(home, 0o755)
        directory = pathlib.Path(home, "theirs")
        directory.mkdir()
        os.chown(directory, 65534, 65534)
        yield directory


@pytest.fixture
def victim(tmp_path):
    directory = tmp_path / "victim"
    directory.mkdir(mode=0o700)
    for name in ("one", "two"):
        (directory / name).write_text("precious")
    return directory


def as_nobody(script, *args, **more):
    return subprocess.run([*able.NOBODY, "bash", "-c", script, "bash", *map(str, args)], text=True, capture_output=True, timeout=DEADLINE,
                          **more)


def texts(directory):
    return {path.name: path.read_text() for path in directory.iterdir()}


@pytest.mark.parametrize("variable", ["XDG_RUNTIME_DIR", "TMPDIR"])
def test_no_file_is_removed_that_another_user_makes_the_name_of_the_job_directory_lead_to(start, theirs, victim, tmp_path, variable):
    before = texts(victim)
    job = start("run", "bash", "-c", "touch started; while [ ! -e go ]; do sleep 0.01; done", env=clean_env(**{variable: str(theirs)}))
    wait_for(lambda: (tmp_path / "started").exists() or job.poll() is not None, "the worker")
    # What the other user finds there they replace by links of the same names.
    attack = as_nobody("""
cd "$1" && for dir in muster*; do
	[ -d "$dir" ] || continue
	mv "$dir" moved && mkdir "$dir"
	for name in $(grep -ao "$dir/[0-9]*-[0-9a-f]*" /proc/net/unix | sort -u); do ln -s "$2" "$name"; done
done""", theirs, victim)
    assert attack.returncode == 0, attack.stderr
    (tmp_path / "go").touch()
    assert job.wait(timeout=DEADLINE) == 0
    assert texts(victim) == before
    assert not list(theirs.iterdir())


REPLACE = """
cd "$1" && run=$(echo logs/*_*) && mv "$run" logs/moved && mkdir -p "$run/attempt_1/0" &&
ln -s "$2/one" "$run/attempt_1/0/stdout.log" && ln -s "$2/two" "$run/report.json"
"""


def write_to_logs_of(start, theirs, tmp_path, *options):
    (theirs / "logs").mkdir()
    os.chown(theirs / "logs", 65534, 65534)
    script = "echo PAYLOAD; touch started; while [ ! -e go ]; do sleep 0.01; done; exit 3"
    job = start("run", f"--log-dir={theirs}/logs", "--redirects=3", "--max-restarts=1", *options, "bash", "-c", script)
    wait_for(lambda: (tmp_path / "started").exists() or job.poll() is not None, "the worker")
    return job


def test_root_writes_no_log_below_a_directory_that_another_user_can_replace(start, theirs, tmp_path):
    job = write_to_logs_of(start, theirs, tmp_path)
    error = job.communicate(timeout=DEADLINE)[1]
    assert job.returncode == 125
    assert error.startswith(f"muster: error: --log-dir: user 65534 owns {theirs} and can replace what is in it; ")
    assert "--shared-log-dir" in error
    assert not list((theirs / "logs").iterdir())


def test_no_log_goes_where_another_user_makes_the_log_directory_lead_to(start, theirs, victim, tmp_path):
    before = texts(victim)
    job = write_to_logs_of(start, theirs, tmp_path, "--shared-log-dir")
    attack = as_nobody(REPLACE, theirs, victim)
    assert attack.returncode == 0, attack.stderr
    (tmp_path / "go").touch()
    job.communicate(timeout=DEADLINE)
    assert job.returncode == 3
    assert texts(victim) == before
    moved = theirs / "logs" / "moved"
    assert [(moved / f"attempt_{i}" / "0" / "stdout.log").read_text() for i in range(2)] == ["PAYLOAD\n"] * 2
    assert (moved / "report.json").is_file()


def test_a_log_directory_that_is_sticky_will_do(muster, theirs):
    logs = theirs.parent / "logs"
    logs.mkdir()
    logs.chmod(0o1777)
    assert muster("run", f"--log-dir={logs}", "--redirects=3", "true").returncode == 0
    logs.chmod(0o777)
    assert "chmod +t" in muster("run", f"--log-dir={logs}", "--redirects=3", "true").stderr
    shutil.rmtree(logs)
