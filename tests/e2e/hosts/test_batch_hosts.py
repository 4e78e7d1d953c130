"""muster batch on many hosts: each order has one result, whatever dies."""

import collections
import contextlib
import json
import os
import re
import signal
import subprocess
from xml.etree import ElementTree

import pytest

from batch_files import results, write
from page import Page
from ports import Port
from process import Process
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

QUICK = "keep_alive_interval=500ms,failover_after=2"  # where a test waits for silence, and takes losses as they come


class Hosts:
    """The same command line on several "hosts", which are processes of this one."""

    def __init__(self, directory, endpoints=1):
        self.directory, self.processes = directory, []
        self.ports = [Port() for _ in range(endpoints)]

    def start(self, *args, count=3, conf="keep_alive_interval=5", env=None):
        endpoints = ",".join(port.endpoint for port in self.ports)
        for number in range(len(self.processes), len(self.processes) + count):
            log = self.directory / f"host{number}.log"
            out = open(self.directory / f"host{number}.out", "wb")
            popen = subprocess.Popen(
                [MUSTER, "batch", f"--rdzv-endpoint={endpoints}", f"--rdzv-conf={conf}", *map(str, args)],
                cwd=self.directory, env=clean_env(MUSTER_TOKEN="secret", **(env or {})), stdin=subprocess.DEVNULL, stdout=out,
                stderr=open(log, "wb"))
            out.close()
            self.processes.append(Process(f"host{number}", popen, log))
        return self.processes

    def coordinator(self, path):
        """The one that has the result file open."""
        def has_it(process):
            with contextlib.suppress(OSError):
                return any(os.path.realpath(f"/proc/{process.pid}/fd/{fd}") == str(path)
                           for fd in os.listdir(f"/proc/{process.pid}/fd"))
        return wait_for(lambda: next(filter(has_it, self.processes), None), "a coordinator")

    def output(self):
        return "".join((self.directory / f"host{n}.out").read_text() for n in range(len(self.processes)))

    def close(self):
        for process in self.processes:
            if process.running():
                process.kill()
                process.wait()
        for port in self.ports:
            port.close()


@pytest.fixture
def make_hosts(tmp_path):
    with contextlib.ExitStack() as all_hosts:
        yield lambda *args: all_hosts.enter_context(contextlib.closing(Hosts(tmp_path, *args)))


def final(path):
    """{command: how often it went well}"""
    return collections.Counter(line["cmd"] for line in results(path) if line["reason"] == "ok")


def started(path):
    return path.read_text().split() if path.exists() else []


def waiting(name):
    """The beginning of an order that says that it runs and goes on when there is a file `go`."""
    return f"echo {name} >>started; until test -e go; do sleep 0.05; done; "


def waiting_orders(tmp_path, count):
    return write(tmp_path / "list", *(f"{waiting(n)}echo {n}" for n in range(count)))


def let_go(tmp_path, slots):
    """Once all hosts work; one that comes when all is done finds nobody."""
    wait_for(lambda: len(started(tmp_path / "started")) == slots, "orders to run on all hosts")
    (tmp_path / "go").touch()


def test_one_list_runs_on_all_hosts_and_has_one_result_file(make_hosts, tmp_path):
    hosts = make_hosts()
    orders = write(tmp_path / "list", *(f"{waiting(n)}echo one $((1 + {n})); echo two >&2" for n in range(40)), "exit 3")
    hosts.start("-j2", "-k", "-o", "r.jsonl", "--joblog=log", "--export-junit=j.xml", "--retries=1", "--retry-delay=0",
                "--order=listed", orders)
    let_go(tmp_path, 6)
    assert [host.wait() for host in hosts.processes] == [1, 1, 1]
    assert final(tmp_path / "r.jsonl") == {line: 1 for line in orders.read_text().splitlines()[:40]}
    failed = [line for line in results(tmp_path / "r.jsonl") if line["reason"] != "ok"]
    assert [(line["cmd"], line["exit"], line["attempt"]) for line in failed] == [("exit 3", 3, 1), ("exit 3", 3, 2)]
    assert all(line["node"] and line["stdout"]["bytes"] for line in results(tmp_path / "r.jsonl") if line["reason"] == "ok")
    # In the order of the list, from the host that coordinates.
    assert hosts.output() == "".join(f"one {n + 1}\n" for n in range(40))
    lines = (tmp_path / "log").read_text().splitlines()[1:]
    assert len(lines) == 41 and {line.split("\t")[1] for line in lines} == {results(tmp_path / "r.jsonl")[0]["node"]}
    cases = ElementTree.parse(tmp_path / "j.xml").getroot().findall("testcase")
    named = [case.find("properties/property[@name='host']").get("value") for case in cases]
    assert len(cases) == 41 and set(named) == {line["node"] for line in results(tmp_path / "r.jsonl")}
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["exit 3"]


