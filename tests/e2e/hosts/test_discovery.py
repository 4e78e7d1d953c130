"""Jobs whose coordinator is named by a program (exec:PROGRAM, etcd), all on this host: each agent is a
node of its own."""

import os
import re
import signal

import pytest

from proc import agent_of, gone
from etcd_cluster import loopback_address, make_certificates
from oracle import Oracle

HERE = "--local-addr=127.0.0.1"
AGES = 600  # seconds; a lease that outlives every test


@pytest.fixture
def oracle(tmp_path):
    found = Oracle(tmp_path)
    yield found
    found.close()


def by_oracle(oracle, *options):
    return [f"--rdzv-backend=exec:{oracle.program}", "--rdzv-id=job1", HERE, *options]


def by_etcd(cluster, *options, conf=()):
    conf = ",".join([f"lease_ttl={AGES}", "last_call_timeout=600", *conf])
    return ["--rdzv-backend=etcd", f"--rdzv-endpoint={cluster.endpoints}", f"--rdzv-conf={conf}", "--rdzv-id=job1", HERE,
            *options]


def start_three(agents, crew, *options, nnodes="3"):
    return [agents.start(f"--nnodes={nnodes}", *options, *crew.command(), LOGLEVEL="INFO") for _ in range(3)]


def test_the_program_gets_its_arguments_names_the_coordinator_and_is_sent_away(agents, crew, oracle):
    three = start_three(agents, crew, *by_oracle(oracle))
    candidates = oracle.present(3)
    assert {c.run_id for c in candidates} == {"job1"}
    assert len({c.own for c in candidates}) == len({c.id for c in candidates}) == 3
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", c.own) for c in candidates)
    oracle.name(oracle.of(three[1]), 7)
    round_ = crew.round(3, three)
    assert ["this node coordinates" in agent.text() for agent in three] == [False, True, False]
    round_.finish()
    assert agents.wait() == [0, 0, 0]
    oracle.wait(lambda: [c.last for c in candidates] == ["left"] * 3, "all programs to be sent away")
    assert not gone([c.pid for c in candidates])


def test_a_higher_epoch_deposes_the_coordinator(agents, crew, oracle):
    three = start_three(agents, crew, *by_oracle(oracle))
    oracle.present(3)
    oracle.name(oracle.of(three[0]), 1)
    crew.round(3, three)
    oracle.name(oracle.of(three[2]), 2)
    again = crew.round(3, three)
    assert again.restarts == 0
    assert "this node coordinates" in three[2].text()
    # And the same one once more.
    oracle.name(oracle.of(three[2]), 3)
    last = crew.round(3, three)
    assert last.restarts == 0
    last.finish()
    assert agents.wait() == [0, 0, 0]


def test_a_lower_epoch_and_invalid_lines_are_reported_and_ignored(agents, crew, oracle):
    three = start_three(agents, crew, *by_oracle(oracle))
    oracle.present(3)
    oracle.name(oracle.of(three[0]), 5)
    round_ = crew.round(3, three)
    oracle.name(oracle.of(three[1]), 4)
    three[0].says("is ignored: ")
    oracle.of(three[0]).say("\x1b[2J what?")
    three[0].says("a line of its output is left out")
    assert all(worker.alive for worker in round_)
    round_.finish()
    assert agents.wait() == [0, 0, 0]


def test_a_program_that_dies_is_started_again_and_the_round_goes_on(agents, crew, oracle):
    three = start_three(agents, crew, *by_oracle(oracle))
    first = oracle.present(3)
    oracle.name(oracle.of(three[0]), 1)
    round_ = crew.round(3, three)
    for candidate in first:
        os.kill(candidate.pid, signal.SIGKILL)
    again = oracle.present(6)[3:]
    assert {(c.own, c.id) for c in again} == {(c.own, c.id) for c in first}
    assert all(worker.alive for worker in round_)
    oracle.name(oracle.of(three[1]), 2)
    crew.round(3, three).finish()
    assert agents.wait() == [0, 0, 0]


def test_an_agent_that_is_killed_takes_its_program_along(agents, crew, oracle):
    agent = agents.start("--nnodes=2", *by_oracle(oracle), *crew.command())
    (candidate,) = oracle.present(1)
    agent.kill()
    oracle.wait(lambda: candidate.last is not None, "the end of the program")
    assert not gone([candidate.pid])


def test_a_stopped_agent_leaves_and_the_others_go_on(agents, crew, oracle):
    three = start_three(agents, crew, *by_oracle(oracle), nnodes="2:3")
    oracle.present(3)
    oracle.name(oracle.of(three[0]), 1)
    crew.round(3, three)
    three[1].signal(signal.SIGTERM)
    assert three[1].wait() == 143
    crew.round(2, [three[0], three[2]]).finish()
    assert [three[0].wait(), three[2].wait()] == [0, 0]


def test_an_agent_without_a_coordinator_says_so_and_gives_up(agents, crew, oracle):
    agent = agents.start("--nnodes=2", *by_oracle(oracle), "--rdzv-conf=join_timeout=1", *crew.command())
    assert agent.wait() == 124
    assert "has named no coordinator yet" in agent.text()


