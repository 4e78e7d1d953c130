"""`muster compare` on result files made up here: every verdict, report, export and exit code."""

import contextlib
import csv
import io
import json
import math
import random
import re
import statistics
import subprocess
import xml.etree.ElementTree as ElementTree
import zlib

import browser
import pytest

from tree import MUSTER, ROOT, clean_env
from waits import wait_for


def compare(*args, status=0, env=None):
    done = subprocess.run([MUSTER, "compare", *map(str, args)], text=True, capture_output=True,
                          env=clean_env(**(env or {})))
    assert done.returncode == status, done.stderr or done.stdout
    return done


def line(order, run, wall_ms, **more):
    wall = int(wall_ms * 1e6)
    return {"id": order, "hash": f"{zlib.crc32(order.encode()):08x}", "cmd": f"./bench {order}", "attempt": 1, "run": run,
            "reason": "ok", "exit": 0, "wall_ns": wall, "user_ns": wall // 2, "sys_ns": wall // 4, "maxrss_kb": 1024,
            **more}


def write(path, lines):
    header = {"muster": "batch", "v": 1, "host": {"name": "h"}, "started": "2026-11-16T00:00:00Z"}
    path.write_text("".join(json.dumps(each) + "\n" for each in [header, *lines]))
    return path


def runs(order, n, factor=1.0, seed=0, **more):
    rng = random.Random(f"{order} {seed}")
    return [line(order, i, 10 * factor * (1 + rng.expovariate(100)), **more) for i in range(n)]


def counted(order, value, n=3, source="cachegrind", env="e1", **more):
    return [line(order, i, 5, counts={"instructions": value, "source": source, "env_hash": env}, **more)
            for i in range(n)]


@pytest.fixture
def pair(tmp_path):
    a = [*runs("kept", 30), *runs("slowed", 30), *runs("sped", 30), *runs("few", 3)]
    b = [*runs("kept", 30, seed=1), *runs("slowed", 30, 1.10, 1), *runs("sped", 30, 0.9, 1), *runs("few", 3, 1.2, 1)]
    return write(tmp_path / "a.jsonl", a), write(tmp_path / "b.jsonl", b)


def rows(done, metric="wall"):
    return {row["id"]: row for row in json.loads(done.stdout)["rows"] if row["metric"] == metric}


def test_every_verdict_is_reached_and_a_slowdown_exits_3(pair):
    found = rows(compare(*pair, "--json", status=3))
    assert {name: row["verdict"] for name, row in found.items()} == {
        "kept": "same", "slowed": "slower", "sped": "faster", "few": "undecided"}
    assert found["slowed"]["low"] <= found["slowed"]["ratio"] <= found["slowed"]["high"]
    assert found["slowed"]["ratio"] == pytest.approx(1.10, abs=0.02)
    assert found["few"]["more_runs"] >= 1 and found["few"]["high"] is None


def test_the_table_is_sorted_by_effect_and_names_all(pair):
    out = compare(*pair, status=3, env={"LC_ALL": "C.UTF-8"}).stdout
    assert out.index("slowed") < out.index("kept") < out.index("sped")
    assert "●" in out and "\033[" not in out
    plain = compare(*pair, "--color=always", status=3, env={"LC_ALL": "C"}).stdout
    assert "*" in plain and "●" not in plain and "\033[31m" in plain


@pytest.mark.parametrize("columns, bar", [(80, False), (100, True), (200, True)])
def test_the_table_keeps_to_the_columns_that_there_are(pair, columns, bar):
    out = compare(*pair, status=3, env={"LC_ALL": "C.UTF-8", "COLUMNS": str(columns)}).stdout
    table = [line for line in out.splitlines() if line.startswith("  ")]
    assert max(map(len, table)) <= columns and ("●" in out) == bar, out
    assert "undecided" in out and re.search(r"about \d+ more run", out), out


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("factor, shown", [(1.5, r"1\.[45]\d\d"), (22.7, r"22\.[67]\d"), (333, r"33[23]\.\d"), (54321, r"54\d\d\d"),
                                           (7e7, r"7e\+07"), (0.05, r"0\.050"), (4e-4, r"0\.0004")])
