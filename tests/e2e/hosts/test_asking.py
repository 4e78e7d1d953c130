"""Questions to a whole job: status, stacks, stop and restart from any of its hosts, on network namespaces (netns.py)."""

import glob
import json
import signal
import subprocess

import pytest

from netns_job import PORT, Job
from tree import MUSTER, MUSTER_SH, clean_env
from waits import DEADLINE, wait_for

TERM = 128 + signal.SIGTERM


@pytest.fixture
def hosts(make_lab):
    return make_lab(4).hosts


def ask(host, command, *args, job="job"):
    """A command on a host, to its end: exit code, what it printed, what it complained of."""
    done = subprocess.run(
        host.space.command("env", "TMPDIR=/run/here", "XDG_RUNTIME_DIR=/run/here", MUSTER, command, *args, job),
        text=True, capture_output=True, timeout=DEADLINE, env=clean_env())
    return done.returncode, done.stdout, done.stderr


def states(host, *args, job="job"):
    """The states of all hosts by name, as `muster status` on one of them gets them."""
    code, out, err = ask(host, "status", "--json", *args, job=job)
    return code, {state["host"]: state for state in json.loads(out)}, err


def ranks(found):
    return sorted(worker["rank"] for state in found.values() for worker in state["workers"])


def is_ready(hosts):
    """All workers have started, as their agents know."""
    code, found, _ = states(hosts[-1])
    return code == 0 and len(found) == len(hosts) and all(
        worker["state"] == "running" for state in found.values() for worker in state["workers"])


def test_status_stacks_restart_and_stop_reach_all_hosts_from_one_that_does_not_coordinate(hosts):
    one, two, three, four = hosts
    job = Job(one.lab, "4", [one], "--nproc-per-node=2").start(*hosts)
    job.round(8)
    wait_for(lambda: is_ready(hosts), "all hosts to say that their workers run")

    code, found, err = states(three)
    assert (code, err) == (0, "")
    assert sorted(found) == ["node1", "node2", "node3", "node4"] and ranks(found) == list(range(8))
    assert {state["node"]["group_rank"] for state in found.values()} == set(range(4))
    text = ask(three, "status")[1]
    assert all(f"{name}  node" in text for name in found), text
    assert list(states(three, "--here")[1]) == ["node3"]
    assert list(states(three, "--host=node2")[1]) == ["node2"]
    holder = next(name for name, state in found.items() if 5 in [worker["rank"] for worker in state["workers"]])
    assert list(states(four, "--rank=5")[1]) == [holder]
    assert "     5 " in (text := ask(four, "status", "--rank=5")[1]) and "     4 " not in text, text
    assert ask(two, "status", "--host=nowhere")[::2] == (1, "muster status: no host of the job is meant\n")
    assert ask(two, "status", "--rank=x")[0] == 2
    code, text, err = ask(two, "top", "--sort=host")
    assert (code, err) == (0, "") and "hosts 4  workers 8" in text.splitlines()[0], text
    assert [line.split()[1] for line in text.splitlines()[3:]] == sorted([*found, *found]), text

    code, out, err = ask(two, "stacks", "--json", "--timeout=60")
    assert (code, err) == (0, "")
    workers = [worker for stack in json.loads(out)["stacks"] for worker in stack["workers"]]
    assert {worker["host"] for worker in workers} == set(found), out
    assert sorted(worker["rank"] for worker in workers) == list(range(8))
    text = ask(two, "stacks", "--timeout=60", f"--host={holder}", "--rank=5")[1]
    assert text.startswith(f"rank 5 on {holder} in ") and "1 of 1 workers (rank 5 on " in text, text

    assert ask(two, "restart")[::2] == (0, "")
    job.round(8, restarts=0)
    assert ask(four, "stop") == (0, "", "")
    job.ends(TERM)



