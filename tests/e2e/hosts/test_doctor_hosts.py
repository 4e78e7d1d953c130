"""muster doctor --hosts: one table over ssh (sshd.py)."""

import json
import re

import pytest

from sshd import Ssh
from tree import MUSTER, clean_env
from waits import DEADLINE

PATIENT = f"--timeout={DEADLINE}"  # a machine under load is slow
FEW = "--checks=shm,limits,cgroup,ports"


@pytest.fixture
def net(make_lab):
    return lambda count, **options: Ssh(make_lab(count + 1), **options)


def doctor(net, *options, hosts=None, cwd=None):
    """Its exit code and what it prints, in the terminal."""
    names = ",".join(getattr(host, "name", host) for host in hosts or net.hosts)
    job = net.terminal.start(MUSTER, "doctor", f"--hosts={names}", f"--ssh=ssh -F {net.config}", PATIENT, *options,
                             env=clean_env(), cwd=cwd or net.directory)
    code = job.wait()
    return code, job.text()


def test_what_all_hosts_say_is_one_table(net):
    net = net(4)
    script = net.directory / "train.py"
    script.write_text("print(1)\n")
    (net.directory / "other.py").write_text("print(2)\n")
    for host in net.hosts:
        host.call("mount", "-t", "tmpfs", "-o", "size=64m" if host == net.hosts[1] else "size=2g", "none", "/dev/shm")
    net.hosts[2].call("mount", "--bind", net.directory / "other.py", script)
    code, text = doctor(net, FEW + ",script", f"--script={script.name}", hosts=[*net.hosts, "node99"])
    lines = text.splitlines()
    assert code == 91, text
    assert lines[0] == "reached   4 of 5 ok; bad: node99"
    assert "shm       3 of 4 ok; warning: node2; shm_size 0.0625 to 2 GiB" in lines, text
    assert all(re.search(rf"(?m)^{name} +\d of 4 ok", text) for name in ("limits", "cgroup", "ports", "script")), text
    [lost, remedy] = [lines[i:i + 2] for i, line in enumerate(lines) if line.startswith("bad      node99: reached: ")][0]
    assert "node99" in lost.split("reached: ")[1] and "remedy: ssh must log in there" in remedy
    assert re.search(r"(?m)^bad      node2: compared: shm_size 6.711e\+07 bytes, median of 4 nodes", text), text
    assert re.search(r"(?m)^bad      node3: compared: script \w+, 3 of 4 nodes have \w+$", text), text
    assert re.search(r"(?m)^warning  node2: shm: .*64 of 64 MiB.*\n +remedy: .*--shm-size", text), text
    assert lines[-1].startswith("5 hosts: 3 bad, ")
    net.nothing_left()


def test_programs_get_all_hosts_as_json_and_healthy_ones_end_with_0(net):
    net = net(2, force="echo welcome; printf 'no newline'; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"")
    hostfile = net.directory / "hostfile"
    hostfile.write_text("node1 slots=2\nnode2 # the other\n")
    job = net.terminal.start(MUSTER, "doctor", f"--hostfile={hostfile}", f"--ssh=ssh -F {net.config}", PATIENT, "--json", FEW,
                             "--check=echo \"it's $(hostname)\"")
    assert job.wait() == 0, job.text()
    all = json.loads(job.text())
    assert [host["host"] for host in all["hosts"]] == ["node1", "node2"]
    for host in all["hosts"]:
        checks = {check["name"]: check for check in host["checks"]}
        assert list(checks)[:5] == ["reached", "shm", "limits", "cgroup", "ports"] and "compared" in checks
        assert checks['echo "it\'s $(hostname)"']["text"] == f"it's {host['host']}"


def test_a_host_that_is_silent_or_lacks_the_directory_is_named_and_the_others_are_shown(net):
    net = net(3)
    only = net.directory / "only"
    (only / "deep").mkdir(parents=True)
    net.hosts[1].call("mount", "-t", "tmpfs", "tmpfs", only)
    net.hosts[2].cut()
    code, text = doctor(net, FEW, "--ssh-timeout=3", cwd=only / "deep")
    assert code == 91 and text.startswith("reached   1 of 3 ok; bad: node2,node3\n"), text
    assert re.search(rf"(?m)^bad      node2: reached: .*{only}/deep", text), text
    assert re.search(r"(?m)^bad      node3: reached: .*(timed out|No route|unreachable|no answer)", text), text
    assert re.search(r"(?m)^limits +\d of 1 ok", text), text


def test_hosts_that_do_not_reach_each_other_are_named(net):
    net = net(3)
    code, text = doctor(net, "--checks=reach")
    assert code == 0 and re.search(r"(?m)^reach +3 of 3 ok: \w+ reaches 2 hosts$", text), text
    for version, address in (("-4", net.hosts[2].ipv4), ("-6", net.hosts[2].ipv6)):
        net.hosts[0].call("ip", version, "route", "add", "unreachable", address)
    code, text = doctor(net, "--checks=reach", "--reach=node98")
    assert code == 0 and re.search(r"(?m)^reach +0 of 3 ok; warning: node1,node2,node3$", text), text
    says = dict(re.findall(r"(?m)^warning  (\S+): reach: (.*)$", text))
    assert re.search(r"node3 \(\S+\) does not answer: ", says["node1"]) and "reaches 1 host" in says["node1"], text
    assert says["node2"].startswith("node98 has no address here: ") and "reaches 2 hosts" in says["node2"], text
    assert re.search(r"node1 \(\S+\) does not answer: connections are dropped on the way", says["node3"]), text


def test_a_command_that_cannot_be_started_is_named(muster):
    done = muster("doctor", "--hosts=node1,node2", "--ssh=/nonexistent/ssh")
    assert done.returncode == 91, done.stdout + done.stderr
    assert "bad      node1,node2: reached: cannot start /nonexistent/ssh: No such file or directory" in done.stdout
    done = muster("doctor", "--hosts=node1", "--checks=nosuch")
    assert done.returncode == 2 and "there is no check 'nosuch'" in done.stderr
    for command in (["doctor", "--checks=reach"], ["run", "--preflight=reach", "true"]):
        done = muster(*command)
        assert done.returncode == 2 and "the check 'reach' needs hosts" in done.stderr, done.stderr