def test_columns_stay_apart_however_large_or_small_a_ratio_is(tmp_path, columns, factor, shown):
    """Also where the runs are too few for an interval, and where labels make a tree."""
    labels = {"labels": {"suite": "matrices", "size": "large"}}
    a = [*runs("first", 30, **labels), *runs("other", 30, **labels), *runs("few", 1, **labels), *runs("gone " * 30, 3)]
    b = [*runs("first", 30, factor, 1, **labels), *runs("other", 30, 1, 1, **labels), *runs("few", 1, factor, 1, **labels)]
    files = write(tmp_path / "a.jsonl", a), write(tmp_path / "b.jsonl", b)
    for extra in ["--group-by=none"], ["--group-by=suite,size"], ["--group-by=none", "--alpha=0.00012"]:
        done = subprocess.run([MUSTER, "compare", "--metric=wall", "--all", *extra, *files], text=True, capture_output=True,
                              env=clean_env(LC_ALL="C.UTF-8", COLUMNS=str(columns)))
        table = done.stdout.split("\n\n")[1].splitlines()
        assert max(map(len, table)) <= columns, done.stdout
        head = next(line for line in table if line.split()[0] == "order")
        assert re.fullmatch(r" +order +A +B +B/A  +[\d.]+ % interval  .*verdict", head), done.stdout
        cells = {fields[0]: fields for fields in (re.split(r"  +", line.strip()) for line in table) if len(fields) > 4}
        assert set(cells) == {"order", "first", "other", "few"}, done.stdout
        assert re.fullmatch(shown + r"\d*", cells["first"][3]) and re.fullmatch(r"\S+ to \S+", cells["first"][4]), done.stdout
        assert cells["few"][4] == "no interval", done.stdout
        ends = {line.index(cells[name][3], line.index(cells[name][2]) + len(cells[name][2])) + len(cells[name][3])
                for line in table for name in cells if line.split()[0] == name}
        assert len(ends) == 1, done.stdout


def test_limits_decide_what_a_regression_is(pair):
    compare(*pair, "--limits", "wall=20%")
    compare(*pair, "--limits", "instructions=1%")
    compare(*pair, "--limits", "wall=5%", status=3)
    compare(*pair, "--limits", "wall=20%", "--strict", status=3)  # "few" may be slower than that


def test_without_a_slowdown_the_exit_is_0(pair):
    compare(pair[0], pair[0])


