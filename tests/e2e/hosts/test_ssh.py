"""`muster run --hosts`: one terminal starts the job on many hosts, through real sshds."""

import os
import signal
import sys

import pytest

import proc
from crew import Crew
from sshd import Ssh
from waits import DEADLINE

SAY = ("bash", "-c", "echo rank $RANK of $WORLD_SIZE local $LOCAL_RANK on $(hostname)")


@pytest.fixture
def net(make_lab):
    return lambda count, **options: Ssh(make_lab(count + 1), **options)


@pytest.fixture
def crews():
    made = []

    def make(net):
        made.append(Crew(net.directory))
        return made[-1]
    yield make
    for crew in made:
        crew.close()


def test_a_list_of_hosts_becomes_one_job_in_one_terminal(net):
    net = net(3)
    job = net.muster(*SAY)
    assert job.wait() == 0, job.text()
    assert sorted(job.text().splitlines()) == [f"rank {i} of 3 local 0 on node{i + 1}" for i in range(3)]
    net.nothing_left()


def test_slots_of_a_host_file_are_workers(net):
    net = net(2)
    hostfile = net.directory / "hostfile"
    hostfile.write_text("# two hosts\nnode1 slots=2\nnode2:1  # the small one\n")
    job = net.terminal.start(*net.command(f"--hostfile={hostfile}", *SAY))
    assert job.wait() == 0, job.text()
    assert sorted(job.text().splitlines()) == ["rank 0 of 3 local 0 on node1", "rank 1 of 3 local 1 on node1",
                                               "rank 2 of 3 local 0 on node2"]
    net.nothing_left()


def test_a_failure_is_reported_once_and_names_its_host(net):
    net = net(3)
    job = net.muster("bash", "-c", "if [ $RANK = 1 ]; then echo broken >&2; exit 7; fi; sleep 1000")
    assert job.wait() == 7, job.text()
    assert job.text().count("job failed: rank 1 of 3 on node2 ended with exit code 7") == 1, job.text()
    assert job.text().count("muster: ") == 1, job.text()
    net.nothing_left()


def test_hosts_that_are_not_fit_do_not_decide_how_the_job_ended(net):
    net = net(3)
    job = net.muster("sh", "-c", "exit 7", options=["--nnodes=1:3", "--rdzv-conf=quorum=any,last_call_timeout=1", "--bad-node=leave", "--check=[ $(hostname) = node1 ]"])
    assert job.wait() == 7, job.text()
    assert job.text().count("ended with exit code 7") == 1, job.text()
    net.nothing_left()


def test_ctrl_c_ends_all_hosts(net, crews):
    net = net(3)
    crew = crews(net)
    job = net.muster(*crew.command())
    crew.round(3, [job])
    job.signal(signal.SIGINT)
    assert job.wait() == 130, job.text()
    net.nothing_left()


def test_a_second_ctrl_c_kills_at_once(net):
    net = net(2)
    job = net.muster("bash", "-c", "trap 'echo asked' INT TERM; echo up; while :; do sleep 1000 & wait; done",
                     options=["--shutdown-timeout=3000"])
    job.says("(?s)up.*up")
    job.signal(signal.SIGINT)
    job.says("(?s)asked.*asked")
    job.signal(signal.SIGINT)
    assert job.wait() == 130, job.text()
    net.nothing_left()


@pytest.mark.parametrize("victim", ["fleet-relay", "run"])
def test_nothing_is_left_of_a_host_whose_relay_or_agent_is_killed(net, crews, victim):
    net = net(2)
    crew = crews(net)
    # Either host may coordinate: whichever was there first.
    job = net.muster(*crew.command(), options=["--nnodes=1:2", "--rdzv-conf=quorum=any"])
    crew.round(2, [job])
    found = [pid for pid in net.hosts[1].pids() if proc.words(pid)[1:2] == [victim.encode()]]
    assert len(found) == 1, net.processes()
    os.kill(found[0], signal.SIGKILL)
    crew.round(1, [job]).finish()
    assert job.wait() == 0, job.text()
    assert "node2" in job.text()
    net.nothing_left()


def test_the_environment_and_the_directory_go_along(net):
    net = net(2)
    job = net.muster("bash", "-c", "echo $RANK $COLOUR $PWD ${SSH_AUTH_SOCK-none} ${MUSTER_TOKEN-none} ${MUSTER_FLEET_HOST-none}",
                     env={"COLOUR": "blue", "SSH_AUTH_SOCK": "/x", "MUSTER_TOKEN": "secret"})
    assert job.wait() == 0, job.text()
    assert sorted(job.text().splitlines()) == [f"{i} blue {net.directory} none none none" for i in range(2)]


