"""A job of several nodes, all on this host: each agent is a node of its own."""

import os
import re
import signal
import socket
import sys
import textwrap

import pytest

from ports import Port
from proc import agent_of, gone
from waits import DEADLINE, wait_for

STOPPED = 128 + signal.SIGTERM


def coordinator(agents, *args, **environ):
    """An agent that owns the endpoint before others try."""
    agent = agents.start(*args, **{"LOGLEVEL": "INFO", **environ})
    agent.says("this node coordinates")
    return agent


def nodes_of(round_):
    """How many workers each node has, by its rank."""
    counts = {}
    for worker in round_:
        counts.setdefault(int(worker.environ["GROUP_RANK"]), []).append(worker.rank)
    return [counts[rank] for rank in sorted(counts)]


def test_nodes_with_different_numbers_of_workers_get_ranks_without_gaps(agents, crew, port):
    for nproc in (2, 1, 3):
        agents.start("--nnodes=3", f"--nproc-per-node={nproc}", f"--rdzv-endpoint={port.endpoint}", "--rdzv-id=job7",
                     *crew.command())
    round_ = crew.round(6, agents.all)
    assert sorted(map(len, nodes_of(round_))) == [1, 2, 3]
    assert sum(nodes_of(round_), []) == list(range(6))
    assert {w.environ["TORCHELASTIC_RUN_ID"] for w in round_} == {"job7"}
    assert {w.environ["GROUP_WORLD_SIZE"] for w in round_} == {"3"}
    assert {w.environ["MASTER_ADDR"] for w in round_} == {"127.0.0.1"}
    assert round_[0].environ["MASTER_PORT"] != str(port.number)
    round_.finish()
    assert agents.wait() == [0, 0, 0]
    assert [agent.text() for agent in agents.all] == ["", "", ""]


def test_the_static_form_gives_ranks_as_asked_and_one_port(agents, crew, port):
    for rank, nproc in ((1, 1), (0, 2)):
        agents.start("--nnodes=2", f"--node-rank={rank}", "--master-addr=localhost", f"--master-port={port.number}",
                     f"--nproc-per-node={nproc}", *crew.command())
    round_ = crew.round(3, agents.all)
    assert nodes_of(round_) == [[0, 1], [2]]
    assert {w.key for w in round_} == {("localhost", str(port.number), 0)}
    round_.finish()
    assert agents.wait() == [0, 0]


def test_a_dry_run_of_one_node_shows_its_ranks(muster):
    done = muster("run", "--dry-run", "--nnodes=3", "--node-rank=2", "--nproc-per-node=2", "--master-addr=node1", "true")
    assert done.returncode == 0
    assert re.findall(r"^rank (\d+), local rank (\d+)$", done.stdout, re.M) == [("4", "0"), ("5", "1")]
    for line in ("MASTER_ADDR=node1", "MASTER_PORT=29500", "GROUP_RANK=2", "GROUP_WORLD_SIZE=3", "WORLD_SIZE=6"):
        assert f"  {line}\n" in done.stdout


@pytest.mark.parametrize("killed", [0, 1])
def test_a_node_of_the_static_form_may_come_back(agents, crew, port, killed):
    """Also the one that coordinates, which then learns from the others how far the job was."""
    def start(rank):
        return agents.start("--nnodes=2", f"--node-rank={rank}", f"--master-port={port.number}", "--max-restarts=3",
                            *crew.command())
    nodes = [start(0), start(1)]
    crew.round(2, nodes)[1].order("exit 1")
    crew.round(2, nodes)
    nodes[killed].kill()
    nodes[killed].popen.wait()
    crew.gone(crew.alive())
    crew.seen.clear()  # the port is the same in all rounds
    nodes[killed] = start(killed)
    round_ = crew.round(2, nodes)
    assert {w.restarts for w in round_} == {1}
    round_.finish()
    assert [node.wait() for node in nodes] == [0, 0]


def test_stopping_the_coordinator_hands_the_job_over_to_the_next_endpoint(agents, crew, port):
    second_port = Port()
    common = ["--nnodes=2:3", f"--rdzv-endpoint={port.endpoint},{second_port.endpoint}",
              "--rdzv-conf=last_call_timeout=600", *crew.command()]
    host = coordinator(agents, *common)
    others = [agents.start(*common), agents.start(*common)]
    crew.round(3, agents.all)
    host.signal(signal.SIGTERM)
    assert host.wait() == STOPPED
    crew.round(2, others).finish()
    assert [agent.wait() for agent in others] == [0, 0]
    second_port.socket.close()