def test_status_knows_how_far_the_clocks_of_the_hosts_are_apart(make_lab):
    """node2's monotonic clock is 20 s ahead of the coordinator's, its wall clock 20 s behind."""
    one, two = make_lab(2, clocks={2: 20}).hosts
    (faketime,) = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    job = Job(one.lab, "2", [one]).start(one)
    job.start(two, env=dict(LD_PRELOAD=faketime, FAKETIME="-20s", FAKETIME_DONT_FAKE_MONOTONIC="1"))
    job.round(2)

    def clock():
        return states(one)[1]["node2"]["node"].get("clock", {})

    wait_for(lambda: "wall_offset_s" in clock(), "node2 to know the coordinator's clocks")
    known = clock()
    assert abs(known["offset_s"] + 20) <= known["error_s"] + 1 and abs(known["wall_offset_s"] - 20) <= known["error_s"] + 1, known
    own = states(one)[1]["node1"]["node"]["clock"]  # the coordinator is there
    assert max(abs(own["offset_s"]), abs(own["wall_offset_s"])) <= own["error_s"] + 1, own
    job.finish()
    job.ends(0)

def test_a_frozen_host_is_named_and_the_others_are_shown_in_time(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "4", [one], "--rdzv-conf=keep_alive_interval=10").start(*hosts)
    job.round(4, hosts)
    two.freeze()
    code, found, err = states(three, "--timeout=2")
    assert (code, err) == (1, "muster status: no answer from node2: it did not answer in time\n")
    assert ask(hosts[2], "top", "--timeout=1s")[2] == "muster top: no answer from node2: it did not answer in time\n"
    assert sorted(found) == ["node1", "node3", "node4"]
    two.thaw()
    assert sorted(states(three)[1]) == ["node1", "node2", "node3", "node4"]
    assert ask(three, "stop")[0] == 0
    job.ends(TERM)


def test_a_host_that_dies_while_it_is_asked_is_named_at_once(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "4", [one], "--rdzv-conf=keep_alive_interval=10").start(*hosts)
    job.round(4, hosts)
    job.signal(signal.SIGSTOP, two)
    asker = three.start(MUSTER, "status", "--timeout=1h", "job")  # the time-out does not end it
    job.signal(signal.SIGKILL, two)
    agent = job.agents[two]  # nsenter stops with its child, and does not wake up when that dies
    wait_for(lambda: not agent.running() or agent.popen.send_signal(signal.SIGCONT), "the agent to end")
    assert asker.wait() == 1
    text = asker.text()
    assert "no answer from node2: its connection is lost" in text
    assert all(f"{name}  n" in text for name in ("node1", "node3", "node4")), text
    assert ask(three, "stop")[0] == 1  # it is still missing
    job.ends(TERM, hosts=[one, three, hosts[3]])


def test_after_the_loss_of_the_coordinator_the_next_one_is_asked(hosts):
    one, two, three, _ = hosts
    job = Job(one.lab, "2:4", hosts[:3], "--rdzv-conf=last_call_timeout=1").start(*hosts)
    job.round(4, hosts)
    job.kill(one)
    rest = hosts[1:]
    wait_for(lambda: sorted(states(three, "--timeout=20")[1]) == ["node2", "node3", "node4"], "the others to answer", DEADLINE)
    job.round(3, rest)
    assert ask(two, "stop")[0] == 0
    job.ends(TERM, hosts=rest)


