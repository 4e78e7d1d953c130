"""muster doctor on hosts that somebody else starts: in a step of Slurm, or typed on each with --nnodes, one of them shows the table."""

import json
import re
import signal

import pytest

from tree import MUSTER, clean_env
from waits import DEADLINE

PATIENT = f"--timeout={DEADLINE}"  # a machine under load is slow
FEW = "--checks=shm,limits,cgroup,ports"
NOT_LONG = ("--checks=limits", "--meet-timeout=1")


def start(host, nodes, *options, **env):
    return host.start(MUSTER, "doctor", f"--nnodes={nodes}", "--rdzv-endpoint=node1:29411", *options,
                      env=clean_env(**{"MUSTER_TOKEN": "quiet", **env}))


def table(text):
    """Its lines, without those that stderr has before it."""
    lines = text.splitlines()
    return lines[next(i for i, line in enumerate(lines) if line.startswith("reached ")):]


def test_the_host_of_the_endpoint_shows_the_table_of_all(make_lab):
    hosts = make_lab(4).hosts
    script = hosts[0].lab.directory / "train.py"
    script.write_text("print(1)\n")
    (hosts[0].lab.directory / "other.py").write_text("print(2)\n")
    for host in hosts:
        host.call("mount", "-t", "tmpfs", "-o", "size=64m" if host == hosts[1] else "size=2g", "none", "/dev/shm")
    hosts[2].call("mount", "--bind", hosts[0].lab.directory / "other.py", script)
    doctors = [start(host, 4, PATIENT, FEW + ",script", f"--script={script.name}") for host in reversed(hosts)]
    assert [doctor.wait() for doctor in doctors] == [91] * 4, "".join(doctor.text() for doctor in doctors)
    *others, first = doctors
    lines, text = table(first.text()), first.text()
    assert lines[0] == "reached   4 of 4 ok"
    assert "shm       3 of 4 ok; warning: node2; shm_size 0.0625 to 2 GiB" in lines, text
    assert re.search(r"(?m)^bad      node2: compared: shm_size 6.711e\+07 bytes, median of 4 nodes", text), text
    assert re.search(r"(?m)^bad      node3: compared: script \w+, 3 of 4 nodes have \w+$", text), text
    assert lines[-1].startswith("4 hosts: 2 bad, ")
    for doctor in others:
        assert doctor.text().splitlines()[-1] == "muster doctor: the table of all 4 hosts is shown at node1:29411", doctor.text()


def test_programs_get_all_hosts_as_json_and_healthy_ones_end_with_0(make_lab):
    hosts = make_lab(2).hosts
    doctors = [start(host, 2, PATIENT, FEW, "--json", "--check=hostname") for host in hosts]
    assert [doctor.wait() for doctor in doctors] == [0, 0], doctors[0].text() + doctors[1].text()
    found = json.loads(doctors[0].text()[doctors[0].text().index("{"):])
    assert found["state"] in ("ok", "unknown", "warning")
    assert [(host["host"], host["checks"][-2]["text"], host["checks"][-1]["name"]) for host in found["hosts"]] == [
        ("node1", "node1", "compared"), ("node2", "node2", "compared")]
    assert "{" not in doctors[1].text()


def test_ctrl_c_shows_those_who_came_and_counts_the_others(make_lab):
    one, two = make_lab(2).hosts
    first, other = start(one, 4, PATIENT, FEW), start(two, 4, PATIENT, FEW)
    first.says("2 of 4 hosts")
    first.signal(signal.SIGINT)
    assert (first.wait(), other.wait()) == (91, 91), first.text() + other.text()
    assert table(first.text())[0] == "reached   2 of 4 ok; bad: (missing 1),(missing 2)"
    assert re.search(r"(?m)^bad .*: reached: it did not come within \S+ s; node1,node2 did$\n +remedy: start muster doctor there",
                     first.text()), first.text()


def test_hosts_that_do_not_meet_show_what_they_found_in_time(make_lab):
    one, two = make_lab(2).hosts
    other = start(two, 2, *NOT_LONG)
    assert other.wait() == 91, other.text()
    assert re.search(r"found no coordinator: .*node1:29411.*refused\n.*no host shows a table; this is what is found here\n.*limits", other.text())
    first = start(one, 2, *NOT_LONG)
    assert first.wait() == 91, first.text()
    assert table(first.text())[0] == "reached   1 of 2 ok; bad: (missing 1)"


def test_a_host_with_another_token_is_turned_away(make_lab):
    one, two = make_lab(2).hosts
    first, other = start(one, 2, PATIENT, FEW), start(two, 2, PATIENT, FEW, MUSTER_TOKEN="other")
    assert other.wait() == 91, other.text()
    assert re.search(r"refused the connection: .*token.*\n.*; this is what is found here\n", other.text()), other.text()
    first.says("rejected ")
    first.signal(signal.SIGINT)
    assert first.wait() == 91 and table(first.text())[0] == "reached   1 of 2 ok; bad: (missing 1)", first.text()


