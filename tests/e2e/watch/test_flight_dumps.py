"""Dumps of the real PyTorch's flight recorder: `muster collectives --dumps` beside PyTorch's own analyser."""

import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import flight_dumps
import pytest

from tree import clean_env
from waits import DEADLINE

pytestmark = pytest.mark.xdist_group("flight_dumps")

# case: the culprits of the first finding, and words of its text. None named: the records do not say who is wrong.
SAID = {
    "missing": ([2], "all_reduce #4 of the default group (4 ranks) waits"),
    "barrier": ([2], "barrier #4 of the default group (4 ranks) waits"),
    "gather": ([2], "all_gather #4 of the default group (4 ranks) waits"),
    "order": ([2], "rank 2 came with broadcast, the others with all_reduce"),
    "size": ([2], "rank 2 came with size [[6,3]], the others with [[6,4]]"),
    "type": ([2], 'rank 2 came with type ["Int"], the others with ["Float"]'),
    "ahead": ([], "rank 2 came alone; ranks 0, 1, 3 did not"),
    "subset": ([3], "all_reduce #1 of group 'subset' (3 ranks) waits"),
    "groups": ([3], "all_reduce #1 of group 'tp' (2 ranks) waits"),
    "two_missing": ([2, 3], "ranks 2, 3 never came; ranks 0, 1 came"),
    "two_against_two": ([], "does not match"),
    "root_differs": ([0], "rank 0 came with size [[6,3]], the others with [[6,4]]"),
    "healthy": ([], "no rank waits in a collective"),
}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dumps")
    subprocess.run([sys.executable, pathlib.Path(flight_dumps.__file__), folder], check=True, timeout=4 * DEADLINE,
                   env=clean_env(), stderr=subprocess.PIPE)
    return folder


@pytest.fixture
def read(muster):
    def findings(path, *options):
        shown = muster("collectives", "--json", *options, f"--dumps={path}")
        assert shown.returncode == 0, shown.stderr
        answer = json.loads(shown.stdout)
        return answer["findings"], answer["text"]

    return findings


def test_every_case_has_an_expectation():
    assert set(SAID) == set(flight_dumps.CASES)


@pytest.mark.parametrize("case", SAID)
def test_a_dump_names_the_rank_that_holds_the_others_up(dumps, read, case):
    culprits, words = SAID[case]
    found, text = read(dumps / case)
    assert ([f["culprits"] for f in found[:1]] or [[]]) == [culprits], text
    assert words in text


@pytest.mark.parametrize("case", SAID)
def test_verdicts_agree_with_those_of_the_analyser_of_torch(dumps, read, case):
    """It knows nothing of what waits for what: muster must have a finding for each of its verdicts, not the same first one."""
    found, text = read(dumps / case)
    theirs = flight_dumps.verdicts(dumps / case)
    assert bool(theirs) == bool(found) and not flight_dumps.differences(theirs, found), (theirs, text)


def test_the_analyser_of_torch_has_a_verdict_on_all_but_the_healthy(dumps):
    """Else the test before would compare nothing."""
    assert [case for case in SAID if not flight_dumps.verdicts(dumps / case)] == ["healthy"]


def test_names_may_be_given_by_their_beginning(dumps, read, tmp_path):
    folder = shutil.copytree(dumps / "missing", tmp_path / "all")
    (folder / "other_2").write_bytes((folder / "trace_0").read_bytes())
    found, _ = read(folder / "trace_")
    assert found[0]["culprits"] == [2]


def test_a_rank_without_a_dump_is_told(dumps, read, tmp_path):
    folder = shutil.copytree(dumps / "missing", tmp_path / "all")
    (folder / "trace_2").unlink()
    found, text = read(folder)
    assert found[0]["culprits"] == [2] and "rank 2 gives no record (it left no dump)" in text


def test_a_pickle_that_would_call_something_is_not_executed(dumps, read, tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "made"),))

    folder = shutil.copytree(dumps / "missing", tmp_path / "all")
    (folder / "trace_2").write_bytes(pickle.dumps(Evil()))
    _, text = read(folder)
    assert "rank 2 gives no record (not a pickle of plain data" in text and not (tmp_path / "made").exists()


@pytest.mark.parametrize("names, words", [([], "no file whose name ends in a rank"), (["a1", "b1"], "more than one dump of rank 1")])
def test_a_folder_without_one_dump_for_each_rank_is_refused(muster, dumps, tmp_path, names, words):
    for name in names:
        (tmp_path / name).write_bytes((dumps / "missing" / "trace_1").read_bytes())
    done = muster("collectives", "--dumps=.", cwd=tmp_path)
    assert done.returncode == 1 and words in done.stderr


def test_dumps_take_the_place_of_a_job(muster, tmp_path):
    done = muster("collectives", f"--dumps={tmp_path}", "job")
    assert done.returncode == 2 and "--dumps takes the place of a job" in done.stderr
