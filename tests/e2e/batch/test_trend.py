"""`muster batch --history-dir` and `muster trend`: filing, imports, change points, reports, exit codes."""

import json
import random
import re
import subprocess

import pytest

from tree import MUSTER, ROOT, clean_env

SAMPLES = ROOT / "tests/data/benchmarks"


def muster(*args, status=0, cwd=None):
    done = subprocess.run([MUSTER, *map(str, args)], text=True, capture_output=True, cwd=cwd, env=clean_env())
    assert done.returncode == status, done.stderr or done.stdout
    return done


def hyperfine_file(path, **times):
    path.write_text(json.dumps({"results": [{"command": name, "mean": 1, "times": values} for name, values in times.items()]}))
    return path


def series(done):
    return {each["id"]: each for each in json.loads(done.stdout)["series"]}


@pytest.fixture
def stepped(tmp_path):
    """Thirty versions: "slowed" takes 10 % more from v024 on, "kept" does not change, "fixed" was slow for a while."""
    rng = random.Random(5)
    noise = lambda: 1 + rng.gauss(0, 0.01)
    entries = [{"commit": {"id": f"v{i:03}"}, "date": (1 + i) * 60000, "tool": "customSmallerIsBetter",
                "benches": [{"name": "slowed", "value": 10 * noise() * (1.1 if i >= 24 else 1), "unit": "ms"},
                            {"name": "kept", "value": 5 * noise(), "unit": "ms"},
                            {"name": "fixed", "value": 7 * noise() * (1.2 if 8 <= i < 15 else 1), "unit": "ms"}]}
               for i in range(30)]
    path = tmp_path / "data.js"
    path.write_text("window.BENCHMARK_DATA = " + json.dumps({"entries": {"suite": entries}}))
    folder = tmp_path / "perf"
    muster("trend", folder, "--import", path, status=3)
    return folder


def test_a_slower_benchmark_is_found_with_its_version_and_exits_3(stepped):
    found = series(muster("trend", stepped, "--json", status=3))
    assert found["slowed"]["verdict"] == "worse" and found["slowed"]["regression"]
    change, = found["slowed"]["changes"]
    assert change["version"] == "v024"
    assert change["low"] < 1.1 < change["high"]
    assert found["kept"]["verdict"] == "same" and found["kept"]["changes"] == []
    assert [c["version"] for c in found["fixed"]["changes"]] == ["v008", "v015"]
    assert found["fixed"]["verdict"] == "same"
    assert 0.005 < found["kept"]["noise"] < 0.02


def test_an_old_change_is_not_news(stepped):
    assert "slowed" in muster("trend", stepped, "--recent=3").stdout
    assert series(muster("trend", stepped, "--json", "--since=v024"))["slowed"]["verdict"] == "same"
    muster("trend", stepped, "--since=v023", status=3)
    assert "no version 'v9'" in muster("trend", stepped, "--since=v9", status=125).stderr


def test_the_same_history_gives_the_same_answer(stepped):
    first = muster("trend", stepped, "--json", status=3).stdout
    assert first == muster("trend", stepped, "--json", status=3).stdout


def test_reports_name_the_change_and_link_the_version(stepped, tmp_path):
    page = tmp_path / "t.html"
    done = muster("trend", stepped, "--markdown", "--html", page, "--link=https://example.org/c/{}", status=3)
    assert "[v024](https://example.org/c/v024)" in done.stdout and "`slowed`" in done.stdout
    text = page.read_text()
    assert text.count("<article") == 3 and 'href="https://example.org/c/v024"' in text
    assert text.index("<h3>slowed") < text.index("<h3>kept")
    assert "http" not in text.replace("https://example.org", "")


def test_host_classes_are_never_mixed(tmp_path):
    folder = tmp_path / "perf"
    for number in range(12):
        for host, factor in ("fast", 1), ("slow", 3):
            data = hyperfine_file(tmp_path / "h.json", a=[factor * (1 + 0.001 * (number % 3))])
            muster("trend", folder, "--import", data, "--host-class", host, "--version-label", f"v{number}")
    found = json.loads(muster("trend", folder, "--json").stdout)["series"]
    assert sorted(each["class"] for each in found) == ["fast", "slow"]
    assert all(each["changes"] == [] and each["versions"] == 12 for each in found)
    only = json.loads(muster("trend", folder, "--json", "--host-class=slow").stdout)["series"]
    assert [each["class"] for each in only] == ["slow"]