def test_thirty_two_hosts_answer_a_host_that_does_not_coordinate(make_lab):
    hosts = make_lab(32).hosts
    agents = [host.start(MUSTER, "run", "--nnodes=32", f"--rdzv-endpoint=node1:{PORT}", "--rdzv-id=wide", "sh", "-c",
                         "echo rank $RANK says so; exec sleep 600", env=clean_env()) for host in hosts]

    def all_answer():
        code, found, _ = states(hosts[17], job="wide")
        return code == 0 and ranks(found) == list(range(32)) and sorted(found) == sorted(host.name for host in hosts)

    def all_said():
        code, out, err = ask(hosts[5], "logs", "--each", job="wide")
        return (code, err) == (0, "") and all(f"rank {rank} says so\n" in out for rank in range(32))

    wait_for(all_answer, "32 hosts to answer", 2 * DEADLINE)
    wait_for(all_said, "the lines of 32 ranks")
    code, out, err = ask(hosts[11], "stacks", "--json", "--timeout=120", job="wide")
    assert (code, err) == (0, "")
    assert {worker["host"] for stack in json.loads(out)["stacks"] for worker in stack["workers"]} == {host.name for host in hosts}
    assert [state["node"]["round"] for state in states(hosts[17], job="wide")[1].values()] == [1] * 32
    assert ask(hosts[23], "restart", job="wide")[::2] == (0, "")
    wait_for(lambda: [state["node"]["round"] for state in states(hosts[17], job="wide")[1].values()] == [2] * 32, "the next round")
    wait_for(all_answer, "32 hosts to answer")
    agents[9].kill()
    agents[9].wait()
    code, found, err = states(hosts[17], job="wide")
    assert (code, err) == (1, "muster status: no answer from node10: its connection is lost\n") and len(found) == 31
    code, _, err = ask(hosts[30], "stop", job="wide")
    assert (code, err) == (1, "muster stop: no answer from node10: its connection is lost\n")
    assert {agent.wait() for agent in agents if agent is not agents[9]} == {TERM}


# ---- from outside ----

def test_a_host_outside_the_job_asks_its_coordinator_with_the_token(hosts):
    one, two, three, outside = hosts
    members = [one, two, three]
    job = Job(one.lab, "3", [one], env={"MUSTER_TOKEN": "secret"}).start(*members)
    job.round(3, members)
    secret = one.lab.directory / "token"
    secret.write_text("secret\n")
    place = [f"--rdzv-endpoint=node1:{PORT}"]
    with_token = [*place, f"--token-file={secret}"]

    code, found, err = states(outside, *with_token)
    assert (code, err, sorted(found)) == (0, "", ["node1", "node2", "node3"])
    assert list(states(outside, *with_token, "--host=node2")[1]) == ["node2"]
    code, out, err = ask(outside, "status", *place)
    assert code != 0 and out == "" and "it requires a token" in err
    secret.write_text("guess\n")
    code, out, err = ask(outside, "status", *with_token)
    assert code != 0 and out == "" and "token mismatch" in err
    secret.write_text("secret\n")
    code, out, err = ask(outside, "status", *with_token, job="another")
    assert code != 0 and out == "" and "it belongs to the run 'job'" in err
    assert ask(outside, "stop", *with_token) == (0, "", "")
    job.ends(TERM)


# ---- logs ----

TALK = """
import os, sys, time
rank = int(os.environ["RANK"])
print("epoch 1")
sys.stdout.buffer.write(bytes([rank, 0, 255, 9]) * 5000 + b"\\n")
print("end of", rank, "without a newline", end="", flush=True)
print("warning", file=sys.stderr, flush=True)
open(f"{sys.argv[1]}/{rank}", "w").close()
time.sleep(600)
"""

FLOOD = """
import os, sys, time
rank = int(os.environ["RANK"])
open(f"{sys.argv[1]}/{rank}", "w").close()
print("here is", rank, flush=True)
while rank == 1:
    sys.stdout.write("all work and no play\\n" * 1000)
time.sleep(600)
"""


def talk(hosts, program, tmp_path, *options):
    """Starts it as the workers of a job on these hosts; waits until all have begun."""
    (tmp_path / "said").mkdir()
    (tmp_path / "program.py").write_text(program)
    agents = [host.start(MUSTER, "run", f"--nnodes={len(hosts)}", "--nproc-per-node=2" if program == TALK else "--nproc-per-node=1",
                         f"--rdzv-endpoint=node1:{PORT}", "--rdzv-id=job", "--shutdown-timeout=1", *options,
                         tmp_path / "program.py", tmp_path / "said", env=clean_env()) for host in hosts]
    count = len(hosts) * (2 if program == TALK else 1)
    wait_for(lambda: len(list((tmp_path / "said").iterdir())) == count, "all workers to begin", DEADLINE)
    return agents


