"""Labels and source commands of a batch: in the list, in results, with failures, for canaries."""

import json

import pytest

from batch_files import results, write, write_orders


def test_labels_are_kept_and_printed_with_failures(muster, tmp_path):
    orders = write_orders(tmp_path / "orders", {"cmd": "exit 3", "id": "x", "labels": ["pointwise", "add"]},
                       {"cmd": "true", "labels": {"op": "mul", "language": "C++", "threads": 2}})
    r = muster("batch", "-o", "r.jsonl", orders)
    assert r.returncode == 1
    assert "order x [pointwise, add] failed: exit code 3" in r.stderr
    labels = {line["cmd"]: line["labels"] for line in results(tmp_path / "r.jsonl")}
    assert labels == {"exit 3": {"1": "pointwise", "2": "add"},
                      "true": {"op": "mul", "language": "C++", "threads": "2"}}
    r = muster("batch", "-o", "r.jsonl", "--retry-failed")
    assert "order x [pointwise, add] failed" in r.stderr, "labels survive in the result file"


def test_a_filter_chooses_what_runs(muster, tmp_path):
    orders = write_orders(tmp_path / "orders", *({"cmd": f"echo {op} {threads}", "labels": {"op": op, "threads": threads}}
                                   for op in ("add", "matmul") for threads in (1, 2)))
    r = muster("batch", "-q", "--filter=op=mat*", "--filter", "threads!=1", orders)
    assert r.returncode == 0 and r.stdout == "matmul 2\n"
    r = muster("batch", "--filter=op=sub", orders)
    assert r.returncode == 2 and "no order of 4 passes --filter" in r.stderr
    r = muster("batch", "--filter=op", orders)
    assert r.returncode == 2 and "'op' is not LABEL=PATTERN" in r.stderr
    r = muster("batch", "-q", "--filter=1=b", "echo {1} {2}", ":::", "a", "b", ":::", "c")
    assert r.stdout == "b c\n", "the arguments of a template are labels"
    r = muster("batch", "-q", "--filter=size=2", "--parameter-list", "size", "1,2", "echo {size}")
    assert r.stdout == "2\n", "by their names too"


def test_a_canary_runs_once_with_each_source_command(muster, tmp_path):
    (tmp_path / "good.sh").write_text("KIND=good\n")
    (tmp_path / "bad.sh").write_text("KIND=bad\n")
    orders = write(tmp_path / "orders",
                   *(f". ./{kind}.sh && echo {kind} $KIND {i}" for kind in ("good", "bad") for i in range(3)),
                   json.dumps({"cmd": ["echo", "plain"]}), json.dumps({"cmd": "echo key", "source": "KIND=good"}))
    r = muster("batch", "-o", "r.jsonl", "--canary", 'echo "$KIND." >>canaries; [ "$KIND" != bad ]', orders)
    assert r.returncode == 1
    assert sorted((tmp_path / "canaries").read_text().split()) == [".", "bad.", "good.", "good."]
    assert sorted(r.stdout.splitlines()) == sorted(["key", "plain", *(f"good good {i}" for i in range(3))])
    assert "3 skipped because their canary failed" in r.stderr
    canaries = [line for line in results(tmp_path / "r.jsonl") if line["reason"] == "canary"]
    assert [line["source"] for line in canaries] == [". ./bad.sh"]


def test_an_automatic_canary_looks_behind_the_source_command(muster, tmp_path):
    (tmp_path / "bad.sh").write_text("return 7\n")
    (tmp_path / "good.sh").write_text("")
    lines = [f". ./{kind}.sh && echo {kind} {i}" for kind in ("bad", "good") for i in range(3)]
    r = muster("batch", "--canary=auto", "-o", "r.jsonl", write(tmp_path / "orders", *lines))
    assert r.returncode == 1
    assert sorted(r.stdout.splitlines()) == [f"good {i}" for i in range(3)]
    assert len(results(tmp_path / "r.jsonl")) == 4, "one of the broken environment, three of the other"


def test_a_pair_waits_for_both_environments(muster, tmp_path):
    (tmp_path / "a.sh").write_text("SIDE=a\n")
    (tmp_path / "b.sh").write_text("return 1\n")
    r = muster("batch", "--ab", "-r1", "--canary=echo $SIDE >>canaries", "A=. ./a.sh && touch ran", "B=. ./b.sh && touch ran")
    assert r.returncode == 1 and not (tmp_path / "ran").exists()
    assert (tmp_path / "canaries").read_text() == "a\n"


def test_a_canary_that_takes_too_long_is_told_as_such(muster, tmp_path):
    r = muster("batch", "--canary=sleep 100", "--timeout=0.2", "-o", "r.jsonl", ":::", "touch ran")
    assert r.returncode == 1 and not (tmp_path / "ran").exists()
    assert "the canary failed: timed out after" in r.stderr
    (line,) = results(tmp_path / "r.jsonl")
    assert line["reason"] == "canary" and line["missing"]["run"] == "the canary timed out"