def test_what_orders_write_comes_back_whole(make_hosts, tmp_path):
    hosts = make_hosts()
    orders = write(tmp_path / "list", *(f"{waiting(n)}head -c {n}000000 /dev/zero | tr '\\0' {n}" for n in range(1, 5)))
    hosts.start("-j1", "--results=kept", "-o", "r.jsonl", orders)
    let_go(tmp_path, 3)
    assert [host.wait() for host in hosts.processes] == [0, 0, 0]
    for line in results(tmp_path / "r.jsonl"):
        text = (tmp_path / line["stdout"]["path"]).read_text()
        assert text == text[0] * int(text[0]) * 1_000_000 and line["stdout"]["bytes"] == len(text)
    assert hosts.output() == ""


def test_the_orders_of_a_host_that_dies_run_elsewhere(make_hosts, tmp_path):
    hosts = make_hosts()
    orders = waiting_orders(tmp_path, 12)
    hosts.start("-j4", "-o", "r.jsonl", orders)
    wait_for(lambda: len(started(tmp_path / "started")) == 12, "all orders to run")
    coordinator = hosts.coordinator(tmp_path / "r.jsonl")
    victim = next(host for host in hosts.processes if host is not coordinator)
    victim.kill()
    coordinator.says(r"lost \S+ with 4 orders")
    (tmp_path / "go").touch()
    assert [host.wait() for host in hosts.processes if host is not victim] == [0, 0]
    assert set(final(tmp_path / "r.jsonl").values()) == {1} and len(final(tmp_path / "r.jsonl")) == 12
    # Those that the coordinator knew to run have an attempt that was lost.
    lost = {line["cmd"]: line["attempt"] for line in results(tmp_path / "r.jsonl") if line["reason"] == "lost"}
    again = {line["cmd"] for line in results(tmp_path / "r.jsonl") if line["reason"] == "ok" and line["attempt"] == 2}
    assert set(lost.values()) <= {1} and set(lost) == again and len(lost) <= 4


def test_a_host_that_comes_when_the_batch_is_over_ends_as_it_did(make_hosts, tmp_path):
    hosts = make_hosts()
    first, = hosts.start("--nnodes=2", "-o", "r.jsonl", "echo {}; exit {}", ":::", 0, 1, count=1, conf="close_timeout=900")
    first.says("hosts that are still to come")
    *_, late = hosts.start("--nnodes=2", "-o", "r.jsonl", "echo {}; exit {}", ":::", 0, 1, count=1)
    assert [late.wait(), first.wait()] == [1, 1]
    late.says("the batch was over when this host came")
    first.says("on 1 host, in")
    assert len(results(tmp_path / "r.jsonl")) == 2


def test_a_host_that_finds_no_coordinator_says_so_before_it_gives_up(make_hosts, tmp_path):
    hosts = make_hosts()
    late, = hosts.start("--nnodes=1:4", "-o", "r.jsonl", "echo {}", ":::", 0, count=1, conf="is_host=0,join_timeout=4")
    late.says("found no coordinator so far: .*Connection refused; it has not begun, or the batch is over; giving up in 2 s")
    assert late.wait() == 124
    late.says("found no coordinator: .*Connection refused")
    assert not (tmp_path / "r.jsonl").exists()


def test_nobody_waits_for_hosts_that_do_not_come_after_ctrl_c(make_hosts, tmp_path):
    hosts = make_hosts()
    first, = hosts.start("--nnodes=2", "-o", "r.jsonl", "echo {}", ":::", 0, count=1, conf="close_timeout=900")
    first.says("hosts that are still to come")
    first.signal(2)
    assert first.wait() == 0


