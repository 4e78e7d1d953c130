"""Orders that lie ahead: a slot starts the next one by itself, and nothing else is different."""

import os
import signal

import pytest

from batch_files import results, write, write_orders
from proc import alive, children, state, warden_of
from waits import DEADLINE, wait_for


@pytest.fixture
def halfway(start, tmp_path):
    """A batch of one slot that is stopped while its first order runs; the second one waits for its gate, too."""
    for gate in "gate1", "gate2":
        os.mkfifo(tmp_path / gate)
    write(tmp_path / "orders", ": > one; cat gate1", ": > two; test -e again || cat gate2", ": > three")
    with open(tmp_path / "told", "w") as told:
        batch = start("batch", "-q", "-j1", "--order=listed", "-o", "r.jsonl", "orders", stderr=told)
    wait_for((tmp_path / "one").exists, "the first order")
    batch.send_signal(signal.SIGUSR1)  # the answer comes from its loop: what it does before that is done
    wait_for(lambda: (tmp_path / "told").read_text(), "the answer")
    batch.send_signal(signal.SIGSTOP)
    wait_for(lambda: state(batch.pid) == "T", "the stop")
    return batch


def release(path):
    open(path, "w").close()


def outcomes(path):
    return [(line["cmd"][4:7].strip("; "), line["reason"]) for line in results(path)]


def test_the_next_order_starts_while_the_batch_is_stopped(halfway, tmp_path):
    release(tmp_path / "gate1")
    wait_for((tmp_path / "two").exists, "the second order")
    assert state(halfway.pid) == "T"
    halfway.send_signal(signal.SIGCONT)
    release(tmp_path / "gate2")
    assert halfway.wait(DEADLINE) == 0
    assert outcomes(tmp_path / "r.jsonl") == [("one", "ok"), ("two", "ok"), ("thr", "ok")]


def test_an_order_that_its_slot_has_started_is_interrupted_like_the_others(halfway, muster, tmp_path):
    release(tmp_path / "gate1")
    wait_for((tmp_path / "two").exists, "the second order")
    halfway.send_signal(signal.SIGINT)
    halfway.send_signal(signal.SIGCONT)
    assert halfway.wait(DEADLINE) == 128 + signal.SIGINT
    assert not (tmp_path / "three").exists()
    found = outcomes(tmp_path / "r.jsonl")
    assert [name for name, _ in found] == ["one", "two"] and found[1] == ("two", "killed")
    for name in "again", "gate1":
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).touch()
    assert muster("batch", "-q", "-j1", "--order=listed", "--resume", "-o", "r.jsonl", "orders").returncode == 0
    assert sorted(name for name, reason in outcomes(tmp_path / "r.jsonl") if reason == "ok") == ["one", "thr", "two"]


def test_an_order_that_its_slot_has_started_is_lost_with_the_warden(halfway, tmp_path):
    release(tmp_path / "gate1")
    wait_for((tmp_path / "two").exists, "the second order")
    warden = warden_of(halfway.pid)
    order, = children(warden)
    os.kill(warden, signal.SIGKILL)
    wait_for(lambda: not alive(order), "the end of the order")
    halfway.send_signal(signal.SIGCONT)
    assert halfway.wait(DEADLINE) == 1
    assert outcomes(tmp_path / "r.jsonl") == [("one", "ok"), ("two", "lost"), ("thr", "ok")]


def test_an_order_that_lies_ahead_is_not_started_after_a_drain(halfway, tmp_path):
    halfway.send_signal(signal.SIGHUP)
    halfway.send_signal(signal.SIGCONT)
    wait_for(lambda: state(halfway.pid) != "T", "its going on")
    told = (tmp_path / "told").stat().st_size
    halfway.send_signal(signal.SIGUSR1)
    wait_for(lambda: (tmp_path / "told").stat().st_size > told, "the answer")
    release(tmp_path / "gate1")
    assert halfway.wait(DEADLINE) == 128 + signal.SIGHUP
    assert not (tmp_path / "two").exists()
    assert outcomes(tmp_path / "r.jsonl") == [("one", "ok")]


MIX = {
    "silent": ("true", "ok", "", ""),
    "prints": ("echo {0}", "ok", "{0}\n", ""),
    "warns": ("echo {0} >&2", "ok", "", "{0}\n"),
    "fails": ("exit 3", "exit", "", ""),
    "dies": ("kill -TERM $$", "signal", "", ""),  # -9 could be told as that of the kernel, for want of memory
    "leaves": ("sleep 600 & echo $! > left-{0}", "ok", "", ""),
    "absent": ("/nowhere/no-such-program", "spawn", "", ""),
}


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_order_has_its_own_outcome_and_output(muster, tmp_path, jobs):
    kinds = list(MIX)
    orders = [(f"{i}-{kinds[i * 5 % len(kinds) if i % 3 else 0]}", i) for i in range(120)]
    lines = []
    for name, i in orders:
        command, *_ = MIX[name.partition("-")[2]]
        own = {"env": {"OWN": str(i)}} if i % 11 == 0 else {}
        lines.append({"id": name, "cmd": command.format(name), **own})
    write_orders(tmp_path / "orders", *lines)
    r = muster("batch", "-q", "-k", f"-j{jobs}", "--place=none", "-o", "r.jsonl", "orders")
    assert r.returncode == 1
    found = {line["id"]: line for line in results(tmp_path / "r.jsonl")}
    assert len(results(tmp_path / "r.jsonl")) == len(orders) == len(found)
    shown = ""
    for name, _ in orders:
        _, reason, out, err = MIX[name.partition("-")[2]]
        line = found[name]
        assert line["reason"] == reason, line
        assert line["stdout"]["bytes"] == len(out.format(name)), line
        assert line["stderr"]["bytes"] == len(err.format(name)), line
        shown += out.format(name)
    assert r.stdout == shown
    for left in tmp_path.glob("left-*"):
        assert not alive(int(left.read_text()))


def test_the_slot_of_an_order_is_its_own(muster, tmp_path):
    r = muster("batch", "-q", "-j2", "-o", "r.jsonl", "true {%} {}", ":::", *range(40))
    assert r.returncode == 0
    assert len(results(tmp_path / "r.jsonl")) == 40