def test_the_token_is_in_no_command_line_and_no_environment(net, crews):
    net = net(3)
    crew = crews(net)
    secret = "the-secret-of-this-job"
    job = net.muster(*crew.command(), env={"MUSTER_TOKEN": secret}, options=["--ssh-fanout=1"])
    crew.round(3, [job])
    own = job.pid  # it was given the variable, and has wiped it
    looked = 0
    for host in net.lab.hosts:
        for pid in host.pids():
            for name in ("cmdline", "environ"):
                assert secret.encode() not in proc.read(pid, name), (host.name, pid, name)
            looked += 1
    assert own and looked > 9
    job.signal(signal.SIGTERM)
    assert job.wait() == 143


@pytest.mark.parametrize("how", ["refused", "silent", "no such host"])
def test_a_host_that_cannot_be_reached_is_named_and_the_job_starts_without(net, how):
    net = net(3)
    hosts = list(net.hosts)
    if how == "refused":
        (sshd,) = hosts[1].started
        sshd.kill()
        sshd.wait()
    elif how == "silent":
        hosts[1].cut()
    else:
        hosts[1] = "node99"
    name = getattr(hosts[1], "name", hosts[1])
    job = net.muster(*SAY, hosts=hosts, options=["--nnodes=2:3", "--ssh-timeout=5"])
    assert job.wait() == 0, job.text()
    lines = job.text().splitlines()
    assert [line for line in lines if line.startswith(f"muster: warning: cannot reach {name}: ")], lines
    assert sorted(line for line in lines if line.startswith("rank"))[0].startswith("rank 0 of 2"), lines
    net.nothing_left()


def test_too_few_hosts_are_said_and_nothing_starts(net):
    net = net(2)
    job = net.muster(*SAY, hosts=[*net.hosts, "node99"])
    assert job.wait() == 124
    assert "2 of 3 hosts can be reached, and the job needs 3" in job.text()
    assert "rank" not in job.text()
    net.nothing_left()


def test_nothing_is_left_when_the_starter_is_killed(net, crews):
    net = net(2)
    crew = crews(net)
    job = net.muster(*crew.command())
    crew.round(2, [job])
    job.kill()
    net.nothing_left()


def test_nothing_is_left_when_the_machine_of_the_terminal_loses_its_power(net, crews):
    net = net(2)
    crew = crews(net)
    job = net.muster(*crew.command())
    crew.round(2, [job])
    net.terminal.power_off()
    net.nothing_left(within=120)


def test_a_job_that_can_spare_a_host_survives_its_ssh(net, crews):
    net = net(3)
    crew = crews(net)
    job = net.muster(*crew.command(), options=["--nnodes=2:3", "--max-restarts=1"])
    crew.round(3, [job])
    (ssh,) = [pid for pid in net.terminal.pids() if any(word.endswith(b"node1") for word in proc.words(pid))]
    os.kill(ssh, signal.SIGKILL)
    job.says("lost node1: ")
    crew.round(2, [job]).finish()
    assert job.wait() == 0, job.text()
    net.nothing_left()


def test_a_job_that_can_spare_a_host_survives_its_death(net, crews):
    net = net(3)
    crew = crews(net)
    job = net.muster(*crew.command(), options=["--nnodes=2:3"])
    crew.round(3, [job])
    net.hosts[0].kill()
    crew.round(2, [job]).finish()
    assert job.wait() == 0, job.text()


def test_a_job_that_needs_the_host_that_is_lost_ends(net, crews):
    net = net(2)
    crew = crews(net)
    job = net.muster(*crew.command())
    crew.round(2, [job])
    net.hosts[1].kill()
    assert job.wait() != 0
    assert "lost node2: " in job.text() and "1 hosts are left, and the job needs 2" in job.text(), job.text()
    net.nothing_left()


def test_a_directory_that_is_missing_on_one_host_ends_the_job_with_its_name(net):
    net = net(2)
    only = net.directory / "only"
    (only / "deep").mkdir(parents=True)
    net.hosts[1].call("mount", "-t", "tmpfs", "tmpfs", only)
    job = net.terminal.start(*net.command("--hosts=node1,node2", *SAY), cwd=only / "deep")
    assert job.wait() == 127, job.text()
    assert f"muster: node2: error: in {only}/deep: " in job.text(), job.text()
    net.nothing_left()