def test_another_host_takes_over_from_the_result_file(make_hosts, tmp_path):
    hosts = make_hosts(2)
    orders = waiting_orders(tmp_path, 9)
    with orders.open("a") as more:
        more.write("echo soon\n" * 1)
    hosts.start("-j3", "--order=listed", "-o", "r.jsonl", orders, conf=QUICK)
    wait_for(lambda: len(set(started(tmp_path / "started"))) == 9, "orders to run on all hosts")
    coordinator = hosts.coordinator(tmp_path / "r.jsonl")
    others = [host for host in hosts.processes if host is not coordinator]
    coordinator.kill()
    for host in others:
        host.says("lost the coordinator")
    (tmp_path / "go").touch()
    assert [host.wait() for host in others] == [0, 0]
    assert set(final(tmp_path / "r.jsonl").values()) == {1} and len(final(tmp_path / "r.jsonl")) == 10


def test_hosts_wait_for_a_frozen_coordinator_that_has_the_result_file(make_hosts, tmp_path):
    hosts = make_hosts(2)
    hosts.start("-j3", "-o", "r.jsonl", waiting_orders(tmp_path, 12), conf=QUICK)
    wait_for(lambda: len(set(started(tmp_path / "started"))) == 9, "orders to run on all hosts")
    coordinator = hosts.coordinator(tmp_path / "r.jsonl")
    others = [host for host in hosts.processes if host is not coordinator]
    coordinator.signal(signal.SIGSTOP)
    wait_for(lambda: any("does not take over" in host.text() for host in others), "a host that would take over")
    coordinator.signal(signal.SIGCONT)
    wait_for(lambda: len(started(tmp_path / "started")) >= 15, "both others to have orders again")
    (tmp_path / "go").touch()
    assert [host.wait() for host in hosts.processes] == [0, 0, 0]
    assert set(final(tmp_path / "r.jsonl").values()) == {1} and len(final(tmp_path / "r.jsonl")) == 12


@pytest.mark.parametrize("resume", [["--resume"], []], ids=["to resume", "to begin"])
def test_a_host_that_comes_waits_for_a_frozen_coordinator_that_has_the_result_file(make_hosts, tmp_path, resume):
    hosts = make_hosts(2)
    orders = waiting_orders(tmp_path, 6)
    (coordinator,) = hosts.start("-j3", "-o", "r.jsonl", orders, conf=QUICK, count=1)
    wait_for(lambda: len(started(tmp_path / "started")) == 3, "orders to run")
    coordinator.signal(signal.SIGSTOP)
    hosts.start("-j3", "-o", "r.jsonl", *resume, orders, conf=QUICK, count=1)[1].says("so this host does not take over")
    coordinator.signal(signal.SIGCONT)
    let_go(tmp_path, 6)
    assert [host.wait() for host in hosts.processes] == [0, 0]
    assert set(final(tmp_path / "r.jsonl").values()) == {1} and len(final(tmp_path / "r.jsonl")) == 6


def test_ctrl_c_at_the_coordinator_ends_all_and_resume_goes_on(make_hosts, tmp_path):
    hosts = make_hosts()
    orders = waiting_orders(tmp_path, 30)
    with orders.open("r+") as text:
        lines = text.read()
        text.seek(0)
        text.write("echo first\n" + lines)
    hosts.start("-j4", "--order=listed", "-o", "r.jsonl", orders)
    wait_for(lambda: len(started(tmp_path / "started")) >= 12, "orders to run on all hosts")
    wait_for(lambda: final(tmp_path / "r.jsonl"), "the first result")
    hosts.coordinator(tmp_path / "r.jsonl").signal(2)
    assert [host.wait() for host in hosts.processes] == [130, 130, 130]
    assert final(tmp_path / "r.jsonl") == {"echo first": 1}
    (tmp_path / "go").touch()
    done = subprocess.run([MUSTER, "batch", "-j4", "--resume", "-o", "r.jsonl", orders], cwd=tmp_path, env=clean_env(),
                          timeout=DEADLINE, capture_output=True)
    assert done.returncode == 0
    assert set(final(tmp_path / "r.jsonl").values()) == {1} and len(final(tmp_path / "r.jsonl")) == 31