def test_a_failure_on_one_node_restarts_all_and_counts_once(agents, crew, port):
    for _ in range(3):
        agents.start("--nnodes=3", "--max-restarts=2", f"--rdzv-endpoint={port.endpoint}", *crew.command())
    first = crew.round(3, agents.all)
    first[1].order("exit 7")
    second = crew.round(3, agents.all)
    assert {w.restarts for w in second} == {1}
    assert second.key != first.key
    second.finish()
    assert agents.wait() == [0, 0, 0]
    said = [re.findall(r"rank 1 .*ended with exit code 7 .*: restart 1 of 2", agent.text()) for agent in agents.all]
    assert [len(lines) for lines in said] == [1, 1, 1]


def test_a_final_failure_ends_all_nodes_with_its_code_and_its_last_words(agents, port):
    script = "if [ $RANK = 1 ]; then echo the sky fell >&2; exit 7; fi; exec sleep 600"
    for _ in range(2):
        agents.start("--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "sh", "-c", script)
    assert agents.wait() == [7, 7]
    for agent in agents.all:
        assert re.search(r"job failed: rank 1 of 2 .*ended with exit code 7", agent.text())
        assert re.search(r"first cause +rank 1 \(local rank 0\) on \S+, pid \d+", agent.text())
    reports = [agent.text().partition("job failed")[2] for agent in agents.all]
    assert all("the sky fell" in report.partition("command")[2].partition("\n")[2] for report in reports)
    assert sorted("the end of its stderr" in report for report in reports) == [False, True]
    assert sorted(bool(re.search(r"output +on \S+, in /.*/report.json", report)) for report in reports) == [False, True]


def test_a_range_begins_with_the_least_and_takes_newcomers_in_without_a_restart(agents, crew, port):
    common = ["--nnodes=1:3", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=last_call_timeout=0.1,scale_up_delay=0.1",
              *crew.command()]
    agents.start(*common)
    alone = crew.round(1, agents.all)
    agents.start(*common)
    pair = crew.round(2, agents.all)
    assert pair.restarts == 0
    assert pair[0].environ["GROUP_RANK"] == "0"
    agents.start(*common)
    three = crew.round(3, agents.all)
    assert three.restarts == 0
    assert not [w for w in (*alone, *pair) if w.alive]
    three.finish()
    assert agents.wait() == [0, 0, 0]


def test_a_spare_takes_the_place_of_a_killed_node(agents, crew, port):
    common = ["--nnodes=2", f"--rdzv-endpoint={port.endpoint}", *crew.command()]
    host = coordinator(agents, *common)
    agents.start(*common)
    first = crew.round(2, agents.all)
    spare = agents.start(*common, LOGLEVEL="INFO")
    spare.says("linked to the coordinator")
    agents.all[1].kill()
    second = crew.round(2, [host, spare])
    assert second.restarts == 0
    assert not [w for w in first if w.alive]
    second.finish()
    assert [host.wait(), spare.wait()] == [0, 0]


def test_a_spare_ends_as_the_job_does(agents, crew, port):
    common = ["--nnodes=1", f"--rdzv-endpoint={port.endpoint}"]
    host = coordinator(agents, *common, *crew.command())
    round_ = crew.round(1, agents.all)
    spare = agents.start(*common, *crew.command())
    host.says(r"has joined[\s\S]*has joined")
    round_[0].order("exit 3")
    assert agents.wait() == [3, 3]
    assert "rank 0 on " in spare.text()


def test_losing_the_coordinator_is_survived_with_two_endpoints(agents, crew, port):
    second_port = Port()
    common = ["--nnodes=2:3", f"--rdzv-endpoint={port.endpoint},{second_port.endpoint}",
              "--rdzv-conf=last_call_timeout=600", *crew.command()]
    first_host = coordinator(agents, *common)
    others = [agents.start(*common), agents.start(*common)]
    first = crew.round(3, agents.all)
    first_host.kill()
    second = crew.round(2, others)
    assert second.restarts == 0
    assert not [w for w in first if w.alive]
    second.finish()
    assert [agent.wait() for agent in others] == [0, 0]
    second_port.socket.close()


def test_losing_the_only_endpoint_ends_the_workers_and_then_the_job(agents, crew, port):
    common = ["--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=join_timeout=10,is_host={}", *crew.command()]
    host = agents.start(*[arg.format("1") for arg in common])
    other = agents.start(*[arg.format("0") for arg in common])
    round_ = crew.round(2, agents.all)
    host.kill()
    crew.gone(round_)
    assert other.wait() == 124
    assert re.search(rf"no round within 10.0 s \(join_timeout\): .*{port.endpoint}.* refused", other.text())


def test_an_endpoint_without_a_process_is_a_timeout_that_says_so(agents, port):
    agent = agents.start("--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=join_timeout=1,is_host=0", "true")
    assert agent.wait() == 124
    assert re.search(rf"no round within 1.0 s \(join_timeout\): .*{port.endpoint}.* refused", agent.text())


def test_too_few_nodes_are_a_timeout_that_counts_them(agents, port):
    agent = agents.start("--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=join_timeout=2", "true")
    assert agent.wait() == 124
    assert ("no round within 2.0 s (join_timeout): 1 of 2 nodes came; run the same command on the others, or 'muster doctor' where it does "
            "not get here") in agent.text()


def test_waiting_for_a_majority_is_told_with_the_remedy(agents, port):
    other = Port()
    common = [f"--rdzv-endpoint={port.endpoint},{other.endpoint}", "true"]
    agent = agents.start("--nnodes=1:2", "--rdzv-conf=join_timeout=3,last_call_timeout=0.1", *common)
    assert agent.wait() == 124
    assert ("no round within 3.0 s (join_timeout): 1 of 1 to 2 nodes came; a majority needs 1 more: start it, or give all nodes "
            "--rdzv-conf=quorum=any") in agent.text()
    assert agents.start("--nnodes=1:2", "--rdzv-conf=quorum=any,last_call_timeout=0.1", *common).wait() == 0
    other.close()


def test_an_endpoint_of_another_run_is_passed_over_while_another_may_be_right(agents, crew, port):
    mine = Port()
    stranger = coordinator(agents, "--nnodes=2", "--rdzv-id=other", f"--rdzv-endpoint={port.endpoint}", "true")
    common = ["--nnodes=2", "--rdzv-id=mine", f"--rdzv-endpoint={port.endpoint},{mine.endpoint}",
              "--rdzv-conf=failover_after=0.5", *crew.command()]
    ours = [coordinator(agents, *common), agents.start(*common)]
    crew.round(2, ours).finish()
    assert [agent.wait() for agent in ours] == [0, 0]
    stranger.signal(signal.SIGTERM)
    assert stranger.wait() == STOPPED
    mine.close()


def test_another_run_in_the_place_of_a_killed_coordinator_is_passed_over(agents, crew, port):
    others = [Port(), Port()]
    common = ["--nnodes=2:3", "--rdzv-id=mine", "--rdzv-conf=last_call_timeout=0.1,failover_after=0.5",
              "--rdzv-endpoint=" + ",".join(p.endpoint for p in (port, *others)), *crew.command()]
    first = coordinator(agents, *common)
    left = [agents.start(*common), agents.start(*common)]
    crew.round(3, agents.all)
    # They find the port in other hands, and never nobody there.
    for agent in left:
        agent.signal(signal.SIGSTOP)
    first.kill()
    first.wait()
    stranger = coordinator(agents, "--nnodes=2", "--rdzv-id=other", f"--rdzv-endpoint={port.endpoint}", "true")
    for agent in left:
        agent.signal(signal.SIGCONT)
    crew.round(2, left).finish()
    assert [agent.wait() for agent in left] == [0, 0]
    stranger.signal(signal.SIGTERM)
    assert stranger.wait() == STOPPED
    for other in others:
        other.close()


def test_endpoints_that_all_belong_to_another_run_end_the_agent(agents, port):
    other = Port()
    for endpoint in (port.endpoint, other.endpoint):
        coordinator(agents, "--nnodes=2", "--rdzv-id=other", f"--rdzv-endpoint={endpoint}", "true")
    agent = agents.start("--nnodes=2", "--rdzv-id=mine", f"--rdzv-endpoint={port.endpoint},{other.endpoint}", "true")
    assert agent.wait() == 125
    assert "it belongs to the run 'other'" in agent.text()
    other.close()


def answer_as_another_version(listener, times):
    """Whoever connects, so often: what a bit that flips on the way makes of a greeting, too."""
    listener.settimeout(DEADLINE)
    for _ in range(times):
        connection = listener.accept()[0]
        with connection:
            connection.sendall(b"MUSTER\x03\x00")
            while connection.recv(4096):
                pass


def test_another_version_in_the_place_of_a_killed_coordinator_ends_no_agent(agents, crew, port):
    common = ["--nnodes=2", f"--rdzv-endpoint={port.endpoint}", *crew.command()]
    first = coordinator(agents, *common)
    left = agents.start("--rdzv-conf=is_host=0", *common)
    crew.round(2, agents.all)
    left.signal(signal.SIGSTOP)
    first.kill()
    first.wait()
    with socket.create_server(("127.0.0.1", port.number)) as stranger:
        left.signal(signal.SIGCONT)
        answer_as_another_version(stranger, 4)
        assert left.running()
    again = coordinator(agents, *common)
    crew.round(2, [left, again]).finish()
    assert [left.wait(), again.wait()] == [0, 0]


def test_another_version_at_the_endpoint_ends_a_new_agent_when_it_answers_again(agents, port):
    agent = agents.start("--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=is_host=0", "true")
    with socket.create_server(("127.0.0.1", port.number)) as stranger:
        answer_as_another_version(stranger, 2)
        assert agent.wait() == 125
    assert "it speaks version 3.0 of the protocol" in agent.text()


def test_a_port_that_another_process_has_is_reported_with_its_holder(agents, port):
    port.socket.listen()
    agent = agents.start("--nnodes=2", "--node-rank=0", f"--master-port={port.number}", "true")
    assert agent.wait() == 125
    assert re.search(rf"cannot listen on 127.0.0.1:{port.number}: the port is taken by \S+ \(pid \d+\)", agent.text())


def test_a_port_that_a_program_which_never_answers_has_on_the_endpoint_s_own_host_ends_the_agent(agents, port):
    port.socket.listen()
    agent = agents.start("--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "true")
    assert agent.wait() == 125
    assert re.search(rf"cannot listen on {port.endpoint}: the port is taken by \S+ \(pid {os.getpid()}\), which does not answer as a "
                     r"muster: end it, or choose another port", agent.text())


def test_a_muster_that_is_stopped_at_the_endpoint_is_waited_for(agents, crew, port):
    common = ["--nnodes=2", f"--rdzv-endpoint={port.endpoint}", *crew.command()]
    first = coordinator(agents, *common)
    first.signal(signal.SIGSTOP)
    other = agents.start(*common)
    other.says(r"the port is taken by muster \(pid")
    first.signal(signal.SIGCONT)
    crew.round(2, agents.all).finish()
    assert agents.wait() == [0, 0]


def test_another_program_at_the_endpoint_is_reported(agents, port):
    """Not muster, and it never answers."""
    port.socket.listen()
    agent = agents.start("--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=join_timeout=2", "true")
    assert agent.wait() == 124
    assert re.search(rf"no round within 2.0 s \(join_timeout\): .*{port.endpoint}", agent.text())


def test_a_waiting_agent_says_what_it_waits_for(agents, port):
    other = Port()
    seeker = agents.start("--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=is_host=0", "true")
    host = agents.start("--nnodes=3", f"--rdzv-endpoint={other.endpoint}", "true")
    seeker.says(rf"no coordinator for \d.*s: .*{port.endpoint}.*; giving up in ")
    host.says(r"waiting for \d.*s: 1 of 3 nodes is here, and only this host can reach 127.0.0.1; giving up in ")
    other.socket.close()


@pytest.mark.parametrize("options, why", [
    (["--nnodes=3"], r"this job has --nnodes=2:2, this agent --nnodes=3:3"),
    (["--nnodes=2", "--rdzv-id=other"], r"other"),
    (["--nnodes=2", "--node-rank=1"], r"--node-rank=1 is held by another agent"),
])
def test_an_agent_that_does_not_belong_is_refused_by_name_and_disturbs_no_other(agents, crew, port, options, why):
    common = ["--rdzv-endpoint=" + port.endpoint, *crew.command()]
    coordinator(agents, "--nnodes=2", "--node-rank=1", *common)
    stranger = agents.start(*options, *common)
    assert stranger.wait() == 125
    assert re.search(why, stranger.text())
    agents.start("--nnodes=2", *common)
    round_ = crew.round(2, [agents.all[0], agents.all[2]])
    round_.finish()
    assert agents.wait() == [0, 125, 0]


def test_a_token_admits_agents_that_know_it_and_workers_never_see_it(agents, crew, port, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")
    common = ["--nnodes=2", f"--rdzv-endpoint={port.endpoint}"]
    # Neither in its own environment nor in that of warden, heir and agent, which are above it.
    show = ["sh", "-c", "heir=$(cut -d' ' -f4 /proc/$PPID/stat); agent=$(cut -d' ' -f4 /proc/$heir/stat); "
            "cat /proc/self/environ /proc/$PPID/environ /proc/$heir/environ /proc/$agent/environ | grep -ac sesame; test $? = 1"]
    coordinator(agents, *common, *show, MUSTER_TOKEN="open sesame")
    wrong = agents.start(*common, "true", MUSTER_TOKEN="open barley")
    without = agents.start(*common, "true")
    assert [wrong.wait(), without.wait()] == [125, 125]
    assert "token" in wrong.text() and "token" in without.text()
    agents.start(*common, f"--rdzv-conf=token_file={secret}", *show)
    assert agents.wait() == [0, 125, 125, 0]
    assert len(re.findall(r"token", agents.all[0].text())) >= 2


def test_a_stop_signal_ends_a_node_that_seeks(agents, port):
    agent = agents.start("--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=is_host=0", "true",
                         LOGLEVEL="DEBUG")
    agent.says("looking for a coordinator")
    agent.signal(signal.SIGTERM)
    assert agent.wait() == STOPPED


def test_a_stop_signal_ends_a_node_that_waits_for_others(agents, port):
    host = coordinator(agents, "--nnodes=3", f"--rdzv-endpoint={port.endpoint}", "true")
    other = agents.start("--nnodes=3", f"--rdzv-endpoint={port.endpoint}", "true", LOGLEVEL="INFO")
    other.says("linked to the coordinator")
    for agent in (other, host):
        agent.signal(signal.SIGTERM)
        assert agent.wait() == STOPPED


@pytest.mark.parametrize("done", [False, True])
def test_a_stop_signal_to_one_node_leaves_the_others_running(agents, crew, port, done):
    """Also to one whose own workers have finished."""
    common = ["--nnodes=2:3", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=last_call_timeout=600", *crew.command()]
    host, stayer = coordinator(agents, *common), agents.start(*common)
    leaver = agents.start(f"--events={agents.directory}/leaver", *common)
    first = crew.round(3, agents.all)
    mine = next(worker for worker in first if agent_of(worker.pid) == leaver.pid)
    if done:
        mine.order("finish")
        wait_for(lambda: "group.done" in (agents.directory / "leaver").read_text(), "the end of its workers")
    leaver.signal(signal.SIGTERM)
    assert leaver.wait() == STOPPED
    crew.gone([mine])
    rest = [worker for worker in first if worker is not mine] if done else crew.round(2, [host, stayer])
    for worker in rest:
        worker.order("finish")
    assert [host.wait(), stayer.wait()] == [0, 0]


def test_a_stop_signal_to_all_nodes_ends_them_all(agents, crew, port):
    for _ in range(3):
        agents.start("--nnodes=3", f"--rdzv-endpoint={port.endpoint}", "--max-restarts=3", *crew.command())
    round_ = crew.round(3, agents.all)
    for agent in agents.all:
        agent.signal(signal.SIGTERM)
    assert agents.wait() == [STOPPED] * 3
    assert gone([worker.pid for worker in round_]) == []


def test_workers_that_save_are_not_killed_when_the_node_that_coordinates_is_done(agents, port, tmp_path):
    """All nodes are stopped; the workers of the one that coordinates end at once, the other's take until it says that it waits for them."""
    worker = tmp_path / "worker.py"
    worker.write_text(textwrap.dedent("""\
        import os, pathlib, signal, sys, time
        here, last = pathlib.Path(sys.argv[1]), os.environ["GROUP_RANK"] == "1"
        def end(*_):
            (here / f"stops{last:d}").touch()
            while last and not (here / "told").exists():
                time.sleep(0.01)
            if last:
                (here / "saved").touch()
            os._exit(0)
        signal.signal(signal.SIGTERM, end)
        (here / f"runs{last:d}").touch()
        while True:
            time.sleep(0.1)
        """))
    common = ["--nnodes=2", f"--rdzv-endpoint={port.endpoint}", sys.executable, str(worker), str(tmp_path)]
    first, last = coordinator(agents, "--no-python", *common), agents.start("--no-python", *common)
    wait_for(lambda: all((tmp_path / f"runs{i}").exists() for i in (0, 1)), "both workers")
    last.signal(signal.SIGTERM)
    wait_for((tmp_path / "stops1").exists, "the signal to reach the worker")
    first.signal(signal.SIGTERM)
    first.says("this node coordinates the job, so it stays until the workers of 1 other node have ended; a second signal ends it at once")
    (tmp_path / "told").touch()
    assert agents.wait() == [STOPPED] * 2
    assert (tmp_path / "saved").exists(), last.text()


def test_every_node_shows_its_part_of_the_job(agents, crew, port):
    for nproc in (1, 2):
        agents.start("--nnodes=2", f"--nproc-per-node={nproc}", "--max-restarts=1", f"--rdzv-endpoint={port.endpoint}",
                     *crew.command())
    crew.round(3, agents.all)[0].order("exit 1")
    round_ = crew.round(3, agents.all)
    states = [agent.state() for agent in agents.all]
    assert [(s["nodes"], s["world_size"], s["restarts"], s["state"]) for s in states] == [(2, 3, 1, "running")] * 2
    assert sorted(s["node"]["group_rank"] for s in states) == [0, 1]
    assert {s["node"]["state"] for s in states} == {"running"}
    assert len({(s["node"]["epoch"], s["node"]["round"]) for s in states}) == 1
    assert states[0]["node"]["round"] == 2
    assert sorted(w["rank"] for s in states for w in s["workers"]) == [0, 1, 2]
    for agent, state in zip(agents.all, states):
        metrics = dict(line.rsplit(" ", 1) for line in agent.get("/metrics").splitlines() if line[0] != "#")
        assert float(metrics["muster_ballot_round"]) == 2
        assert float(metrics["muster_ballot_epoch"]) == state["node"]["epoch"]
        assert float(metrics["muster_members"]) == 2
        assert float(metrics["muster_world_size"]) == 3
    round_.finish()
    assert agents.wait() == [0, 0]


@pytest.mark.parametrize("form", ["c10d", "static"])
def test_gloo_works_through_twenty_restarts_of_two_nodes(agents, port, tmp_path, form):
    """torchrun 2.13 hangs or fails at some of the first ones. Warm workers make it a matter of seconds."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent("""
        import os, signal, torch, torch.distributed as dist
        attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        dist.init_process_group("gloo")
        x = torch.ones(1) * (dist.get_rank() + 1)
        dist.all_reduce(x)
        assert x.item() == 3, x
        if dist.get_rank() == 0:
            print("sum of attempt", attempt, flush=True)
        dist.barrier()
        if attempt < 20:
            # The nodes in turn, and each in its own way.
            if dist.get_rank() == attempt % 2:
                os._exit(1) if attempt % 3 else os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()
        dist.destroy_process_group()
        """))
    for rank in range(2):
        where = [f"--rdzv-endpoint={port.endpoint}"] if form == "c10d" else \
                [f"--node-rank={rank}", f"--master-port={port.number}"]
        agents.start("--nnodes=2", *where, "--max-restarts=20", "--shutdown-timeout=1", "--preload=torch,torch.distributed",
                     script)
    assert [agent.wait(300) for agent in agents.all] == [0, 0], "".join(agent.text() for agent in agents.all)
    sums = re.findall(r"^sum of attempt (\d+)$", "".join(agent.text() for agent in agents.all), re.M)
    assert sorted(map(int, sums)) == list(range(21))


def test_the_job_goes_on_with_a_coordinator_apart(agents, crew, port):
    apart = agents.start(f"--listen={port.endpoint}", "--rdzv-id=apart", command="coordinator", name="coordinator")
    common = ["--nnodes=2", "--rdzv-id=apart", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=is_host=0", *crew.command()]
    nodes = [agents.start(*common), agents.start(*common)]
    round_ = crew.round(2, agents.all)
    nodes[1].kill()
    nodes[1] = agents.start(*common)
    crew.gone(round_)
    round_ = crew.round(2, [nodes[0], nodes[1], apart])
    round_.finish()
    assert [agent.wait() for agent in (*nodes, apart)] == [0, 0, 0]
