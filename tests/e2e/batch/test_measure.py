"""Repetition, A/B blocks, instruction counts and the quiet host of `muster batch`."""

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tree import MUSTER, SANITIZER, helper

SPIN = str(helper("spin"))

under_valgrind = pytest.mark.skipif(bool(SANITIZER), reason="a program with sanitizers does not run under valgrind")


def muster(*args, status=0, cwd=None, env=None):
    done = subprocess.run([MUSTER, *map(str, args)], text=True, capture_output=True, cwd=cwd, timeout=120,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    assert done.returncode == status, done.stderr or done.stdout
    return done


def attempts(path):
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [line for line in lines if "muster" not in line]


def counts(path):
    return {line["counts"]["instructions"] for line in attempts(path)}


def occupy(cpus):
    others = [subprocess.Popen([SPIN, str(10**13)], preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu}))
              for cpu in cpus]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.fixture
def busy():
    """Something else runs on every CPU."""
    yield from occupy(sorted(os.sched_getaffinity(0)))


@pytest.fixture
def neighbour():
    """Something else runs on one CPU."""
    yield from occupy(sorted(os.sched_getaffinity(0))[:1])


def test_an_order_runs_as_often_as_asked_after_its_warmup(tmp_path):
    out = tmp_path / "o.jsonl"
    muster("batch", "-q", "--runs=4", "--warmup=2", "--quiet-check=off", "-o", out, "true {}", ":::", "1", "2")
    for order in {line["id"] for line in attempts(out)}:
        mine = [line for line in attempts(out) if line["id"] == order]
        assert [line.get("warmup", False) for line in mine] == [True] * 2 + [False] * 4
        assert [line["run"] for line in mine if not line.get("warmup")] == [0, 1, 2, 3]
        assert len({line["cores"] for line in mine}) == 1