def test_a_host_without_the_token_gets_no_orders(make_hosts, tmp_path):
    hosts = make_hosts()
    orders = waiting_orders(tmp_path, 2)
    hosts.start("-o", "r.jsonl", orders, count=1)
    hosts.coordinator(tmp_path / "r.jsonl")
    done = subprocess.run([MUSTER, "batch", f"--rdzv-endpoint={hosts.ports[0].endpoint}", orders], cwd=tmp_path,
                          env=clean_env(MUSTER_TOKEN="wrong"), timeout=DEADLINE, capture_output=True, text=True)
    assert done.returncode == 125 and "token" in done.stderr
    (tmp_path / "go").touch()
    assert hosts.processes[0].wait() == 0


@pytest.mark.parametrize("words, what", [
    (["--nnodes=4", "list"], "--rdzv-endpoint"),
    (["--rdzv-endpoint=a", "--pipe", "cat"], "--pipe"),
    (["--rdzv-endpoint=a", "--line-buffer", "list"], "--line-buffer"),
    (["--hosts=a", "--ungroup", "list"], "--ungroup with --hosts"),
    (["--rdzv-endpoint=a", "--prepare=echo {}", "list"], "{} in --setup"),
    (["--rdzv-endpoint=a", "--rdzv-conf=auth=token", "list"], "token_file"),
])
def test_what_cannot_work_on_many_hosts_is_refused(muster, tmp_path, words, what):
    write(tmp_path / "list", "true")
    r = muster("batch", *words)
    assert r.returncode == 2 and what in r.stderr


def test_the_canary_and_the_commands_around_orders_run_on_all_hosts(make_hosts, tmp_path):
    hosts = make_hosts()
    hosts.start("-j2", "-o", "r.jsonl", "--canary=echo canary >>around", "--setup=echo setup >>around", "--prepare=echo prepare >>around",
                "--cleanup=sleep 0.2; echo cleanup >>around", waiting_orders(tmp_path, 12))
    let_go(tmp_path, 6)
    assert [host.wait() for host in hosts.processes] == [0, 0, 0]
    around = (tmp_path / "around").read_text().split()
    assert around[0] == "canary" and collections.Counter(around) == {"canary": 1, "setup": 12, "prepare": 12, "cleanup": 12}
    assert len(results(tmp_path / "r.jsonl")) == 12


def test_ungrouped_output_is_that_of_the_host_where_the_order_runs(make_hosts, tmp_path):
    hosts = make_hosts()
    hosts.start("-j2", "--ungroup", "-o", "r.jsonl", waiting_orders(tmp_path, 6))
    let_go(tmp_path, 6)
    assert [host.wait() for host in hosts.processes] == [0, 0, 0]
    assert [len((tmp_path / f"host{n}.out").read_text().split()) for n in range(3)] == [2, 2, 2]
    assert all(line["missing"]["output"] for line in results(tmp_path / "r.jsonl"))


def test_a_host_that_is_cut_off_loses_its_orders_and_ends_them(make_lab, tmp_path):
    lab = make_lab(3)
    node1, node2, node3 = lab.hosts
    orders = waiting_orders(tmp_path, 6)
    agents = [host.start(MUSTER, "batch", "-j2", "--rdzv-endpoint=node1", "--rdzv-conf=keep_alive_interval=1,auth=none", "-o",
                         tmp_path / "r.jsonl", orders, cwd=tmp_path) for host in lab.hosts]
    wait_for(lambda: len(started(tmp_path / "started")) == 6, "all orders to run")
    node3.cut()
    agents[0].says("lost node3 with 2 orders")
    agents[2].says("does not answer")  # and what ran there is killed
    (tmp_path / "go").touch()
    assert agents[0].wait() == 0 and agents[1].wait() == 0
    assert set(final(tmp_path / "r.jsonl").values()) == {1} and len(final(tmp_path / "r.jsonl")) == 6
    nodes = collections.Counter(line["node"] for line in results(tmp_path / "r.jsonl") if line["reason"] == "lost")
    assert nodes["node3"] == 2


def needy(tmp_path, *orders):
    return write(tmp_path / "list", *(json.dumps(order) for order in orders))


def test_orders_go_to_the_host_that_has_what_they_name(make_hosts, tmp_path):
    hosts = make_hosts()
    name = os.uname().nodename
    orders = needy(tmp_path, *({"cmd": f"{waiting(n)}echo $WHO {n}", "features": ["gpu", "ssd"], "hosts": name} for n in range(6)),
                   *({"cmd": f"{waiting(n)}echo any {n}", "memory": "1M"} for n in range(6)))
    hosts.start("-j1", "-o", "r.jsonl", orders, count=2)
    hosts.start("-j1", "--features=ssd,gpu", "-o", "r.jsonl", orders, count=1, env={"WHO": "rich"})
    let_go(tmp_path, 3)
    assert [host.wait() for host in hosts.processes] == [0, 0, 0]
    said = hosts.output().split("\n")
    assert {f"rich {n}" for n in range(6)} <= set(said) and {f"any {n}" for n in range(6)} <= set(said)