def test_the_loss_of_the_host_that_shows_the_table_ends_the_others(make_lab):
    one, two = make_lab(2).hosts
    first, other = start(one, 3, PATIENT, FEW), start(two, 3, PATIENT, FEW)
    first.says("node2 has come")
    first.kill()
    assert other.wait() == 91, other.text()
    assert re.search("the coordinator is gone, .*refused\n.*; this is what is found here\n.*shm", other.text()), other.text()


def test_a_host_makes_its_own_checks_whatever_it_is_ordered(make_lab):
    one, two = make_lab(2).hosts
    made, orders = (one.lab.directory / name for name in ("made", "orders.jsonl"))
    orders.write_text(json.dumps({"cmd": f"touch {made}", "hosts": "node2"}) + "\n")
    batch = one.start(MUSTER, "batch", "--rdzv-endpoint=node1:29411", "--rdzv-id=doctor", orders, env=clean_env(MUSTER_TOKEN="quiet"))
    other = start(two, 2, PATIENT, "--checks=limits")
    other.wait()
    batch.wait()
    assert '"name": "limits"' in batch.text() and not made.exists(), batch.text() + other.text()


def test_options_that_do_not_fit_are_refused(muster):
    for options, why in ([("--nnodes=4",), "several hosts need --rdzv-endpoint=HOST"],
                         [("--rdzv-endpoint=node1",), "--rdzv-endpoint needs --nnodes=N"],
                         [("--nnodes=2", "--rdzv-endpoint=node1", "--hosts=a,b"), "choose one"],
                         [("--nnodes=x", "--rdzv-endpoint=node1"), "--nnodes"]):
        done = muster("doctor", "--checks=limits", *options)
        assert done.returncode == 2 and why in done.stderr, done.stderr
    done = muster("doctor", "--checks=limits", PATIENT, "--nnodes=1", "--rdzv-endpoint=node1")
    assert done.stdout.splitlines()[-1].startswith("1 checks: "), done.stdout + done.stderr


@pytest.mark.xdist_group("slurm")
def test_a_slurm_step_has_one_table(cluster):
    done = cluster.run("srun", "-N4", "sh", "-c", '"$@"; echo "code $?" >&2', "-", MUSTER, "doctor", PATIENT, "--checks=limits,shm,reach",
                       "--check=[ $SLURMD_NODENAME != node3 ]", check=False)
    lines = done.stdout.splitlines()
    assert re.fullmatch("reached +4 of 4 ok", lines[0]), done.stdout + done.stderr
    assert re.search(r"(?m)^reach +4 of 4 ok: eth0 reaches 3 hosts$", done.stdout), done.stdout
    assert re.search(r"(?m)^\[ .* 3 of 4 ok; bad: node3$", done.stdout), done.stdout
    assert lines[-1].startswith("4 hosts: 1 bad, ") and done.stderr.count("code 91\n") == 4, done.stderr
    assert len(re.findall(r"the table of all 4 hosts is shown at node1:\d+", done.stderr)) == 3, done.stderr
    assert "there is no token" not in done.stderr  # munge


@pytest.mark.xdist_group("slurm")
def test_nodes_of_a_slurm_step_that_do_not_come_are_named(cluster):
    script = f"[ $SLURM_NODEID != 0 ] || exec {MUSTER} doctor {' '.join(NOT_LONG)}"
    done = cluster.run("srun", "-N3", "sh", "-c", script, check=False)
    assert done.stdout.startswith("reached   1 of 3 ok; bad: node2,node3\n"), done.stdout + done.stderr
    assert done.returncode == 91


@pytest.mark.xdist_group("slurm")
def test_nodes_of_a_job_under_slurm_check_themselves_alone_between_attempts(cluster):
    worker = 'test "$TORCHELASTIC_RESTART_COUNT" = 1'
    done = cluster.run("srun", "-N2", MUSTER, "run", "--preflight=limits", "--max-restarts=1", "sh", "-c", worker, LOGLEVEL="INFO")
    assert done.stderr.count("checking this node before the next attempt") == 2, done.stderr
    assert "the checks failed, which says nothing about this node" not in done.stderr


@pytest.mark.xdist_group("slurm")
def test_two_tasks_on_a_node_of_slurm_have_lines_of_their_own(cluster):
    done = cluster.run("srun", "-N2", "--ntasks-per-node=2", MUSTER, "doctor", PATIENT, "--checks=limits,shm", check=False)
    assert "the nodes of this step are not compared: Slurm starts 2 tasks on a node" in done.stderr
    nodes = {line.split(": ")[0] for line in done.stdout.splitlines()}
    assert len(nodes) == 2 and nodes < {"node1", "node2", "node3", "node4"}, done.stdout
    for node in nodes:
        own = [line.removeprefix(f"{node}: ") for line in done.stdout.splitlines() if line.startswith(f"{node}: ")]
        assert sorted(line.split()[1] for line in own if not line.startswith(" "))[:2] == ["checks:"] * 2, done.stdout