@pytest.mark.parametrize("name, ids", [
    ("hyperfine-1.15.json", {"sleep 0.01", "true"}),
    ("google-benchmark-1.9.5.json", {"sum_million", "sort_list"}),
    ("pytest-benchmark-5.3.1.json", {"t_bench.py::test_sum", "t_bench.py::test_sort"}),
    ("asv-0.6.6.json", {"b.time_sort", "b.track_size", "b.Suite.time_sum(10, 'a')", "b.Suite.time_sum(10, 'b')",
                        "b.Suite.time_sum(100, 'a')", "b.Suite.time_sum(100, 'b')", "b.peakmem_list"}),
    ("github-action-benchmark.js", {"fib<int, 10>/0"}),  # written by hand: tests/data/benchmarks/README.md
])
def test_files_of_other_tools_are_imported(tmp_path, name, ids):
    folder = tmp_path / "perf"
    metrics = "--metric=wall,value,maxrss"
    muster("trend", folder, "--import", SAMPLES / name, "--version-label=v1")
    found = series(muster("trend", folder, "--json", metrics))
    assert set(found) | {"true"} == ids | {"true"}  # hyperfine measured a time of 0 for "true"
    # What was filed is a result file like any other.
    filed = next(folder.rglob("*.jsonl"))
    exported = json.loads(muster("compare", filed, "--export-json=-").stdout)
    assert exported["results"] or name == "none"


GOOGLE_ENTRY = {"run_name": "x", "real_time": 2.5, "cpu_time": 1, "time_unit": "us", "items_per_second": 7}
MEAN = {"run_name": "x", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 8, "time_unit": "ms"}
MEDIAN = {**MEAN, "aggregate_name": "median", "real_time": 9}
FOREIGN = {
    "hyperfine gives a run for every time": (
        {"results": [{"command": "a", "mean": 9, "times": [0.5, 0.25, None], "memory_usage_byte": [2048]},
                     {"command": "b", "mean": 0.001}]},
        [("v", "a", "0.50s 2K"), ("v", "a", "0.25s"), ("v", "b", "0.001s")]),
    "too many times give their median": (
        {"results": [{"command": "a", "times": [1] * 600 + [2] * 601}]}, [("v", "a", "2s")]),
    "Google Benchmark gives repetitions": (
        {"context": {}, "benchmarks": [GOOGLE_ENTRY, MEDIAN]}, [("v", "x", "2500ns 7items/s up")]),
    "or else medians": (
        {"context": {}, "benchmarks": [MEAN, MEDIAN]}, [("v", "x", "9ms")]),
    "a unit that is none gives no time": (
        {"context": {}, "benchmarks": [{**GOOGLE_ENTRY, "time_unit": "y"}]}, [("v", "x", "7items/s up")]),
    "pytest-benchmark says the commit": (
        {"machine_info": {"node": "h"}, "commit_info": {"id": "abc", "time": "2023-11-14T23:13:20+01:00"}, "benchmarks": [
            {"fullname": "t::a", "stats": {"median": 1e-6}}, {"fullname": "t::b", "stats": {"median": 1, "data": [2e-6]}}]},
        [("abc 1700000000 h", "t::a", "1us"), ("abc 1700000000 h", "t::b", "2us")]),
    "parameters of asv are part of the name": (
        {"commit_hash": "c0f", "date": 1700000000000, "result_columns": ["result", "params", "version"], "results": {
            "m.time_x": [[1, None, 3, float("nan"), 4, 5], [["1", "2"], ["'a'", "'b'", "'c'"]], "v"],
            "m.track_y": [[5], [], "v"], "m.time_z": [None], "m.peakmem_p": [[float("inf"), 2048], [["q", "r"]]]}},
        [("c0f 1700000000", "m.time_x(1, 'a')", "1s"), ("c0f 1700000000", "m.time_x(1, 'c')", "3s"),
         ("c0f 1700000000", "m.time_x(2, 'b')", "4s"), ("c0f 1700000000", "m.time_x(2, 'c')", "5s"),
         ("c0f 1700000000", "m.track_y", "5"), ("c0f 1700000000", "m.peakmem_p(r)", "2K")]),
    "a commit and a date that are none are not known": (
        {"commit_hash": 3, "date": 1e300, "result_columns": ["result"], "results": {"t": [1]}}, [("v", "t", "1s")]),
    "github-action-benchmark knows what grows": (
        {"entries": {"s": [{"commit": {"id": "w"}, "date": 5000, "tool": "benchmarkjs", "benches": [
            {"name": "n", "value": 3, "unit": "ops/sec"}, {"name": "m", "value": 4, "unit": "ns/iter"}, {"name": "q", "value": "x"}]}]}},
        [("w 5", "n", "3ops/sec up"), ("w 5", "m", "4ns")]),
}


