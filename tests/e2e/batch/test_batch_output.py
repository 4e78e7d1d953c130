"""How muster batch shows outputs, tells how far it is, and ends."""

import json
import os
import re
import signal

import pytest
from waits import wait_for


def catches(pid, sig):
    caught = re.search(r"SigCgt:\s+(\w+)", open(f"/proc/{pid}/status").read())[1]
    return int(caught, 16) >> (sig - 1) & 1


def test_outputs_come_in_the_order_of_the_list(muster, tmp_path):
    """The first order ends last: it waits for the second, which waits for nothing."""
    first = "until [ -e second ]; do sleep 0.02; done; echo first"
    r = muster("batch", "-q", "-j2", "-k", ":::", first, "echo second; touch second", "echo third", "exit 3", "echo fifth")
    assert r.stdout == "first\nsecond\nthird\nfifth\n"


def test_lines_are_shown_while_the_order_runs(muster, start, tmp_path):
    order = "echo one; echo half >&2; until [ -e go ]; do sleep 0.02; done; echo two"
    process = start("batch", "-q", "--line-buffer", "--tag", f"true {{}}; {order}", ":::", "x")
    assert process.stdout.readline() == "x\tone\n"
    (tmp_path / "go").touch()
    assert process.communicate()[0] == "x\ttwo\n"


def test_an_ungrouped_order_writes_by_itself(muster, tmp_path):
    r = muster("batch", "-q", "-u", "-o", "r.jsonl", ":::", "readlink /proc/self/fd/1; echo e >&2")
    assert r.stdout.startswith("pipe:") and r.stderr == "e\n"
    assert "--ungroup" in (tmp_path / "r.jsonl").read_text()


def test_the_output_of_good_repeated_runs_is_hidden(muster, tmp_path):
    run = ("batch", "-q", "--runs=2", "--quiet-check=off", ":::", "echo said")
    assert muster(*run).stdout == ""
    assert muster(run[0], "--show-output", *run[1:]).stdout == "said\nsaid\n"
    assert muster(run[0], "--output=inherit", *run[1:]).stdout == "said\nsaid\n"
    assert muster("batch", "-q", "--runs=2", "--quiet-check=off", ":::", "echo said; exit 1").stdout == "said\n"


def test_the_table_has_the_order_of_the_list(muster):
    """Not that of the ends: the second command ends before the first."""
    r = muster("batch", "--progress=none", "-j2", "-r2", "--quiet-check=off", "sleep 0.3", "true x", "true y")
    assert r.stdout.split("Summary")[0].count("Benchmark") == 3, r.stdout
    assert [line.split(": ")[1] for line in r.stdout.splitlines() if line.startswith("Benchmark")] == ["sleep 0.3", "true x", "true y"]


def test_results_have_names_for_people(muster, tmp_path):
    muster("batch", "-q", "--results=out", "echo {1} {2}", ":::", "a", "b/c", ":::", "x")
    names = sorted(os.listdir(tmp_path / "out"))
    assert [re.sub(r"-[0-9a-f]{8}", "", name) for name in names] == ["echo_a_x.err", "echo_a_x.out", "echo_b_c_x.err", "echo_b_c_x.out"]
    muster("batch", "-q", "--results=by/{1}/{2}.txt", "echo {1} {2}", ":::", "a", "b", ":::", "x")
    assert (tmp_path / "by/b/x.txt").read_text() == "b x\n" and (tmp_path / "by/b/x.txt.err").read_text() == ""
    (tmp_path / "list").write_text("true\n")
    assert muster("batch", "--results=by/{1}", "list").returncode == 2


def test_the_end_lists_what_failed_with_its_last_lines(muster, tmp_path):
    r = muster("batch", "-n", "good", "-n", "bad", ":::", "echo fine", "for i in 1 2 3 4 5 6 7; do echo line $i >&2; done; exit 3")
    assert r.returncode == 1
    listed = r.stderr[r.stderr.index("failed:\n"):]
    assert "  bad: exit code 3 after " in listed and "    line 3\n    line 4\n" in listed and "    line 2\n" not in listed
    assert listed.splitlines()[-1].startswith("muster batch: 1 of 2 done, 1 failed")


@pytest.mark.parametrize("commands, options, code", [
    (["exit 1", "exit 7", "true"], [], 2),
    (["exit 7", "true"], ["-j1", "--halt=now,fail=1"], 7),
    (["true"], [], 0),
])
def test_the_exit_status_of_parallel(muster, commands, options, code):
    assert muster("batch", "-q", "--exit-code=parallel", *options, ":::", *commands).returncode == code


