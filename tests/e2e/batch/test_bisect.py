"""`muster bisect` over synthetic histories of real commits, builds and runs; `muster batch --noise`."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from tree import MUSTER, clean_env
from waits import wait_for

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.org"}


def git(folder, *args):
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True,
                          env={**os.environ, **WHO}).stdout.strip()


def history(folder, commits, first_bad, broken=None, words=("3", "9")):
    """Commits of a script whose work grows at first_bad; returns their names."""
    folder.mkdir()
    git(folder, "init", "-q", ".")
    for i in range(commits):
        text = f"exit 1 # {i}" if i == broken else f"echo {words[i >= first_bad]} > work # {i}"
        (folder / "build.sh").write_text(text + "\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", f"change {i}")
    return git(folder, "log", "--reverse", "--format=%H").split()


def bisect(folder, *args, status=0):
    done = subprocess.run([MUSTER, "bisect", *args], cwd=folder, capture_output=True, text=True, env=clean_env())
    assert done.returncode == status, done.stderr or done.stdout
    return done


# The count of a loop of the shell: exact, and far apart.
LOOP = ("/bin/sh", "-c", "'n=$(cat work); while [ $n -gt 0 ]; do n=$((n-1)); done'")
counting = pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")


@counting
def test_counting_names_the_first_bad_commit_past_one_that_does_not_build(tmp_path):
    names = history(tmp_path / "r", 12, 8, broken=5, words=("100", "130"))
    done = bisect(tmp_path / "r", f"--good={names[0]}", "--build=sh build.sh", "--count=cachegrind", "--json",
                  f"--html={tmp_path / 'b.html'}", "--", *LOOP)
    found = json.loads(done.stdout)
    assert (found["result"], found["first_bad"], found["last_good"]) == ("found", names[8], names[7])
    states = {each["commit"]: each for each in found["commits"]}
    assert states[names[5]]["state"] == "skipped"
    assert states[names[8]]["ratio"] > 1.01 and states[names[8]]["pairs"] == 1
    assert "does not build" in done.stderr
    assert names[8] in (tmp_path / "b.html").read_text()


@counting
def test_a_repository_may_have_any_path(tmp_path):
    names = history(tmp_path / "it's a repo", 3, 2, words=("100", "130"))
    done = bisect(tmp_path / "it's a repo", f"--good={names[0]}", "--build=sh build.sh", "--count=cachegrind", "--json", "--", *LOOP)
    assert json.loads(done.stdout)["first_bad"] == names[2]


@counting
def test_a_broken_culprit_leaves_a_range(tmp_path):
    names = history(tmp_path / "r", 6, 3, broken=3, words=("100", "130"))
    done = bisect(tmp_path / "r", f"--good={names[0]}", "--build=sh build.sh", "--count=cachegrind", "-q", "--", *LOOP,
                  status=1)
    assert "one of 2" in done.stdout


@counting
def test_good_and_bad_alike_say_so(tmp_path):
    names = history(tmp_path / "r", 4, 9, words=("100", "130"))
    done = bisect(tmp_path / "r", f"--good={names[0]}", "--build=sh build.sh", "--count=cachegrind", "--", *LOOP, status=1)
    assert "do not differ by more than 0.1 %" in done.stdout


def test_times_far_apart_are_told_apart(tmp_path):
    names = history(tmp_path / "r", 6, 4, words=("0.001", "0.3"))
    done = bisect(tmp_path / "r", f"--good={names[0]}", "--build=sh build.sh", "--json", "--", "sleep", "$(cat work)")
    found = json.loads(done.stdout)
    assert (found["result"], found["first_bad"]) == ("found", names[4])
    bad = next(each for each in found["commits"] if each["commit"] == names[4])
    assert 1 < bad["low"] <= bad["ratio"] <= bad["high"]


def test_a_killed_search_goes_on_where_it_was(tmp_path):
    names = history(tmp_path / "r", 6, 4, words=("0.001", "0.3"))
    args = [f"--good={names[0]}", "--build=sh build.sh", "-q"]
    bench = ["--", "sleep", "$(cat work)"]
    state = tmp_path / "r/.git/muster-bisect/state.jsonl"
    search = subprocess.Popen([MUSTER, "bisect", *args, *bench], cwd=tmp_path / "r", env=clean_env())
    wait_for(lambda: state.exists() and len(state.read_text().splitlines()) > 3, "three pairs")
    search.send_signal(signal.SIGKILL)
    search.wait()
    kept = state.read_text().splitlines()
    builds = sorted(path.stat().st_mtime_ns for path in state.parent.glob("*.built"))
    done = bisect(tmp_path / "r", *args, "--resume", "--json", *bench)
    assert json.loads(done.stdout)["first_bad"] == names[4]
    assert state.read_text().splitlines()[:len(kept) - 1] == kept[:-1]
    assert sorted(path.stat().st_mtime_ns for path in state.parent.glob("*.built"))[:len(builds)] == builds
    other = bisect(tmp_path / "r", *args, "--resume", "--", "true", status=125)
    assert "another search" in other.stderr


def test_a_killed_search_leaves_no_build_behind(tmp_path):
    names = history(tmp_path / "r", 3, 2)
    pid_file = tmp_path / "pid"
    search = subprocess.Popen([MUSTER, "bisect", f"--good={names[0]}", f"--build=echo $$ > {pid_file}; exec sleep 1000", "--",
                               "true"], cwd=tmp_path / "r", env=clean_env())
    wait_for(lambda: pid_file.exists() and pid_file.read_text().strip(), "a build")
    pid = int(pid_file.read_text())
    search.send_signal(signal.SIGKILL)
    search.wait()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the build")


def test_worktrees_removed_by_hand_are_made_again_and_others_stay_known(tmp_path):
    names = history(tmp_path / "r", 2, 1, words=("0.001", "0.3"))
    git(tmp_path / "r", "worktree", "add", "-q", "--detach", str(tmp_path / "away"))
    (tmp_path / "away").rename(tmp_path / "on another disk")
    search = [f"--good={names[0]}", "--build=sh build.sh", "-q", "--", "sleep", "$(cat work)"]
    bisect(tmp_path / "r", *search)
    for tree in (tmp_path / "r/.git/muster-bisect").glob(f"{names[1][:12]}"):
        shutil.rmtree(tree)
    bisect(tmp_path / "r", *search)
    assert str(tmp_path / "away") in git(tmp_path / "r", "worktree", "list")


@pytest.mark.parametrize("args, status, word", [
    (["--", "true"], 2, "--good"),
    (["--good=HEAD"], 2, "benchmark is missing"),
    (["--good=HEAD", "--", "true"], 125, "no commit between"),
    (["--good=nothing", "--", "true"], 125, "nothing"),
    (["--good=HEAD~1", "--metric=instructions", "--", "true"], 2, "--count"),
    (["--good=HEAD~1", "--", "false"], 125, "fails on the good commit"),
    (["--good=HEAD", "--bad=HEAD~1", "--", "true"], 125, "not an ancestor"),
])
def test_what_cannot_be_searched_is_said(tmp_path, args, status, word):
    history(tmp_path / "r", 2, 1)
    assert word in bisect(tmp_path / "r", *args, status=status).stderr


def test_noise_tells_how_good_the_host_is():
    done = subprocess.run([MUSTER, "batch", "--noise", "--runs=8", "true"], capture_output=True, text=True, env=clean_env())
    assert done.returncode == 0, done.stderr
    assert "for measuring times: 16 runs" in done.stdout
    for word in "spread", "CPU time", "drift", "outliers", "resolution":
        assert word in done.stdout
    done = subprocess.run([MUSTER, "batch", "--noise", "--runs=8", "false"], capture_output=True, text=True, env=clean_env())
    assert done.returncode == 1 and "'false' does not run well" in done.stderr
    done = subprocess.run([MUSTER, "batch", "--noise", "--runs=3", "true"], capture_output=True, text=True, env=clean_env())
    assert done.returncode == 125 and "--runs=5" in done.stderr


def test_noise_as_json_has_what_the_text_says():
    done = subprocess.run([MUSTER, "batch", "--noise", "--json", "--runs=8", "true"], capture_output=True, text=True, env=clean_env())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["muster"] == "noise" and found["grade"] in ("good", "fair", "poor") and found["runs"] == 16
    assert found["spread"] > 0 and 0 <= found["drift_p"] <= 1 and found["pairs_for_1_percent"] >= 1
    assert {each["source"] for each in found["disturbed"]} <= {"load", "steal", "frequency", "smt", "aslr", "governor"}
    done = subprocess.run([MUSTER, "batch", "--json", "true"], capture_output=True, text=True, env=clean_env())
    assert done.returncode == 2 and "--noise" in done.stderr