def filed(folder):
    """What an import filed: (version with what else the file said, id, values)."""
    for path in sorted(folder.rglob("*.jsonl")):
        key, *lines = map(json.loads, path.read_text().splitlines())
        said = [key["version"]] + [str(key["time"])] * (key["time"] < 1.75e9) + [key["class"]] * (key["class"] == "h")
        for line in lines:
            if "muster" not in line:
                yield " ".join(said), line["id"], line.get("wall_ns"), line.get("maxrss_kb"), \
                    line.get("value"), line.get("unit"), line.get("more_is_better")


def wanted(said, name, values):
    found = {"maxrss": None, "wall": None, "value": None, "unit": None, "up": None}
    for word in values.split():
        number, unit = re.fullmatch(r"([\d.]*)(.*)", word).groups()
        scale = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}.get(unit)
        if scale:
            found["wall"] = round(float(number) * scale)
        elif unit == "K":
            found["maxrss"] = int(number)
        elif word == "up":
            found["up"] = True
        else:
            found["value"], found["unit"] = float(number), unit or None
    return said, name, found["wall"], found["maxrss"], found["value"], found["unit"], found["up"]


@pytest.mark.parametrize("case", FOREIGN)
def test_values_of_other_tools_keep_their_meaning(tmp_path, case):
    content, values = FOREIGN[case]
    (tmp_path / "f.json").write_text(json.dumps(content))
    label = ["--version-label=v"] if values[0][0] == "v" else []
    muster("trend", tmp_path / "perf", "--import", tmp_path / "f.json", *label)
    assert list(filed(tmp_path / "perf")) == [wanted(*each) for each in values]


@pytest.mark.parametrize("content, why", [
    ("", "not JSON"), ('{"results":[}', "not JSON"), ('{"results":3}', "not JSON"), ("[" * 100000, "not JSON"),
    ("window.BENCHMARK_DATA = nothing", "not JSON"), ('{"results":["x"]}', "not JSON"), ("\xff", "not JSON"),
    ("{}", "not a file of hyperfine"), ('{"benchmarks":[]}', "not a file of hyperfine"),
    ('{"results":[]}', "no benchmark"), ('{"benchmarks":[],"context":{}}', "no benchmark"),
    ('{"result_columns":[],"results":[]}', "not JSON"),
    ('{"entries":{"s":[{"benches":[{"value":"x"}]}]}}', "no benchmark"),
])
def test_what_no_tool_wrote_is_refused_with_a_reason(tmp_path, content, why):
    (tmp_path / "f.json").write_bytes(content.encode("latin-1"))
    done = muster("trend", tmp_path / "perf", "--import", tmp_path / "f.json", "--version-label=v", status=125)
    assert "f.json: " in done.stderr and why in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "perf").exists()


def test_an_import_without_python_says_what_to_do(tmp_path):
    env = {**clean_env(), "PYTHON_EXEC": str(tmp_path / "none")}
    done = subprocess.run([MUSTER, "trend", tmp_path / "perf", "--import", SAMPLES / "asv-0.6.6.json"], text=True,
                          capture_output=True, env=env)
    assert done.returncode == 125 and "--import needs Python, python3 or the one in PYTHON_EXEC" in done.stderr


def test_suites_of_a_data_file_are_not_mixed(tmp_path):
    muster("trend", tmp_path / "perf", "--import", SAMPLES / "github-action-benchmark.js", cwd=tmp_path)
    found = json.loads(muster("trend", tmp_path / "perf", "--json", "--metric=wall,value").stdout)["series"]
    assert {(each["configuration"], each["metric"], each["versions"]) for each in found} == \
        {("C++ Benchmark", "wall", 2), ("Rates", "value", 1)}
    assert {each["id"] for each in found} == {"fib<int, 10>/0"}


def test_the_version_comes_from_the_file_when_it_says(tmp_path):
    muster("trend", tmp_path / "perf", "--import", SAMPLES / "asv-0.6.6.json", cwd=tmp_path)
    found = series(muster("trend", tmp_path / "perf", "--json"))
    assert found["b.time_sort"]["newest"].startswith("34d8fd3d")
    done = muster("trend", tmp_path / "perf", "--import", SAMPLES / "hyperfine-1.15.json", status=125, cwd=tmp_path)
    assert "--version-label" in done.stderr