def test_a_run_with_any_exit_code_can_count(muster, tmp_path):
    r = muster("batch", "-q", "-i", "--runs=3", "--quiet-check=off", "--export-json", "x.json", ":::", "exit 4")
    assert r.returncode == 0 and '"exit_codes": [4, 4, 4]' in (tmp_path / "x.json").read_text()


def test_sigusr1_tells_and_sighup_lets_running_orders_end(start, tmp_path):
    order = "echo > started{}; until [ -e go ]; do sleep 0.02; done; echo ended {}"
    process = start("batch", "-j1", "--progress=none", "--order=listed", order, ":::", "1", "2")
    wait_for(lambda: (tmp_path / "started1").exists(), "the first order")
    process.send_signal(signal.SIGUSR1)
    assert re.match(r"muster batch: 0 of 2 done", process.stderr.readline())
    assert "echo > started1" in process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGUSR1)  # answered after the signal before it
    process.stderr.readline()
    (tmp_path / "go").touch()
    out, err = process.communicate()
    assert (process.returncode, out) == (128 + signal.SIGHUP, "ended 1\n")
    assert "1 not run" in err and "stopped by SIGHUP" in err and not (tmp_path / "started2").exists()


def test_orders_are_nice(muster, tmp_path):
    r = muster("batch", "-q", "--nice=7", "-j1", ":::", "nice")
    assert int(r.stdout) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 7)


def test_a_busy_host_starts_nothing(start, muster, tmp_path):
    process = start("batch", "--memfree=1000000G", "--progress=none", ":::", "touch ran")
    wait_for(lambda: catches(process.pid, signal.SIGUSR1), "the handler")
    assert "orders wait for the host" in process.stderr.readline()
    process.send_signal(signal.SIGUSR1)
    assert "0 of 1 done" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    assert "orders wait" not in process.communicate()[1]
    assert process.returncode == 128 + signal.SIGTERM and not (tmp_path / "ran").exists()
    assert muster("batch", "-q", "--memfree=1M", "--load=100000", ":::", "echo ran").stdout == "ran\n"


def test_a_dry_run_lists_the_commands(muster, tmp_path):
    r = muster("batch", "-q", "--dry-run", "touch {}", ":::", "a b", "c")
    assert r.stdout == "touch 'a b'\ntouch c\n" and not (tmp_path / "c").exists()


def test_a_junit_case_has_a_name_the_exit_code_and_the_last_words(muster, tmp_path):
    muster("batch", "-q", "--export-junit", "j.xml", "-n", "named", ":::", "true", "echo 'too bad' >&2; exit 3")
    text = (tmp_path / "j.xml").read_text()
    assert 'name="named"' in text and "exit code 3" in text and "<system-err>too bad\n</system-err>" in text
    assert 'name="echo ' in text and "<property" not in text  # there is one host


def test_one_bad_line_costs_that_line_and_is_told(muster, tmp_path):
    muster("batch", "-q", "-o", "r.jsonl", "true {}", ":::", "1", "2")
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    (tmp_path / "r.jsonl").write_text("\n".join([lines[0], lines[1], '{"id":', lines[2]]) + "\n")
    r = muster("batch", "--resume", "-o", "r.jsonl", "true {}", ":::", "1", "2")
    assert r.returncode == 0 and "2 were done before" in r.stderr
    assert "r.jsonl:3: " in r.stderr and "the line is skipped" in r.stderr


def test_suspect_runs_are_told_wherever_they_are_left_out(muster, tmp_path):
    muster("batch", "-q", "--runs=3", "--quiet-check=off", "-o", "r.jsonl", "true {}", ":::", "1", "2")
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    spoiled = [line[:-1] + ',"suspect":["load"]}' if '"args":["1"]' in line or '"run":2' in line else line for line in lines[1:]]
    (tmp_path / "s.jsonl").write_text("\n".join([lines[0], *spoiled]) + "\n")
    r = muster("compare", "s.jsonl", "--export-json", "x.json", "--export-csv", "x.csv", "s.jsonl")
    one, two = sorted(json.load(open(tmp_path / "x.json"))["results"], key=lambda entry: entry["command"])[::2]
    assert one["suspect"] is True and len(one["times"]) == 3 and two["suspect_left_out"] == 1
    assert "true 1 (A) (suspect)" in (tmp_path / "x.csv").read_text() or "true 1 (s.jsonl) (suspect)" in (tmp_path / "x.csv").read_text()
    (tmp_path / "t.jsonl").write_text("\n".join([lines[0], *(line for line in spoiled if '"args":["1"]' in line)]) + "\n")
    r = muster("compare", "t.jsonl", "t.jsonl")
    assert r.returncode == 125 and "6 runs are suspect" in r.stderr and "--include-suspect" in r.stderr