def test_a_login_shell_may_print_what_it_likes(net):
    net = net(2, force="echo welcome; printf 'no newline'; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"")
    job = net.muster(*SAY)
    assert job.wait() == 0, job.text()
    assert sorted(job.text().splitlines()) == [f"rank {i} of 2 local 0 on node{i + 1}" for i in range(2)]


def test_32_hosts_are_reached_through_a_tree(net, crews):
    net = net(32)
    crew = crews(net)
    job = net.muster(*crew.command(), options=["--ssh-fanout=4", "--ssh-timeout=120"])
    found = crew.round(32, [job])
    assert found.hosts == [f"node{i + 1}" for i in range(32)]
    reached = [sum(line.startswith("ssh ") for line in lines) for lines in net.processes().values()]
    assert max(reached) <= 4 and sum(reached) == 32, reached
    job.signal(signal.SIGINT)
    assert job.wait() == 130, job.text()
    net.nothing_left()


def test_where_inner_hosts_have_no_key_the_terminal_reaches_all(net):
    net = net(6)
    only_here = net.directory / "ssh-from-here"
    only_here.write_text(f"#!/bin/sh\n[ $(hostname) = {net.terminal.name} ] || {{ echo no key >&2; exit 255; }}\n"
                         f"exec ssh -F {net.config} \"$@\"\n")
    only_here.chmod(0o755)
    job = net.muster(*SAY, ssh=only_here, options=["--ssh-fanout=2"])
    assert job.wait() == 0, job.text()
    assert sorted(job.text().splitlines()) == [f"rank {i} of 6 local 0 on node{i + 1}" for i in range(6)]
    net.nothing_left()


LIAR = """
import os, struct, sys
def frame(kind, host, body=b""):
    return struct.pack("<IBI", len(body), kind, host) + body
def texts(number, *words):
    return struct.pack("<II", number, len(words)) + b"".join(word + b"\\0" for word in words)
kinds = "REACH DROP PLACE START SIGNAL BEAT UP DOWN OUT ERR REPORT AGENT".split()
def say(kind, host, body=b""):
    os.write(1, frame(kinds.index(kind), host, body))
os.write(1, b"\\nMUSTER FLEET 1\\n")
say("UP", 1, texts(0, b"0", b""))
while True:  # until the job starts
    head = sys.stdin.buffer.read(9)
    size, kind, host = struct.unpack("<IBI", head)
    sys.stdin.buffer.read(size)
    if kinds[kind] == "START":
        break
say("OUT", 0, b"a lie of node1\\n")
say("ERR", 0, b"a lie of node1\\n")
say("DOWN", 0, texts(0, b"a lie"))
say("AGENT", 0, struct.pack("<II", 0, 77))
say("OUT", 1, b"the truth\\n")
open(sys.argv[1], "w").close()
"""


def test_a_relay_speaks_only_for_the_hosts_behind_it(start, tmp_path, port):
    """node2 says that node1 prints, was lost and has ended."""
    lied, ssh, liar = tmp_path / "lied", tmp_path / "myssh", tmp_path / "liar.py"
    liar.write_text(LIAR)
    ssh.write_text("#!/bin/sh\nhost=$1; shift\n[ $host = node1 ] && eval \"$@\"\n"
                   f"exec {sys.executable} {liar} {lied}\n")
    ssh.chmod(0o755)
    job = start("run", "--hosts=node1,node2", f"--ssh={ssh}", "--nnodes=1:2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-conf=quorum=any,last_call_timeout=1",
                "sh", "-c", f"while [ ! -e {lied} ]; do sleep 0.01; done; echo rank $RANK of $WORLD_SIZE")
    out, err = job.communicate(timeout=DEADLINE)
    assert (job.returncode, "a lie" in out + err) == (0, False), out + err
    assert "the truth" in out and "rank 0 of 1" in out, out + err


def test_a_command_that_cannot_be_started_is_named(muster):
    done = muster("run", "--hosts=node1,node2", "--ssh=/nonexistent/ssh", "true")
    assert done.returncode == 124
    assert done.stderr.count("cannot start /nonexistent/ssh: No such file or directory") == 2, done.stderr
    assert "0 of 2 hosts can be reached" in done.stderr


def test_wrong_options_are_named(muster):
    for options, says in [(["--hosts=a,-b"], "'-b' is not the name of a host"),
                          (["--hosts=a", "--node-rank=1"], "--hosts and --node-rank exclude each other"),
                          (["--hosts=a", "--nnodes=2"], "'2' are more than the 1 hosts"),
                          (["--hostfile=/nonexistent"], "/nonexistent"),
                          (["--hosts=a", "--ssh-fanout=0"], "--ssh-fanout: 0"),
                          (["--hosts=a", "--ssh=ssh; rm"], "is not a command of plain words")]:
        done = muster("run", *options, "true")
        assert done.returncode == 2 and says in done.stderr, done.stderr