def test_an_exported_data_file_can_be_imported_again(stepped, tmp_path):
    muster("trend", stepped, "--export-github", tmp_path / "again.js", status=3)
    muster("trend", tmp_path / "perf2", "--import", tmp_path / "again.js", status=3)
    first, again = (series(muster("trend", each, "--json", status=3)) for each in (stepped, tmp_path / "perf2"))
    assert {k: [c["version"] for c in v["changes"]] for k, v in first.items()} == \
        {k: [c["version"] for c in v["changes"]] for k, v in again.items()}


def git(folder, *args):
    subprocess.run(["git", "-c", "user.email=a@example.org", "-c", "user.name=a", *args], cwd=folder, check=True,
                   capture_output=True)


def test_a_batch_is_filed_under_its_commit(tmp_path):
    git(tmp_path, "init", "-q", ".")
    (tmp_path / "f").write_text("1")
    git(tmp_path, "add", "f")
    git(tmp_path, "commit", "-qm", "one")
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=tmp_path, text=True).strip()
    run = ("batch", "-q", "--runs=2", "--quiet-check=off", "--history-dir=perf", "true {}", ":::", "1")
    muster(*run, cwd=tmp_path)
    (tmp_path / "f").write_text("2")
    muster(*run, cwd=tmp_path)
    names = {json.loads(path.read_text().splitlines()[0])["version"] for path in (tmp_path / "perf").rglob("*.jsonl")}
    assert names == {commit, commit + "-dirty"}
    path = next((tmp_path / "perf").rglob("*.jsonl"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("muster") for line in lines] == ["history", "summary", "batch", None, None]
    assert lines[0]["configuration"] == "time"
    # People see the command of an order that has no name.
    assert "true 1  wall time" in muster("trend", "perf", "--all", cwd=tmp_path).stdout
    assert {each["name"] for each in json.loads(muster("trend", "perf", "--json", cwd=tmp_path).stdout)["series"]} == {"true 1"}


def test_without_a_version_nothing_is_run(tmp_path):
    done = muster("batch", "--history-dir=perf", "touch {}", ":::", "ran", status=2, cwd=tmp_path)
    assert "--version-label" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_failed_filing_leaves_no_file(tmp_path):
    folder = tmp_path / "perf"
    muster("batch", "-q", f"--history-dir={folder}", "--version-label=v1", "--host-class=h", "true {}", ":::", "1")
    (folder / "h" / "time" / ".0123.part").write_text('{"muster":"hist')  # what a crash leaves
    assert json.loads(muster("trend", folder, "--json").stdout)["series"][0]["versions"] == 1
    (folder / "h" / "time" / "1-x-2.jsonl").write_text("rubbish\n")
    done = muster("trend", folder, status=125)
    assert "1-x-2.jsonl" in done.stderr


def test_many_writers_file_every_result(tmp_path):
    command = [MUSTER, "batch", "-q", f"--history-dir={tmp_path / 'perf'}", "--host-class=h", "true {}", ":::", "1"]
    command.insert(4, "--version-label=same")
    writers = [subprocess.Popen(command, env=clean_env()) for _ in range(6)]
    assert [writer.wait() for writer in writers] == [0] * 6
    assert len(list((tmp_path / "perf").rglob("*.jsonl"))) == 6
    found, = json.loads(muster("trend", tmp_path / "perf", "--json").stdout)["series"]
    assert found["versions"] == 1


@pytest.mark.parametrize("args, word", [
    (["trend"], "directory"),
    (["trend", "a", "b"], "directory"),
    (["trend", "x", "--recent=0"], "--recent"),
    (["trend", "x", "--alpha=2"], "between 0 and 1"),
    (["trend", "x", "--metric=speed"], "unknown metric"),
    (["trend", "x", "--json", "--markdown"], "exclude"),
    (["batch", "--version-label=v", "true", ":::", "1"], "--history-dir"),
])
def test_wrong_use_is_said(args, word):
    assert word in muster(*args, status=2).stderr


def test_a_history_that_is_not_there_is_named(tmp_path):
    assert "nowhere" in muster("trend", tmp_path / "nowhere", status=125).stderr
    assert "no results" in muster("trend", tmp_path, status=125).stderr
    bad = tmp_path / "bad.json"
    bad.write_text('{"results": [')
    assert "bad.json" in muster("trend", tmp_path / "p", "--import", bad, status=125).stderr
