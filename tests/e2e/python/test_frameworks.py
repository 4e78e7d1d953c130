"""Frameworks with muster below them: two ranks to the end, through a kill and a restart, and the exit codes that their callers know.
tests/frameworks has more of them, the same without the switch, and jobs on two hosts."""

import pytest

from frameworks import COMMON, TRAINED, Environment, by, said


@pytest.fixture(scope="module")
def site():
    return Environment("common", *COMMON)


@pytest.mark.parametrize("name", TRAINED)
def test_training_goes_on_after_a_kill(site, tmp_path, name):
    how, script, package = TRAINED[name]
    done = site.launch(tmp_path, how, script, KILL=1, WITNESS=package)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line for line in said(done) if line[2] == 1] == by("muster", f"{package} {site.version(package)}"), done.stdout


@pytest.mark.parametrize("how, code, text", [
    ("accelerate", 1, "ChildFailedError"),  # which their own code raises, or lets through
    ("fabric", 1, "ChildFailedError"),
    ("torchx", 1, "FAILED"),
    ("ultralytics", 7, "muster: job failed"),
])
def test_a_failure_is_what_the_callers_know(site, tmp_path, how, code, text):
    done = site.launch(tmp_path, how, "train_code.py", PET_MAX_RESTARTS=0)
    assert done.returncode == code and text in done.stderr + done.stdout, done.stderr[-3000:]