def stop(host, agents):
    assert ask(host, "stop") == (0, "", "")
    assert {agent.wait() for agent in agents} == {TERM}


def raw(host, *args):
    return subprocess.run(
        host.space.command("env", "TMPDIR=/run/here", "XDG_RUNTIME_DIR=/run/here", MUSTER, "logs", *args, "job"),
        capture_output=True, timeout=DEADLINE, env=clean_env()).stdout


def test_logs_of_every_rank_are_byte_for_byte_those_in_its_files(make_lab, tmp_path):
    hosts = make_lab(3).hosts
    agents = talk(hosts, TALK, tmp_path, "--redirects=3", f"--log-dir={tmp_path}/logs")
    logs = tmp_path / "logs"
    wait_for(lambda: [path.read_bytes().endswith(b"newline") for path in logs.glob("*/attempt_0/*/stdout.log")] == 6 * [True]
             and [path.read_bytes() for path in logs.glob("*/attempt_0/*/stderr.log")] == 6 * [b"warning\n"], "the files to be written")
    files = {}
    for path in logs.glob("*/attempt_0/*/stdout.log"):
        text = path.read_bytes()
        rank = text[len(b"epoch 1\n")]
        files[rank] = text + path.with_name("stderr.log").read_bytes()
    assert sorted(files) == list(range(6))
    for rank, text in files.items():
        assert raw(hosts[2], f"--rank={rank}") == text
    assert raw(hosts[1]).count(b"[0-5] epoch 1\n") == 1
    assert raw(hosts[1], "--grep=warning") == b"[0-5] warning\n"
    assert sorted(raw(hosts[1], "--grep=warning", "--each").split(b"\n")) == [b""] + [b"[%d] warning" % rank for rank in range(6)]
    stop(hosts[2], agents)


def test_without_log_files_logs_has_the_end_of_the_output_and_follows_it_through_a_restart(make_lab, tmp_path):
    hosts = make_lab(3).hosts
    agents = talk(hosts, TALK, tmp_path)
    wait_for(lambda: raw(hosts[1], "--grep=epoch") == b"[0-5] epoch 1\n", "the line of all workers on stdout")
    follower = hosts[2].start(MUSTER, "logs", "-f", "--grep=epoch", "--each", "job")
    wait_for(lambda: follower.text().count("epoch 1") == 6, "the lines of the first attempt")
    assert ask(hosts[0], "restart")[0] == 0
    wait_for(lambda: follower.text().count("epoch 1") == 12, "the lines of the second attempt")
    stop(hosts[1], agents)
    assert follower.wait() in (0, 1)  # 1 if a host was gone before the others


def test_a_flood_on_one_host_hides_no_other_and_costs_the_coordinator_nothing(make_lab, tmp_path):
    hosts = make_lab(3).hosts
    agents = talk(hosts, FLOOD, tmp_path, "--redirects=3", f"--log-dir={tmp_path}/logs", "--log-max-size=64M")

    def memory(agent):
        with open(f"/proc/{agent.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    before = memory(agents[0])
    slow = hosts[2].start("bash", "-c", f"{MUSTER_SH} logs --timeout=1h job | (read line; sleep 600)")  # takes nothing more
    wait_for(lambda: slow.running() and states(hosts[1])[0] == 0, "the others to be asked meanwhile")
    for rank in (0, 2):
        assert raw(hosts[1], f"--rank={rank}") == b"here is %d\n" % rank
    assert sorted(states(hosts[1])[1]) == ["node1", "node2", "node3"]
    assert memory(agents[0]) - before < 8 << 10  # KiB, of a flood of many MiB
    stop(hosts[1], agents)
