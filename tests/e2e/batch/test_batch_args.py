"""What the words and letters of muster batch mean, and what they are refused for."""

import json

import pytest


def test_a_word_that_is_a_file_and_a_program_is_refused(muster, tmp_path):
    (tmp_path / "gzip").write_text("touch ran\n")
    r = muster("batch", "gzip")
    assert r.returncode == 2 and "gzip is a file here and a program: write ./gzip" in r.stderr
    assert muster("batch", "-q", "./gzip").returncode == 0 and (tmp_path / "ran").exists()


def test_a_script_is_a_command_and_a_list_that_is_executable_is_a_list(muster, tmp_path):
    script, orders = tmp_path / "script", tmp_path / "orders"
    script.write_text("#!/bin/sh\necho script $1\n")
    orders.write_text("echo list\n")
    script.chmod(0o755)
    orders.chmod(0o755)
    assert muster("batch", "-q", "./script", stdin=None, input="a\n").stdout == "script a\n"
    assert muster("batch", "-q", "./orders").stdout == "list\n"


@pytest.mark.parametrize("words, complaint", [
    (["ordres.txt"], "ordres.txt: no such list of orders, and no such program"),
    ([], "no orders"),
    (["echo", ":::+", "a"], "':::+' has no list before it"),
    (["--colsep=(", "echo", ":::", "a"], "--colsep '('"),
    (["--header=.*", "echo", ":::", "a"], "only ':'"),
    (["echo {= $_++ =}", ":::", "a"], "Perl expressions"),
    (["-S", "host1,host2", "echo", ":::", "a"], "'--sshlogin' is not supported yet: --hosts names"),
    (["--pipe-part", "wc"], "'--pipe-part' is not supported"),
    (["-u", "ms", "wc"], "'--time-unit' is not supported"),
    (["-r", "2", "true", "--export-json", "x"], "options come first"),
    (["-d", "ab", "echo", ":::", "a"], "one character"),
    (["-L", "x"], "needs 2 values"),
    (["-P", "x", "3", "1", "true {x}"], "no number of steps"),
    (["-n", "a", "-n", "b", "true", ":::", "1"], "2 names for 1 orders"),
    (["echo", "::::", "missing"], "missing"),
    (["-a", "missing", "echo"], "missing"),
])
def test_what_cannot_be_meant_is_refused_before_anything_runs(muster, tmp_path, words, complaint):
    r = muster("batch", *words)
    assert r.returncode == 2 and complaint in r.stderr and r.stdout == ""


def test_a_letter_means_what_the_word_behind_it_says(muster, tmp_path):
    r = muster("batch", "-q", "-j1", "-n2", "echo", ":::", "a", "b", "c")
    assert r.stdout == "a b\nc\n"
    muster("batch", "-q", "-n", "first", "-r", "2", "--quiet-check=off", "-o", "r.jsonl", ":::", "true")
    lines = [json.loads(line) for line in open(tmp_path / "r.jsonl")][1:]
    assert [(line["id"], line["run"]) for line in lines] == [("first", 0), ("first", 1)]
    r = muster("batch", "-q", "-P", "2", "-r", "echo", stdin=None, input="a\n\nb\n")
    assert sorted(r.stdout.split()) == ["a", "b"]


def test_parameters_reach_commands_hooks_and_exports(muster, tmp_path):
    muster("batch", "-q", "-r", "1", "-w", "0", "-L", "who", "a,b c", "-P", "n", "1", "2", "--quiet-check=off",
           "--prepare", "echo prepare {who} >>log", "--export-json", "x.json", "echo run {who} {n} >>log")
    said = sorted((tmp_path / "log").read_text().splitlines())
    assert said == sorted(["prepare a", "prepare b c"] * 2 + [f"run {who} {n}" for who in ("a", "b c") for n in (1, 2)])
    parameters = [entry["parameters"] for entry in json.load(open(tmp_path / "x.json"))["results"]]
    assert {"n": "2", "who": "b c"} in parameters and len(parameters) == 4


def test_eight_thousand_copies_of_an_order_are_told_apart_at_once(muster, tmp_path):
    """Each copy counted from one again: 18 seconds of CPU time."""
    (tmp_path / "orders").write_text("true\n" * 8000)
    r = muster("batch", "--dry-run", "--allow-duplicates", "orders")
    assert r.returncode == 0 and "8000 orders" in r.stdout + r.stderr