@pytest.mark.parametrize("need, told", [
    ({"hosts": ["nowhere", "elsewhere"]}, r"host nowhere or elsewhere"), ({"features": "gpu"}, "feature gpu"),
    ({"memory": "900T"}, "943718400 MiB of memory"), ({"cores": 4000}, "4000 cores")])
def test_an_order_that_no_host_can_serve_is_refused_and_the_others_run(make_hosts, tmp_path, need, told):
    hosts = make_hosts()
    orders = needy(tmp_path, dict(need, id="much", cmd="echo never"), {"cmd": "echo done"})
    hosts.start("--nnodes=2", "-o", "r.jsonl", orders, count=2)
    assert [host.wait() for host in hosts.processes] == [1, 1]
    text = "".join(host.text() for host in hosts.processes)
    assert re.search(f"no host has what order much needs: .*{told}", text), text
    assert hosts.output() == "done\n"
    assert [line["reason"] for line in results(tmp_path / "r.jsonl") if line["id"] == "much"] == ["spawn"]


def test_an_order_waits_for_a_host_that_may_come(make_hosts, tmp_path):
    hosts = make_hosts()
    orders = needy(tmp_path, {"id": "much", "cmd": "echo with it", "features": "gpu"})
    first, = hosts.start("-o", "r.jsonl", orders, count=1)
    first.says("waiting for a host that has what order much needs: 1 core, feature gpu")
    hosts.start("--features=gpu", "-o", "r.jsonl", orders, count=1)
    assert [host.wait() for host in hosts.processes] == [0, 0]
    assert hosts.output() == "with it\n"


def test_what_a_host_that_is_lost_had_sent_is_not_kept_open(make_hosts, tmp_path):
    hosts = make_hosts()
    # An eighth of a GiB of output that costs no disk where it is made.
    orders = needy(tmp_path, {"id": "large", "cmd": "exec python3 -c 'import os; os.ftruncate(1, 1 << 27)'", "features": "far"},
                   {"cmd": f"{waiting('here')}true"})
    here, = hosts.start("-o", "r.jsonl", "--results=out", orders, count=1, conf=QUICK)
    wait_for(lambda: started(tmp_path / "started"), "an order that keeps the batch alive")
    far = hosts.start("--features=far", "-o", "r.jsonl", "--results=out", orders, count=1, conf=QUICK)[1]

    def received():
        """Of unnamed files that have something in them: the coordinator's copies of what hosts send."""
        links = [f"/proc/{here.pid}/fd/{fd}" for fd in os.listdir(f"/proc/{here.pid}/fd")]
        with contextlib.suppress(FileNotFoundError):
            return [os.stat(link).st_size for link in links if "(deleted)" in os.readlink(link) and os.stat(link).st_size > 0]

    part, = wait_for(received, "some of the output")
    far.signal(signal.SIGSTOP)
    assert part < 1 << 27
    here.says("lost .* with 1 orders")
    wait_for(lambda: received() == [], "it to be closed")


def test_one_host_alone_refuses_what_it_cannot_serve(tmp_path):
    orders = needy(tmp_path, {"id": "much", "cmd": "echo with it", "features": "gpu"})
    done = subprocess.run([MUSTER, "batch", orders], capture_output=True, text=True, env=clean_env(), timeout=DEADLINE)
    assert done.returncode == 2 and "order much needs feature gpu; this is" in done.stderr
    done = subprocess.run([MUSTER, "batch", "--features=gpu", orders], capture_output=True, text=True, env=clean_env(), timeout=DEADLINE)
    assert (done.returncode, done.stdout) == (0, "with it\n")


