"""Jobs on several hosts that lose cables, clocks, agents and whole hosts: network namespaces (netns.py),
real processes, and real torch gloo where that is the point. In every test crew.py checks that no two
rounds have live workers at the same time, and Job.ends() that nothing is left on any host."""

import glob
import signal
import sys

import pytest

from tree import MUSTER
from netns_job import PORT, Job

# A server that knows us waits for what we have to say.
HOW_WE_ARE_MET = """
import socket, sys
with socket.create_connection(sys.argv[1:], timeout=10) as server:
    try:
        print("sent away" if server.recv(1) == b"" else "spoken to")
    except ConnectionResetError:
        print("sent away")
    except TimeoutError:
        print("let in")
"""
WARM = "--preload=torch"  # where the test is not about the start of workers
TERM = 128 + signal.SIGTERM


def conf(**settings):
    """--rdzv-conf for tests in which no other node will come."""
    settings = {"last_call_timeout": 1, "scale_up_delay": 1, **settings}
    return "--rdzv-conf=" + ",".join(f"{key}={value}" for key, value in settings.items())


@pytest.fixture
def hosts(make_lab):
    return make_lab(4).hosts


# ---- torch ----

def test_gloo_works_on_two_hosts_through_twenty_restarts_in_a_row(hosts):
    one, two, *_ = hosts
    job = Job(one.lab, "2", [one], "--max-restarts=20", WARM, flags=["--torch"]).start(one, two)
    for attempt in range(20):
        job.round(2, [one, two], restarts=attempt)
        job.calculates(1)
        job.now[attempt % 2].order("exit 1")
    job.round(2, [one, two], restarts=20)
    job.calculates()
    job.finish()
    job.ends(0)


def test_gloo_grows_by_a_host_and_survives_the_loss_of_rank_0(hosts):
    one, two, three, four = hosts
    coordinator = four.start(MUSTER, "coordinator", f"--listen=node4:{PORT}", "--rdzv-id=job")
    job = Job(one.lab, "2:3", [four], conf(), WARM, flags=["--torch"]).start(one, two)
    job.round(2, [one, two])
    job.calculates()
    job.start(three)
    job.round(3, [one, two, three])
    job.calculates()
    lost = next(host for host in hosts if host.name == job.now[0].host)
    lost.kill()
    job.agents.pop(lost).wait()
    job.round(2, {one, two, three} - {lost}, restarts=0)  # members are not charged to the budget
    job.calculates()
    job.finish()
    job.ends(0)
    assert coordinator.wait() == 0


def test_gloo_survives_two_coordinators_one_killed_one_cut_off(hosts):
    one, two, three, four = hosts
    job = Job(one.lab, "2:4", [one, two, three], conf(failover_after=2), WARM, flags=["--torch"]).start(*hosts)
    job.round(4)
    job.calculates()
    job.kill(one)
    job.agents.pop(one)
    job.round(3, [two, three, four])
    job.calculates(100)  # some periods: a second loss before all know of this round would be one too many for the quorum
    two.cut()
    job.round(2, [three, four], restarts=0)
    job.calculates()
    two.plug()  # it has no say any more, and comes back as one among others
    job.round(3, [two, three, four], restarts=0)
    job.calculates()
    job.finish()
    job.ends(0)


def test_clocks_of_two_hosts_are_not_compared(make_lab):
    """node2's monotonic clock is 20 s ahead, its wall clock 20 s behind; each of the two fails in turn."""
    one, two = make_lab(2, clocks={2: 20}).hosts
    (faketime,) = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    job = Job(one.lab, "2", [one], "--max-restarts=2", WARM, flags=["--torch"]).start(one)
    job.start(two, env=dict(LD_PRELOAD=faketime, FAKETIME="-20s", FAKETIME_DONT_FAKE_MONOTONIC="1"))
    for restarts, host in enumerate([one, two]):
        job.round(2, [one, two], restarts=restarts)
        job.calculates()
        job.now.on(host).order("exit 5")
        job.says(one, f"on {host.name}): exit code 5")  # the coordinator names the first cause
    job.round(2, [one, two], restarts=2)
    job.calculates()
    job.finish()
    job.ends(0)


# ---- members that come and go ----