@pytest.mark.parametrize("program, text", [("/nonexistent/program", "No such file"), ("/etc/passwd", "Permission denied")])
def test_a_program_that_cannot_be_started_ends_the_agent(agents, crew, program, text):
    agent = agents.start("--nnodes=2", f"--rdzv-backend=exec:{program}", HERE, *crew.command())
    assert agent.wait() != 0
    assert program in agent.text() and text in agent.text()


@pytest.mark.parametrize("options, text", [
    (["--rdzv-backend=exec:"], "not one of c10d"),
    (["--rdzv-backend=zookeeper"], "not one of c10d"),
    (["--rdzv-backend=etcd", "--rdzv-conf=protocol=ftp"], "neither http nor https"),
    (["--rdzv-backend=etcd", "--rdzv-conf=user=me"], "need each other"),
    (["--rdzv-backend=etcd", "--rdzv-conf=lease_ttl=0"], "lease_ttl=0"),
    (["--rdzv-backend=etcd", "--rdzv-conf=lease_ttl=3601"], "lease_ttl=3601"),
])
def test_wrong_options_are_refused(muster, options, text):
    result = muster("run", "--nnodes=2", *options, "true")
    assert result.returncode == 2 and text in result.stderr


# ---- etcd ----


def coordinating(agents):
    (found,) = [agent for agent in agents if "this node coordinates" in agent.text()]
    return found


def test_when_the_coordinator_is_killed_the_next_is_elected_at_once(agents, crew, make_cluster):
    three = start_three(agents, crew, *by_etcd(make_cluster()), nnodes="2:3")
    round_ = crew.round(3, three)
    lost = coordinating(three)
    lost.kill()
    left = [agent for agent in three if agent is not lost]
    again = crew.round(2, left)  # long before the lease would have ended
    assert {agent_of(worker.pid) for worker in again} == {agent.pid for agent in left}
    crew.gone(round_)
    again.finish()
    assert [agent.wait() for agent in left] == [0, 0]


def test_a_running_job_does_not_need_etcd(agents, crew, make_cluster):
    cluster = make_cluster()
    three = start_three(agents, crew, *by_etcd(cluster, "--max-restarts=1"))
    round_ = crew.round(3, three)
    cluster.close()
    assert all(worker.alive for worker in round_)
    round_[1].order("exit 3")
    again = crew.round(3, three)
    assert again.restarts == 1
    again.finish()
    assert agents.wait() == [0, 0, 0]


def test_one_agent_of_one_to_two_begins_after_the_last_call(agents, crew, make_cluster):
    agent = agents.start("--nnodes=1:2", "--rdzv-backend=etcd", f"--rdzv-endpoint={make_cluster().endpoints}", HERE,
                         "--rdzv-conf='join_timeout=600,last_call_timeout=1'", *crew.command())
    crew.round(1, [agent]).finish()
    assert agent.wait() == 0


def test_a_job_that_a_minority_may_continue_stops_without_etcd_and_goes_on_with_it(agents, crew, make_cluster):
    cluster = make_cluster()
    options = ["--nnodes=1:2", "--rdzv-backend=etcd", f"--rdzv-endpoint={cluster.endpoints}", HERE,
               "--rdzv-conf=keep_alive_interval=500ms,last_call_timeout=600"]
    two = [agents.start(*options, *crew.command(), LOGLEVEL="INFO") for _ in range(2)]
    round_ = crew.round(2, two)
    cluster.members[0].kill()
    crew.gone(round_)
    cluster.start()
    again = crew.round(2, two)
    assert again.restarts == 0
    again.finish()
    assert agents.wait() == [0, 0]


def test_over_tls_with_a_user(agents, crew, make_cluster, tmp_path):
    address = loopback_address()
    tls = make_certificates(tmp_path / "tls", address)
    cluster = make_cluster(tls=tls, address=address)
    for path, body in (("auth/user/add", {"name": "root", "password": "secret"}), ("auth/role/add", {"name": "root"}),
                       ("auth/user/grant", {"user": "root", "role": "root"}), ("auth/enable", {})):
        cluster.members[0].ask(path, **body)
    (tmp_path / "password").write_text("secret\n")
    options = by_etcd(cluster, conf=["protocol=https", f"cacert={tls}/ca.pem", "user=root",
                                     f"password_file={tmp_path}/password"])
    options[0] = "--rdzv-backend=etcd-v2"  # as torchrun calls its second one
    two = [agents.start("--nnodes=2", *options, *crew.command()) for _ in range(2)]
    crew.round(2, two).finish()
    assert agents.wait() == [0, 0]


def test_without_etcd_there_is_no_job(agents, crew):
    agent = agents.start("--nnodes=2", "--rdzv-backend=etcd", "--rdzv-endpoint=127.0.0.1:1", HERE,
                         "--rdzv-conf=join_timeout=3", *crew.command())
    assert agent.wait() == 124
    assert "no etcd endpoint answers" in agent.text()
    assert "etcd has named no coordinator yet" in agent.text()