def test_variants_of_a_list_are_compared_with_each_other(muster, tmp_path):
    orders = write_orders(tmp_path / "orders", *({"cmd": f"{side} {op}", "id": op, "variant": variant}
                                   for op in ("add", "mul") for variant, side in (("A", "true"), ("B", "/bin/true"))))
    assert muster("batch", "-q", "-o", "r.jsonl", "-r3", orders).returncode == 0
    r = muster("compare", "r.jsonl", "--json", "--include-suspect")
    assert {row["id"]: (row["a"]["runs"], row["b"]["runs"]) for row in json.loads(r.stdout)["rows"]} == {
        "add": (3, 3), "mul": (3, 3)}


FAMILIES = {"pointwise": ("add", "mul"), "matmul": ("small", "large")}


@pytest.fixture
def labelled(tmp_path):
    """Two results of eight orders with three labels each; "large" became 10 % slower."""
    paths = []
    for name, factor in (("a", 1.0), ("b", 1.1)):
        lines = [{"muster": "batch", "v": 1}]
        for family, op, threads in ((f, op, t) for f, ops in FAMILIES.items() for op in ops for t in ("10", "2")):
            order = f"{family}/{op}/{threads}"
            lines += [{"id": order, "hash": f"h{order}", "cmd": f"./bench {op}", "run": run, "reason": "ok",
                       "labels": {"1": family, "2": op, "threads": threads},
                       "wall_ns": int(1e7 * (1 + run / 1e4) * (factor if op == "large" else 1))} for run in range(12)]
        paths.append(write(tmp_path / f"{name}.jsonl", *map(json.dumps, lines)))
    return paths


def names(done):
    """The first words of the rows and headings of the table, with their indents."""
    lines = done.stdout.split("verdict\n", 1)[1].split("\n\n")[0].splitlines()
    return [line[:len(line) - len(line.lstrip())] + line.split()[0] for line in lines if " slower, " not in line]


def test_orders_with_labels_are_compared_as_a_tree(muster, labelled):
    done = muster("compare", *labelled, "--sort=listed")
    assert done.returncode == 3
    assert names(done) == ["  pointwise", "    add", "      threads=10", "      threads=2", "    mul", "      threads=10",
                           "      threads=2", "  matmul", "    small", "      threads=10", "      threads=2",
                           "    large", "      threads=10", "      threads=2"]
    rows = json.loads(muster("compare", *labelled, "--json").stdout)["rows"]
    assert rows[0]["labels"] == {"1": "pointwise", "2": "add", "threads": rows[0]["id"].split("/")[2]}


def test_rows_are_grouped_sorted_and_chosen_by_label(muster, labelled):
    done = muster("compare", *labelled, "--group-by=threads", "--filter=1=matmul", "--sort=2")
    assert names(done) == ["  threads=10", "    matmul/large/10", "    matmul/small/10",
                           "  threads=2", "    matmul/large/2", "    matmul/small/2"]
    done = muster("compare", *labelled, "--group-by=none", "--filter=2=small", "--sort=threads")
    assert names(done) == ["  matmul/small/2", "  matmul/small/10"], "numbers by their value"
    done = muster("compare", *labelled, "--group-by=none")
    assert names(done)[0].startswith("  matmul/large"), "the largest ratio first"
    markdown = muster("compare", *labelled, "--markdown", "--filter=2=large").stdout
    assert "| &emsp;`large` | | | | | |" in markdown and "| &emsp;&emsp;`threads=2` |" in markdown


def test_labels_are_parameters_of_exports(muster, labelled):
    exported = json.loads(muster("compare", labelled[0], "--export-json=-", "--filter=2=large").stdout)["results"]
    assert [each["parameters"] for each in exported] == [
        {"1": "matmul", "2": "large", "threads": threads, "id": f"matmul/large/{threads}"} for threads in ("10", "2")]


def test_orders_with_the_same_labels_keep_their_names(muster, tmp_path):
    lines = [{"muster": "batch", "v": 1}, *({"id": order, "hash": f"h{order}", "cmd": "x", "run": run, "reason": "ok",
                                             "labels": {"op": "add"}, "wall_ns": 1000} for order in ("p", "q")
                                            for run in range(3))]
    path = write(tmp_path / "a.jsonl", *map(json.dumps, lines))
    assert names(muster("compare", path, path)) == ["  p", "  q"]


@pytest.mark.parametrize("option, reason", [
    ("--group-by=a b", "'a b' is not the name of a label"),
    ("--sort=", "'' is not ratio, listed, name or the name of a label"),
    ("--filter=x", "'x' is not LABEL=PATTERN"),
])
def test_what_is_not_a_label_is_refused(muster, option, reason):
    done = muster("compare", option, "a", "b")
    assert done.returncode == 2 and reason in done.stderr
