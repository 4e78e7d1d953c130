"""`muster batch --hosts`: one terminal, whose orders run on many hosts, through real sshds."""

import collections
import os
import signal

import pytest

import proc
from batch_files import results, write
from sshd import Ssh
from tree import MUSTER, clean_env
from waits import wait_for


@pytest.fixture
def net(make_lab):
    return lambda count, **options: Ssh(make_lab(count + 1), **options)


def batch(net, *args, hosts=None, where=None, env=None, **popen):
    names = ",".join(getattr(host, "name", host) for host in hosts or net.hosts)
    return net.terminal.start(MUSTER, "batch", where or f"--hosts={names}", f"--ssh=ssh -F {net.config}", *map(str, args),
                              env=clean_env(**(env or {})), **popen)


def final(path):
    return collections.Counter(line["cmd"] for line in results(path) if line["reason"] == "ok")


def waiting_orders(directory, count):
    return write(directory / "list", *(f"echo {n} >>{directory}/started; until test -e {directory}/go; do sleep 0.05; done"
                                       for n in range(count)))


def started(directory):
    return (directory / "started").read_text().split() if (directory / "started").exists() else []


def test_one_terminal_runs_a_list_on_all_hosts(net, tmp_path):
    net = net(3)
    # Each order waits for one on each other host, so that all three must take part.
    orders = write(tmp_path / "orders", *(
        f"touch {net.directory}/up-$(hostname); until [ $(ls {net.directory} | grep -c ^up-) = 3 ]; do sleep 0.05; done; "
        f"echo {n} $COLOUR $(hostname)" for n in range(3)))
    job = batch(net, "-j1", "-o", tmp_path / "r.jsonl", "--joblog", tmp_path / "log", orders, env={"COLOUR": "blue"})
    assert job.wait() == 0, job.text()
    lines = results(tmp_path / "r.jsonl")
    assert sorted(line["node"] for line in lines) == ["node1", "node2", "node3"]
    assert sorted(line.split("\t")[1] for line in (tmp_path / "log").read_text().splitlines()[1:]) == ["node1", "node2", "node3"]
    said = [line.split() for line in job.text().splitlines() if " blue " in line]
    assert sorted(words[0] for words in said) == ["0", "1", "2"] and {words[2] for words in said} == {"node1", "node2", "node3"}
    assert "3 of 3 done, on 3 hosts" in job.text()
    net.nothing_left()


def test_the_orders_come_from_standard_input_and_slots_are_jobs(net, tmp_path):
    net = net(2)
    hostfile = write(tmp_path / "hosts", "node1 slots=3  # three at a time", "node2:1")
    (tmp_path / "in").write_text("".join(f"touch {net.directory}/up{n}; until [ $(ls {net.directory} | grep -c ^up) = 4 ]; "
                                         f"do sleep 0.05; done\n" for n in range(4)))
    with open(tmp_path / "in", "rb") as orders:
        job = batch(net, "-o", tmp_path / "r.jsonl", "-", where=f"--hostfile={hostfile}", stdin=orders)
        assert job.wait() == 0, job.text()
    assert collections.Counter(line["node"] for line in results(tmp_path / "r.jsonl")) == {"node1": 3, "node2": 1}
    net.nothing_left()


@pytest.mark.parametrize("canary, told", [("exit 3", "exit code 3"), ("kill -9 $$", "SIGKILL"), ("exit 0", None)])
def test_a_canary_that_fails_on_its_host_holds_all_orders_back(net, tmp_path, canary, told):
    net = net(2)
    orders = write(tmp_path / "orders", f"echo one >>{net.directory}/ran", f"echo two >>{net.directory}/ran")
    job = batch(net, "-o", tmp_path / "r.jsonl", f"--canary={canary}", orders)
    assert job.wait() == (1 if told else 0), job.text()
    assert (net.directory / "ran").exists() == (told is None)
    lines = [(line["id"], line["reason"]) for line in results(tmp_path / "r.jsonl")]
    if told:
        assert lines == [("canary", "canary")] and "2 skipped because their canary failed" in job.text()
        assert "the canary failed: " in job.text() and told in job.text()
    else:
        assert len(lines) == 2 and {reason for _, reason in lines} == {"ok"}


def test_ctrl_c_ends_all_hosts_and_resume_goes_on(net, tmp_path):
    net = net(2)
    orders = waiting_orders(net.directory, 8)
    job = batch(net, "-j2", "-o", tmp_path / "r.jsonl", orders)
    wait_for(lambda: len(started(net.directory)) == 4, "orders on both hosts")
    job.signal(signal.SIGINT)
    assert job.wait() == 130, job.text()
    net.nothing_left()
    (net.directory / "go").touch()
    again = batch(net, "-j2", "--resume", "-o", tmp_path / "r.jsonl", orders)
    assert again.wait() == 0, again.text()
    assert set(final(tmp_path / "r.jsonl").values()) == {1} and len(final(tmp_path / "r.jsonl")) == 8
    net.nothing_left()


@pytest.mark.parametrize("victim", [b"fleet-relay", b"batch"])
def test_a_host_that_is_lost_takes_no_order_along(net, tmp_path, victim):
    net = net(2)
    orders = waiting_orders(net.directory, 6)
    job = batch(net, "-j2", "-o", tmp_path / "r.jsonl", orders)
    wait_for(lambda: len(started(net.directory)) == 4, "orders on both hosts")
    found = [pid for pid in net.hosts[1].pids() if proc.words(pid)[1:2] == [victim]]
    assert len(found) == 1, net.processes()
    os.kill(found[0], signal.SIGKILL)
    wait_for(lambda: "lost node2" in job.text(), "the loss")
    (net.directory / "go").touch()
    assert job.wait() == 0, job.text()
    assert set(final(tmp_path / "r.jsonl").values()) == {1} and len(final(tmp_path / "r.jsonl")) == 6
    net.nothing_left()


def test_nothing_is_left_when_the_terminal_is_killed(net, tmp_path):
    net = net(2)
    job = batch(net, "-j2", "-o", tmp_path / "r.jsonl", waiting_orders(net.directory, 4))
    wait_for(lambda: len(started(net.directory)) == 4, "orders on both hosts")
    job.kill()
    job.wait()
    net.nothing_left()


def test_a_host_that_cannot_be_reached_is_named_and_the_others_do_the_work(net, tmp_path):
    net = net(2)
    orders = write(tmp_path / "orders", *(f"echo {n}" for n in range(4)))
    job = batch(net, "-o", tmp_path / "r.jsonl", orders, hosts=["node1", "nowhere", "node2"])
    assert job.wait() == 0, job.text()
    assert "cannot reach nowhere" in job.text() and "4 of 4 done" in job.text()
    alone = batch(net, "-o", tmp_path / "none.jsonl", orders, hosts=["nowhere"])
    assert alone.wait() == 125, alone.text()
    assert "no host is left that runs orders" in alone.text()
    net.nothing_left()