def test_one_agent_too_many_is_a_spare_and_takes_the_place_of_a_killed_one(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2", [one], conf()).start(one, two)
    job.round(2, [one, two])
    job.start(three)
    job.says(one, "node3")
    job.kill(two)
    job.agents.pop(two)
    job.round(2, [one, three], restarts=0)
    job.finish()
    job.ends(0)


def test_a_spare_ends_with_the_job(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2", [one]).start(one, two)
    job.round(2, [one, two])
    job.start(three)
    job.says(one, "node3")
    job.finish()
    job.ends(0)


def test_a_host_without_power_is_replaced_and_comes_back(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2:3", [one], conf()).start(one, two, three)
    job.round(3)
    three.power_off()
    job.agents.pop(three)
    job.round(2, [one, two], restarts=0)
    three.boot()
    job.start(three)
    job.round(3, [one, two, three], restarts=0)
    job.finish()
    job.ends(0)


def test_a_cut_cable_is_noticed_and_the_host_comes_back_when_it_is_plugged_in(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2:3", [one], conf()).start(one, two, three)
    cut = job.round(3).on(three)
    three.cut()
    job.round(2, [one, two], restarts=0)
    assert not cut.alive
    three.plug()
    job.round(3, [one, two, three], restarts=0)
    job.finish()
    job.ends(0)


def test_a_thawed_host_kills_its_old_workers_and_joins_again(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2:3", [one], conf()).start(one, two, three)
    frozen = job.round(3).on(three)
    job.crew.excused.add("node3")
    three.freeze()
    job.round(2, [one, two], restarts=0)
    assert frozen.alive
    three.thaw()
    job.crew.gone([frozen])
    job.crew.excused.clear()
    job.round(3, [one, two, three], restarts=0)
    job.finish()
    job.ends(0)


def test_a_thawed_coordinator_finds_another_in_its_place_and_joins_it(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2:3", [one, two], conf(failover_after=2)).start(one, two, three)
    frozen = job.round(3).on(one)
    job.crew.excused.add("node1")
    one.freeze()
    job.round(2, [two, three], restarts=0)
    assert frozen.alive
    one.thaw()
    job.crew.gone([frozen])
    job.crew.excused.clear()
    job.round(3, [one, two, three], restarts=0)
    job.finish()
    job.ends(0)


@pytest.mark.parametrize("deaf", ["the coordinator", "the member"])
def test_packets_lost_one_way_end_the_membership_until_they_arrive_again(hosts, deaf):
    one, two, three, _ = hosts
    job = Job(one.lab, "2:3", [one], conf()).start(one, two, three)
    lost = job.round(3).on(three)
    speaker, hearer = (three, one) if deaf == "the coordinator" else (one, three)
    speaker.mute(hearer)
    job.round(2, [one, two], restarts=0)
    assert not lost.alive
    speaker.unmute(hearer)
    job.round(3, [one, two, three], restarts=0)
    job.finish()
    job.ends(0)


def test_a_slow_cable_costs_no_membership(hosts):
    one, two, *_ = hosts
    two.delay(0.2)
    job = Job(one.lab, "2", [one], "--max-restarts=3").start(one, two)
    for restarts in range(3):
        job.round(2, [one, two], restarts=restarts)
        job.now[restarts % 2].order("exit 1")
    job.round(2, [one, two], restarts=3)
    job.finish()
    job.ends(0)


def test_the_other_one_of_two_hosts_takes_over_from_a_killed_coordinator(hosts):
    one, two, *_ = hosts
    job = Job(one.lab, "1:2", [one, two]).start(one, two)
    job.round(2)
    job.kill(one)
    job.agents.pop(one)
    job.round(1, [two], restarts=0)
    job.finish()
    job.ends(0)


def test_static_nodes_keep_their_ranks_and_the_given_port_through_restarts(hosts):
    """torchrun's static form."""
    one, two, *_ = hosts
    job = Job(one.lab, "2", [], "--max-restarts=2")
    for rank, host in [(1, one), (0, two)]:
        job.options = ["--nnodes=2", f"--node-rank={rank}", "--master-addr=node2", "--master-port=29500", "--max-restarts=2"]
        job.start(host)
    for restarts in range(3):
        assert job.round(2, restarts=restarts).hosts == ["node2", "node1"]
        assert job.now.key == ("node2", "29500", restarts)
        if restarts < 2:
            job.now[restarts].order("exit 1")
    job.finish()
    job.ends(0)


# ---- the end ----

def test_a_final_failure_ends_nodes_that_have_finished_too(hosts):
    one, two, *_ = hosts
    job = Job(one.lab, "2", [one]).start(one, two)
    job.round(2)
    job.now.on(one).order("finish")
    job.crew.gone([job.now.on(one)])
    job.now.on(two).order("exit 7")
    job.ends(7)


def test_a_restart_elsewhere_includes_nodes_that_have_finished(hosts):
    one, two, *_ = hosts
    job = Job(one.lab, "2", [one], "--max-restarts=1").start(one, two)
    job.round(2)
    job.now.on(one).order("finish")
    job.crew.gone([job.now.on(one)])
    job.now.on(two).order("exit 7")
    job.round(2, [one, two], restarts=1)
    job.finish()
    job.ends(0)


def test_losing_a_host_that_has_finished_does_not_count_as_a_loss(hosts):
    one, two, *_ = hosts
    job = Job(one.lab, "2", [one], conf(close_timeout=2)).start(one, two)  # how long the coordinator waits for it to come back
    job.round(2)
    job.now.on(two).order("finish")
    job.happens(two, "group.done")
    job.kill(two)
    job.agents.pop(two)
    job.now.on(one).order("finish")
    job.ends(0)


# ---- signals ----

def test_sigterm_before_the_first_round_ends_one_agent_and_then_all(hosts):
    one, two, *_ = hosts
    job = Job(one.lab, "3", [one]).start(one, two)
    job.says(one, "node2")
    job.signal(signal.SIGTERM, two)
    job.ends(TERM, hosts=[two])
    assert job.agents[one].running()
    job.start(two)
    job.says(one, "node2", times=3)
    job.signal(signal.SIGTERM, one, two)
    job.ends(TERM)
    assert job.crew.workers == []


def test_sigterm_while_running_ends_one_agent_and_then_all(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2:3", [one], conf()).start(one, two, three)
    job.round(3)
    job.signal(signal.SIGTERM, three)
    job.ends(TERM, hosts=[three])
    job.agents.pop(three)
    job.round(2, [one, two], restarts=0)
    job.signal(signal.SIGTERM, one, two)
    job.ends(TERM)


def test_sigterm_to_the_coordinator_hands_its_task_over(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2:3", [one, two], conf()).start(one, two, three)
    job.round(3)
    job.signal(signal.SIGTERM, one)
    job.ends(TERM, hosts=[one])
    job.agents.pop(one)
    job.round(2, [two, three], restarts=0)
    job.finish()
    job.ends(0)


def test_sigterm_during_a_restart_ends_all(hosts):
    one, two, *_ = hosts
    job = Job(one.lab, "2", [one], "--max-restarts=3", "--shutdown-timeout=5", flags=["--tough"]).start(one, two)
    job.round(2)
    job.now.on(two).order("exit 1")
    job.says(one, "exit code 1")  # its own worker takes its time now
    assert job.now.on(one).alive
    job.signal(signal.SIGTERM, one, two)
    job.ends(TERM)


def test_sigterm_to_an_agent_that_waits_for_the_others_costs_them_nothing(hosts):
    one, two, *_ = hosts
    job = Job(one.lab, "2", [one]).start(one, two)
    job.round(2)
    job.now.on(two).order("finish")
    job.happens(two, "group.done")
    job.signal(signal.SIGTERM, two)
    job.ends(TERM, hosts=[two])
    job.agents.pop(two)
    job.now.on(one).order("finish")
    job.ends(0)


# ---- the workers' store ----

@pytest.mark.parametrize("family", ["v4", "v6"])
def test_only_members_reach_the_workers_store_whichever_of_their_addresses_they_use(hosts, family):
    one, two, three, four = hosts
    second = {"v4": "10.77.0.102", "v6": "fd77::102"}[family]
    # More addresses than a host tells of itself, and the one under which it is seen is the last of them.
    two.call("sh", "-c", "for i in $(seq 1 20); do ip addr add 10.88.0.$i dev eth0 || exit; done")
    for command in (f"addr add {second} dev eth0" + " nodad" * (family == "v6"),
                    f"route add {getattr(one, 'ip' + family)} dev eth0 src {second}"):
        two.call("ip", *command.split())
    job = Job(one.lab, "3", [f"node1-{family}"]).start(one, two, three)
    host, port, _ = job.round(3).key
    ping = [MUSTER, "kv", "--timeout=20", f"--store={host}:{port}", "ping"]
    for member in (one, two, three):
        member.call(*ping)
    assert four.call(sys.executable, "-S", "-c", HOW_WE_ARE_MET, host, port) == "sent away\n"
    job.finish()
    job.ends(0)