def test_the_runs_of_a_pair_are_on_one_host_and_on_the_same_cores(make_hosts, tmp_path):
    hosts = make_hosts()
    args = [str(n) for n in range(6)]
    commands = {side: waiting("{}") + f"echo {side} {{}} $PPID >>where" for side in "ab"}
    hosts.start("-j1", "--ab", "--runs=4", "--warmup=1", "-o", "r.jsonl", *(f"{side.upper()}={line}" for side, line in commands.items()),
                ":::", *args)
    let_go(tmp_path, 3)
    assert [host.wait() for host in hosts.processes] == [0, 0, 0]
    lines = [line for line in results(tmp_path / "r.jsonl") if not line.get("warmup")]
    runs = collections.Counter((line["id"], line["variant"], line["cmd"]) for line in lines if line["reason"] == "ok")
    assert runs == {(n, side.upper(), line.replace("{}", n)): 4 for n in args for side, line in commands.items()}
    blocks = collections.defaultdict(list)
    for line in lines:
        blocks[line["id"], line["block"]].append(line)
    assert len(blocks) == 24 and all(sorted(line["variant"] for line in block) == ["A", "B"] for block in blocks.values())
    # Each host has one slot, and that has one warden, the parent of all that runs there.
    places, ran = collections.defaultdict(set), [line.split() for line in (tmp_path / "where").read_text().splitlines()]
    for _, number, warden in ran:
        places[number].add(warden)
    assert collections.Counter((side, number) for side, number, _ in ran) == {(side, n): 5 for side in "ab" for n in args}
    assert sorted(places) == args and {len(wardens) for wardens in places.values()} == {1}


def test_after_a_takeover_all_runs_of_an_order_are_on_one_host(make_hosts, tmp_path):
    hosts = make_hosts(2)
    # The second run of each order waits.
    orders = write(tmp_path / "list", *(
        f"echo {n} >>started; test $(grep -c ^{n}$ started) != 2 || until test -e go; do sleep 0.05; done" for n in range(3)))
    hosts.start("-j1", "--runs=3", "--quiet-check=off", "-o", "r.jsonl", "--export-json=times.json", orders,
                conf="keep_alive_interval=2,failover_after=2")  # nobody but the one that is killed may be lost
    wait_for(lambda: len(started(tmp_path / "started")) == 6, "the second runs")
    wait_for(lambda: len(results(tmp_path / "r.jsonl")) == 3, "the results of the first")
    coordinator = hosts.coordinator(tmp_path / "r.jsonl")
    others = [host for host in hosts.processes if host is not coordinator]
    coordinator.kill()
    (tmp_path / "go").touch()
    assert [host.wait() for host in others] == [0, 0]
    lines = results(tmp_path / "r.jsonl")
    for line in orders.read_text().splitlines():
        # One that was cut off, and one whole series.
        assert [(one["reason"], one.get("run", 0)) for one in lines if one["cmd"] == line] == [
            ("ok", 0), ("lost", 0), ("ok", 0), ("ok", 1), ("ok", 2)]
    assert [len(result["times"]) for result in json.loads((tmp_path / "times.json").read_text())["results"]] == [3, 3, 3]


def test_the_coordinator_serves_a_page_that_says_where_orders_ran(make_hosts, tmp_path):
    """All have the same line with --http; the one that coordinates says its address."""
    hosts = make_hosts()
    hosts.start("--http", "-j1", "-o", tmp_path / "r.jsonl", waiting_orders(tmp_path, 4), count=2)
    logs = [tmp_path / f"host{n}.log" for n in range(2)]
    page = Page.at(wait_for(lambda: re.search(r"its page is (\S+)\n", "".join(log.read_text() for log in logs)), "the address of the page")[1])

    def running():
        code, _, text = page.request("/api/orders", "POST", page.token, b'{"state":"running"}')
        assert code == 200
        return json.loads(text)["rows"]

    wait_for(lambda: len(running()) == 2, "an order on each host")
    assert all(row[5] for row in running())
    states, code = {}, None
    with page.stream() as events:
        for _, told in events:
            states.update({row[0]: (row[1], row[5]) for row in told.get("rows", [])})
            code = told.get("sum", {}).get("exit_code", code)
            if told.get("all"):
                assert told["n"] == 4 and told["sum"]["hosts"] == 2
                (tmp_path / "go").touch()
    assert code == 0 and {state for state, _ in states.values()} == {3} and all(host for _, host in states.values())
    assert len(states) == 4 and [process.wait() for process in hosts.processes] == [0, 0]
    assert sum(log.read_text().count("its page is") for log in logs) == 1