@pytest.mark.skipif(bool(SANITIZER), reason="a program with sanitizers looks for leaks and cannot under strace")
def test_the_clock_of_a_run_starts_when_its_program_is_executed(tmp_path):
    """What comes before, pinning above all, is held up for two seconds and must not count."""
    out = tmp_path / "o.jsonl"
    held_up = "inject=setpgid:delay_exit=2000000"  # microseconds
    tracer = ["strace", "-f", "-qq", "-e", "trace=setpgid", "-e", held_up, "-o", str(tmp_path / "trace")]
    if subprocess.run([*tracer, "true"], capture_output=True).returncode != 0:
        pytest.skip("strace cannot trace here")
    subprocess.run([*tracer, MUSTER, "batch", "-q", "--quiet-check=off", "-o", out, ":::", "/bin/true"], check=True,
                   stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert "DELAYED" in (tmp_path / "trace").read_text()
    (run,) = attempts(out)
    assert run["wall_ns"] < 2e9


def test_variants_alternate_in_blocks_on_the_same_cores(tmp_path):
    out = tmp_path / "o.jsonl"
    muster("batch", "-q", "--ab", "--runs=4", "--warmup=1", "--quiet-check=off", "-o", out,
           "A=true {}", "B=true x{}", ":::", "in1", "in2")
    assert {line["id"] for line in attempts(out)} == {"in1", "in2"}
    for order in ("in1", "in2"):
        mine = [line for line in attempts(out) if line["id"] == order]
        assert "".join(line["variant"] for line in mine) == "AB" + "ABBAABBA"
        assert [line["block"] for line in mine if not line.get("warmup")] == [0, 0, 1, 1, 2, 2, 3, 3]
        assert len({line["cores"] for line in mine}) == 1
        assert {line["cmd"] for line in mine if line["variant"] == "B"} == {f"true x{order}"}


def test_a_pair_needs_no_arguments_and_ten_blocks_can_decide(tmp_path):
    out = tmp_path / "o.jsonl"
    muster("batch", "-q", "--ab", "--quiet-check=off", "-o", out, "A=true", f"B={SPIN} 30000000")
    rows = json.loads(muster("compare", "--json", out, status=3).stdout)["rows"]
    assert rows[0]["blocks"] == 10 and rows[0]["verdict"] == "slower"


def test_runs_go_on_until_there_are_enough(tmp_path):
    out = tmp_path / "o.jsonl"
    muster("batch", "-q", "--precision=1%", "--min-runs=6", "--max-runs=12", "--quiet-check=off", "-o", out, "true", ":::", "")
    assert 6 <= len(attempts(out)) <= 12
    muster("batch", "-q", "--precision=99%", "--min-runs=6", "--quiet-check=off", "-o", tmp_path / "p.jsonl", "true", ":::", "")
    assert len(attempts(tmp_path / "p.jsonl")) >= 6


@under_valgrind
def test_a_binary_has_one_count_wherever_it_is_called_from(tmp_path, neighbour):
    seen = set()
    for i, length in enumerate((1, 4, 7, 12, 60)):  # the stack is aligned to 16 bytes
        place = tmp_path / ("a" * length)
        place.mkdir()
        out = tmp_path / f"{i}.jsonl"
        muster("batch", "-q", "-j1", "--runs=4", "--count=cachegrind", "--quiet-check=off", "-o", out, f"{SPIN} {{}}", ":::",
               "20000", cwd=place, env={f"FILLER{k}": "x" * 50 * i for k in range(10 * i)})
        assert len(attempts(out)) == 4
        seen |= counts(out)
    assert len(seen) == 1


@under_valgrind
def test_two_percent_more_work_is_found_by_counts_every_time(tmp_path):
    for rounds in (20_000, 100_000, 1_000_000):
        files = []
        for work in (rounds, rounds * 102 // 100):
            orders = tmp_path / f"{work}.orders"
            orders.write_text(json.dumps({"id": "spin", "cmd": [SPIN, str(work * 10)]}) + "\n")
            files.append(tmp_path / f"{work}.jsonl")
            muster("batch", "-q", "--count=cachegrind", "-o", files[-1], orders)
        rows = json.loads(muster("compare", "--json", *files, status=3).stdout)["rows"]
        assert {row["metric"]: row["verdict"] for row in rows} == {"wall": "undecided", "instructions": "slower"}
        muster("compare", files[0], files[0])


@under_valgrind
def test_a_run_is_timed_before_valgrind_counts_it_with_its_children(tmp_path):
    out = tmp_path / "o.jsonl"
    done = muster("batch", "-q", "--count=cachegrind", "-o", out, "--prepare=echo prepare >>log",
                  f"echo ${{LD_PRELOAD:+valgrind}} run >>log; echo said; {SPIN} 1000; {SPIN} 2000000", ":::", "", cwd=tmp_path)
    line, = attempts(out)
    assert (tmp_path / "log").read_text().split("\n")[:-1] == ["prepare", "run", "prepare", "valgrind run"]
    assert done.stdout == "said\n"
    assert 0 < line["user_ns"] + line["sys_ns"] and 0 < line["wall_ns"] and line["maxrss_kb"] < 20_000  # valgrind has 40 MB
    assert line["counts"]["source"] == "cachegrind" and line["counts"]["instructions"] > 4_000_000


@under_valgrind
def test_counting_falls_back_to_what_the_machine_has(tmp_path):
    out = tmp_path / "o.jsonl"
    muster("batch", "-q", "--count=auto", "-o", out, f"{SPIN} 1000", ":::", "")
    source = attempts(out)[0]["counts"]["source"]
    assert source in ("perf", "cachegrind")
    if source != "perf":
        assert "cannot count instructions" in muster("batch", "-q", "--count=perf", "true", ":::", "1", status=2).stderr


def test_the_environment_is_clean_when_counting_and_keeps_what_it_is_told(tmp_path):
    caller = {"SECRET": "s", "KEPT": "k"}
    inherited = muster("batch", "-q", "env A={}", ":::", "1", env=caller).stdout
    assert "SECRET=s" in inherited
    clean = muster("batch", "-q", "--env=clean", "env A={}", ":::", "1", env=caller).stdout
    assert "SECRET" not in clean and "KEPT" not in clean and "PATH=" in clean
    kept = muster("batch", "-q", "--env=keep=KEPT", "env A={}", ":::", "1", env=caller).stdout
    assert "KEPT=k" in kept and "SECRET" not in kept


def test_runs_beside_other_load_are_marked_and_left_out(tmp_path, busy):
    out = tmp_path / "o.jsonl"
    muster("batch", "-q", "--runs=2", "-o", out, "sleep 0.{}", ":::", "3")
    assert all("load" in line["suspect"] for line in attempts(out))
    done = muster("compare", out, out, status=125)
    assert "no order has trusted runs in both A and B: 4 runs are suspect" in done.stderr
    assert "All runs are suspect" in done.stdout and "sleep 0.3" in done.stdout and "1.000" in done.stdout
    muster("compare", "--include-suspect", out, out)


def test_a_host_that_is_not_quiet_can_be_refused(tmp_path, busy):
    out = tmp_path / "o.jsonl"
    done = muster("batch", "-q", "--quiet-check=fail", "-o", out, "true", ":::", "1", status=125)
    assert "not quiet" in done.stderr and out.read_text() == ""


def test_setup_prepare_and_cleanup_surround_the_runs(tmp_path):
    log, out = tmp_path / "log", tmp_path / "o.jsonl"
    say = f"echo {{}} >>{log}"
    muster("batch", "-q", "-j1", "--runs=2", "--warmup=1", "--quiet-check=off", "-o", out, "--setup", say.format("setup"),
           "--prepare", say.format("prepare"), "--cleanup", say.format("cleanup"), f"echo {{}} >>{log}", ":::", "x")
    assert log.read_text().split() == ["setup", "prepare", "x", "prepare", "x", "prepare", "x", "cleanup"]
    assert len(attempts(out)) == 3


@pytest.mark.parametrize("hook", ["setup", "prepare"])
def test_a_hook_that_fails_fails_its_order_which_does_not_run(tmp_path, hook):
    log, out = tmp_path / "log", tmp_path / "o.jsonl"
    muster("batch", "-q", "-j1", "--retries=2", f"--{hook}=exit 3", f"--cleanup=echo cleanup >>{log}", "-o", out,
           f"echo {{}} >>{log}", ":::", "x", status=1)
    line, = attempts(out)
    assert line["reason"] == "exit" and line["exit"] == 3 and hook in line["missing"]["run"] and "wall_ns" not in line
    assert log.read_text().split() == ["cleanup"]


def test_exports_need_no_result_file(tmp_path):
    muster("batch", "-q", "--runs=3", "--quiet-check=off", "--export-json", tmp_path / "h.json", "--export-csv",
           tmp_path / "h.csv", "--export-junit", tmp_path / "j.xml", "true {}", ":::", "a", "b")
    results = json.loads((tmp_path / "h.json").read_text())["results"]
    assert sorted(result["command"] for result in results) == ["true a", "true b"]
    assert all(len(result["times"]) == 3 for result in results)
    assert ElementTree.parse(tmp_path / "j.xml").getroot().get("tests") == "2"
    assert len((tmp_path / "h.csv").read_text().splitlines()) == 3


def test_variants_are_exported_apart(tmp_path):
    muster("batch", "-q", "--ab", "--runs=2", "--quiet-check=off", "--export-json", tmp_path / "h.json", "A=true", "B=true -x")
    results = json.loads((tmp_path / "h.json").read_text())["results"]
    assert [(each["command"], each["parameters"]["variant"]) for each in results] == [("true (A)", "A"), ("true -x (B)", "B")]


@pytest.mark.parametrize("args, text", [
    (["--runs=3", "--precision=1%", "true", ":::", "1"], "fixed number"),
    (["--ab", "true", ":::", "1"], "--ab takes"),
    (["--count=guess", "true", ":::", "1"], "not one of"),
    (["--env=keep=", "true", ":::", "1"], "not the name"),
    (["--precision=2", "true", ":::", "1"], "not a share"),
    (["--ab", "--resume", "-o", "x", "A=true", "B=true"], "--resume"),
])
def test_what_does_not_fit_together_is_refused(tmp_path, args, text):
    assert text in muster("batch", *args, status=2, cwd=tmp_path).stderr