def test_counts_are_exact_and_a_two_percent_change_is_always_found(tmp_path):
    rng = random.Random(5)
    names = [f"o{i}" for i in range(200)]
    values = {name: rng.randrange(10_000, 10**10) for name in names}
    a = write(tmp_path / "a.jsonl", [each for name in names for each in counted(name, values[name])])
    b = write(tmp_path / "b.jsonl", [each for name in names
                                     for each in counted(name, values[name] * 102 // 100 if name == "o7" else values[name])])
    found = rows(compare(a, b, "--json", status=3), "instructions")
    assert {name for name, row in found.items() if row["verdict"] == "slower"} == {"o7"}
    assert all(row["verdict"] == "same" for name, row in found.items() if name != "o7")


@pytest.mark.parametrize("other", [{"source": "perf"}, {"env": "e2"}])
def test_counts_of_different_origin_are_never_compared(tmp_path, other):
    a = write(tmp_path / "a.jsonl", counted("o", 1000))
    b = write(tmp_path / "b.jsonl", counted("o", 2000, **other))
    row = rows(compare(a, b, "--json"), "instructions")["o"]
    assert row["verdict"] == "undecided" and "different" in row["reason"]


def test_suspect_runs_count_only_when_asked_for(tmp_path):
    a = write(tmp_path / "a.jsonl", runs("o", 20))
    b = write(tmp_path / "b.jsonl", [*runs("o", 20, 1, 1), *runs("o", 40, 1.5, 2, suspect=["load"])])
    row = rows(compare(a, b, "--json"))["o"]
    assert row["b"]["runs"] == 20 and row["suspect_left_out"] == 40
    assert rows(compare(a, b, "--json", "--include-suspect", status=3))["o"]["b"]["runs"] == 60


def test_failed_and_warmup_runs_never_count(tmp_path):
    a = write(tmp_path / "a.jsonl", [*runs("o", 10), *runs("gone", 5), *runs("new-timeout", 5)])
    b = write(tmp_path / "b.jsonl", [*runs("o", 10, 1, 1), *runs("o", 5, 9, 2, warmup=True),
                                     *runs("o", 5, 9, 3, reason="exit"), *runs("new-timeout", 2, reason="timeout")])
    done = compare(a, b, "--json", status=3)
    answer = json.loads(done.stdout)
    assert rows(done)["o"]["b"]["runs"] == 10
    assert answer["broken"] == ["new-timeout"] and answer["only_a"] == ["gone"]


def test_blocks_of_one_file_are_compared_in_pairs(tmp_path):
    rng = random.Random(3)
    lines = []
    for block in range(12):  # the host drifts by a factor of 3, both sides alike
        for variant, factor in (("A", 1), ("B", 1.03)):
            wall = 10 * (1 + block / 6) * factor * (1 + rng.uniform(0, 0.004))
            lines.append(line("o", block, wall, variant=variant, block=block))
    row = rows(compare(write(tmp_path / "ab.jsonl", lines), "--json", status=3))["o"]
    assert row["verdict"] == "slower" and row["blocks"] == 12
    assert row["ratio"] == pytest.approx(1.03, abs=0.005)


def test_learned_noise_asks_more_of_a_change(tmp_path):
    def noisy(seed, factor=1.0):
        rng = random.Random(seed)
        return [line(f"o{i}", k, 10 * factor * (1 + rng.expovariate(8))) for k in range(24) for i in range(12)]
    a, b = write(tmp_path / "a.jsonl", noisy(1)), write(tmp_path / "b.jsonl", noisy(2, 1.2))
    again = write(tmp_path / "c.jsonl", noisy(3))
    for extra in (["--noise=learn"], ["--aa", again]):
        summary = json.loads(compare(a, b, "--json", *extra, "--limits=wall=900%").stdout)["summary"][0]
        assert summary["noise_learned"] and summary["noise"] > 0.03
        assert summary["same"] == 0


def test_learned_noise_knows_waves_of_a_slow_host(tmp_path):
    """Runs of which neighbours are alike, of two equal programs: without it, one order in four seems to have changed."""
    def side(name, seed):
        rng, lines = random.Random(seed), []
        for order in range(100):
            wave = rng.gauss(0, 1)
            for run in range(30):
                lines.append(line(f"order-{order}", run, 10 * math.exp(0.03 * wave)))
                wave = 0.8 * wave + 0.6 * rng.gauss(0, 1)
        return write(tmp_path / name, lines)
    files = side("a.jsonl", 1), side("b.jsonl", 2)
    def changed(*extra, status=0):
        found = rows(compare(*files, "--json", "--metric=wall", *extra, status=status))
        return [name for name, row in found.items() if row["verdict"] in ("slower", "faster")]
    assert len(changed(status=3)) > 10
    assert changed("--noise=learn") == []


def test_more_than_two_variants_or_results_are_compared_with_the_first(tmp_path, pair):
    rng = random.Random(1)
    lines = [line("o", block, 10 * factor * (1 + rng.uniform(0, 0.004)), variant=variant, block=block)
             for block in range(12) for variant, factor in (("A", 1), ("B", 1.1), ("C", 0.9))]
    path = write(tmp_path / "abc.jsonl", lines)
    b, c = json.loads(compare("--json", path, status=3).stdout)
    assert (b["b"], b["rows"][0]["verdict"]) == ("variant B", "slower") and b["rows"][0]["blocks"] == 12
    assert (c["b"], c["rows"][0]["verdict"]) == ("variant C", "faster")
    only = json.loads(compare("--json", "--variants=A,C", path).stdout)
    assert only["b"] == "variant C"
    text = compare(path, status=3).stdout
    assert text.count("variant A") == 2 and "variant C" in text
    assert "--variants" in compare("--html", tmp_path / "p.html", path, status=125).stderr
    compare("--html", tmp_path / "p.html", "--variants=B,C", path)
    assert "variants" in compare("--variants=A,Z", path, status=2).stderr
    a, other = pair
    assert len(json.loads(compare("--json", a, other, a, status=3).stdout)) == 2


def test_runs_that_drift_are_told_with_the_remedy(tmp_path):
    def side(name, seed, rho):
        rng, lines = random.Random(seed), []
        for order in range(6):
            wave = rng.gauss(0, 1)
            for run in range(20):
                wave = rho * wave + (1 - rho * rho) ** 0.5 * rng.gauss(0, 1)
                lines.append(line(f"order-{order}", run, 10 * (1 + 0.02 * wave)))
        return write(tmp_path / name, lines)
    steady, again, drifts = side("steady.jsonl", 1, 0), side("again.jsonl", 3, 0), side("drifts.jsonl", 2, 0.8)
    compare_any = lambda *args: subprocess.run([MUSTER, "compare", *map(str, args)], text=True, capture_output=True,
                                               env=clean_env())
    done = compare_any(steady, drifts)
    assert "runs of B drift" in done.stdout and "--ab" in done.stdout and "--noise=learn" in done.stdout
    summary, = (s for s in json.loads(compare_any("--json", steady, drifts).stdout)["summary"] if s["metric"] == "wall")
    assert summary["drift_a"] == 0 and 0.4 < summary["drift_b"] < 0.95
    assert "drift (" not in compare_any(steady, again).stdout


def test_json_is_json_and_hostile_names_do_no_harm(tmp_path):
    name = "<b>\"x\" & 'y' | `z` \u00e9\n\033[31m"
    a, b = write(tmp_path / "a.jsonl", runs(name, 6)), write(tmp_path / "b.jsonl", runs(name, 6, 2, 1))
    assert name in rows(compare(a, b, "--json", status=3))
    page, junit = tmp_path / "p.html", tmp_path / "j.xml"
    table = compare(a, b, "--html", page, "--export-junit", junit, status=3).stdout
    assert "\033" not in table
    assert "<b>\"x\"" not in page.read_text() and "&lt;b&gt;" in page.read_text()
    ElementTree.parse(junit)
    assert len([each for each in compare(a, b, "--markdown", status=3).stdout.splitlines() if "<b>" in each]) == 1


def test_the_page_stands_alone_and_draws_every_order(pair, tmp_path):
    page = tmp_path / "p.html"
    compare(*pair, "--html", page, status=3)
    text = page.read_text()
    assert not re.search(r"(src|href|url)\s*[=(]", text)
    assert text.count('<article class="card"') == 4
    assert "prefers-color-scheme:dark" in text and "width=device-width" in text
    ElementTree.fromstring("<x>" + "".join(re.findall(r"<svg.*?</svg>", text, re.S)) + "</x>")


CARD = re.compile(r'<article class="card" data-r="(?P<numbers>[^"]*)" data-a="(?P<a>[^"]*)" data-b="(?P<b>[^"]*)"'
                  r'(?: data-c="(?P<command>[^"]*)")?(?: data-d="(?P<other>[^"]*)")?(?: data-l="(?P<labels>[^"]*)")?'
                  r'(?: data-w="(?P<why>[^"]*)")?>(?P<name>[^<]*)</article>')


def test_the_page_names_commands_suspects_run_order_and_labels(tmp_path):
    def side(path, program):
        lines = runs("x", 12, labels={"op": "add", "threads": "2"})
        for i, each in enumerate(lines):
            each.update(cmd=f"{program} <x>", wall_ns=10_000_000 + 1000 * i)
        lines[3]["suspect"] = ["busy"]
        return write(tmp_path / path, lines)

    page = tmp_path / "p.html"
    compare(side("a.jsonl", "./old"), side("b.jsonl", "./new"), "--html", page)
    text = page.read_text()
    (card,) = CARD.finditer(text)
    assert (card["command"], card["other"]) == ("./old &lt;x&gt;", "./new &lt;x&gt;")
    assert "2 suspect runs of 1 order left out" in text and card["numbers"].split()[9] == "2"
    places = [int(place, 36) for place in re.findall(r"[0-9a-z]{2}", card["a"])]
    assert places == sorted(places) and len(places) == 12 and places[0] == 0, "in the order of the runs"
    assert card["a"].count("~") == 1 and card["a"].index("~") == 6
    labels = json.loads(re.search(r"const labels=(\[.*?\]);", text)[1])
    assert [labels[int(i)] for i in card["labels"].split()] == ["op=add", "threads=2"]


def test_a_page_of_many_orders_stays_small(tmp_path):
    """10,000 orders of 10 runs each: less than 3 MB."""
    def side(path):
        rng = random.Random(path)
        return write(tmp_path / path, (line(f"order {i}", run, 10 + rng.random(), labels={"op": f"op{i % 90}", "threads": "2"})
                                       for i in range(10_000) for run in range(10)))

    page = tmp_path / "p.html"
    compare(side("a.jsonl"), side("b.jsonl"), "--html", page)
    assert page.stat().st_size < 3_000_000 and len(CARD.findall(page.read_text())) == 10_000


@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(bool(browser.MISSING), reason=str(browser.MISSING))
def test_the_script_of_the_page_draws_in_a_browser(pair, tmp_path):
    page = tmp_path / "p.html"
    compare(*pair, "--html", page, status=3)
    with contextlib.closing(browser.Browser()) as chromium:
        chromium.driver.set_window_size(1000, 3000)  # a card is drawn when it is seen
        chromium.open(f"file://{page}")
        drawn = "return [...document.querySelectorAll('article.card')].map(card => card.querySelectorAll('svg').length)"
        wait_for(lambda: chromium.run(drawn) == [2, 2, 2, 2], "two pictures in each of four cards")
        first, *_ = chromium.text("article.card h3").splitlines()
        assert first in ("few", "slowed"), "the largest ratio first"
        assert "▲ slower" in chromium.text("article.card") and "4 of 4 orders" in chromium.text("body")


def test_junit_has_a_failure_per_regression(pair, tmp_path):
    compare(*pair, "--export-junit", tmp_path / "j.xml", status=3)
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert suite.get("tests") == "4" and suite.get("failures") == "1"
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["slowed"]


@pytest.mark.parametrize("option, read", [("--export-json", json.loads), ("--export-junit", ElementTree.fromstring)])
def test_an_export_to_standard_output_has_it_alone(pair, option, read):
    read(compare(*pair, option, "-", status=3).stdout)


def test_exports_agree_with_hyperfines_definitions(pair, tmp_path):
    out = tmp_path / "h.json"
    compare(pair[0], "--export-json", out, "--export-csv", tmp_path / "h.csv", "--export-markdown", "-")
    results = json.loads(out.read_text())["results"]
    assert [result["command"] for result in results] == ["./bench kept", "./bench slowed", "./bench sped", "./bench few"]
    for result in results:
        times = result["times"]
        assert result["mean"] == pytest.approx(statistics.mean(times))
        assert result["stddev"] == pytest.approx(statistics.stdev(times))
        assert result["median"] == pytest.approx(statistics.median(times))
        assert (result["min"], result["max"]) == (min(times), max(times))
        assert result["user"] == pytest.approx(result["mean"] / 2, rel=1e-3)
        assert result["memory_usage_byte"] == [1024 * 1024] * len(times)
        assert result["exit_codes"] == [0] * len(times)
    table = list(csv.DictReader(io.StringIO((tmp_path / "h.csv").read_text())))
    assert float(table[1]["mean"]) == pytest.approx(results[1]["mean"])


def layout(value):
    """The shape of a JSON value: keys, in order, and types; a list is as its items are."""
    if isinstance(value, dict):
        return {key: layout(each) for key, each in value.items()}
    if isinstance(value, list):
        return [layout(value[0])]
    return type(value)


def test_export_has_the_layout_of_a_real_one(tmp_path):
    """Key by key and type by type, a parameter included. The memory came to hyperfine after 1.15."""
    subprocess.run(["hyperfine", "-N", "--style", "none", "-r", "3", "-L", "1", "0.001,0.002", "--export-json",
                    tmp_path / "real.json", "sleep {1}"], check=True, capture_output=True)
    subprocess.run([MUSTER, "batch", "-q", "-j1", "--runs=3", "--quiet-check=off", "--export-json", tmp_path / "ours.json",
                    "sleep {1}", ":::", "0.001", "0.002"], check=True, capture_output=True)
    real, ours = (sorted(json.loads((tmp_path / name).read_text())["results"], key=lambda result: result["command"])
                  for name in ("real.json", "ours.json"))
    assert [(each["command"], each["parameters"]) for each in ours] == [(each["command"], each["parameters"]) for each in real]
    for mine, theirs in zip(ours, real):
        assert layout(mine.pop("memory_usage_byte")) == layout(theirs.pop("memory_usage_byte", [1]))
        assert list(mine) == list(theirs) and layout(mine) == layout(theirs)
        assert len(mine["times"]) == len(mine["exit_codes"]) == 3


@pytest.mark.parametrize("option, sample, only_theirs", [
    ("--export-google-benchmark", "google-benchmark-1.9.5.json", set()),
    ("--export-pytest-benchmark", "pytest-benchmark-5.3.1.json", {"disable_gc", "min_rounds", "max_time", "min_time", "precision",
                                                                  "confidence", "warmup"}),
])
def test_exports_for_other_tools_have_their_layout_and_every_run(pair, tmp_path, option, sample, only_theirs):
    """Key by key as in a file that the tool wrote; read again, the medians are what they were."""
    compare(pair[0], option, tmp_path / "x.json")
    ours = json.loads((tmp_path / "x.json").read_text())["benchmarks"]
    theirs = json.loads((ROOT / "tests/data/benchmarks" / sample).read_text())["benchmarks"]
    expected = layout(theirs[0])
    expected["options"] = {k: v for k, v in expected.get("options", {}).items() if k not in only_theirs}
    assert {"options": {}, **layout(ours[0])} == expected
    compare(pair[0], "--export-json", tmp_path / "h.json")
    read = lambda name: {each["id"]: each["level"] for each in json.loads(subprocess.run(
        [MUSTER, "trend", tmp_path / name, "--import", tmp_path / name.replace("-dir", ""), "--version-label=v", "--json"],
        check=True, capture_output=True, text=True).stdout)["series"]}
    assert read("x.json-dir") == pytest.approx(read("h.json-dir"))


def test_errors_are_named(tmp_path, pair):
    assert "one or more" in compare(status=2).stderr
    assert "no such" in compare(tmp_path / "none.jsonl", pair[1], status=2).stderr.lower()
    assert "second result" in compare(pair[0], status=125).stderr
    assert "unknown metric" in compare(*pair, "--metric=speed", status=2).stderr
    assert "not a share" in compare(*pair, "--limits=wall=fast", status=2).stderr
    other = write(tmp_path / "other.jsonl", runs("elsewhere", 5))
    assert "no order" in compare(pair[0], other, status=125).stderr


def test_memory_of_the_tree_and_of_the_largest_process_are_not_mixed(tmp_path):
    """One file knows the whole tree, the other does not: only what both have is compared."""
    a = write(tmp_path / "a.jsonl", runs("o", 10))
    b = write(tmp_path / "b.jsonl", runs("o", 10, memory_peak_kb=4096))
    c = write(tmp_path / "c.jsonl", runs("o", 10, memory_peak_kb=4096))

    def ratio(metric, *files):
        rows = json.loads(compare("--json", f"--metric={metric}", *files).stdout)["rows"]
        return [row["ratio"] for row in rows if row["metric"] == metric]

    assert ratio("maxrss", a, b) == [1]
    assert ratio("memory", b, c) == [1]
    compare("--metric=memory", a, b, status=125)


def test_exported_memory_is_never_a_mixture(tmp_path):
    whole = write(tmp_path / "whole.jsonl", runs("o", 3, memory_peak_kb=4096))
    partly = write(tmp_path / "partly.jsonl", runs("o", 2, memory_peak_kb=4096) + [line("o", 2, 10)])
    for path, size in ((whole, 4096), (partly, 1024)):
        out = tmp_path / "out.json"
        compare(path, path, "--export-json", out)
        (result,) = json.loads(out.read_text())["results"][:1]
        assert result["memory_usage_byte"] == [size * 1024] * 3
