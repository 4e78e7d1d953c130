"""Jobs in steps of a real Slurm (slurm.py): formed without options, signalled, cancelled, and with nodes that die."""

import random
import re
import signal
import subprocess

import pytest

from proc import words
from slurm import find
from tree import MUSTER, MUSTER_SH, clean_env, helper
from waits import wait_for

pytestmark = pytest.mark.xdist_group("slurm")

WHO = "echo rank $RANK of $WORLD_SIZE on $(hostname), run $TORCHELASTIC_RUN_ID"


def places(text):
    """{rank: (world size, host)} of workers that ran WHO."""
    return {int(rank): (int(size), host) for rank, size, host in re.findall(r"rank (\d+) of (\d+) on (\w+)", text)}


# ---- forming a job ----

def test_srun_without_options_forms_one_job_in_the_order_of_the_nodes(cluster):
    done = cluster.run("srun", "-N4", MUSTER, "run", "sh", "-c", WHO)
    assert places(done.stdout) == {rank: (4, f"node{rank + 1}") for rank in range(4)}
    (run,) = set(re.findall(r"run (\S+)", done.stdout))
    assert re.fullmatch(r"slurm-\d+\.0\.0", run)


def test_a_step_on_a_part_of_the_job_is_a_job_of_that_part(cluster, place):
    script = place("job.sh", f"""\
        #!/bin/bash
        srun -N2 -w node2,node3 {MUSTER_SH} run sh -c '{WHO}'
        srun -N1 -w node3 {MUSTER_SH} run --nproc-per-node=2 sh -c '{WHO}'
        """)
    out = script.with_suffix(".out")
    cluster.batch("-N3", "-w", "node[1-3]", "-o", out, script)
    first, second = re.split(r"(?=rank \d of 2 on node3, run \S+\.1\.0)", out.read_text(), maxsplit=1)
    assert places(first) == {0: (2, "node2"), 1: (2, "node3")}
    assert places(second) == {0: (2, "node3"), 1: (2, "node3")}


def test_a_step_over_the_parts_of_a_heterogeneous_job_is_one_job(cluster, place):
    script = place("job.sh", f"#!/bin/bash\nsrun --het-group=0,1 {MUSTER_SH} run sh -c '{WHO}'\n")
    out = script.with_suffix(".out")
    cluster.batch("-o", out, "-N1", ":", "-N2", script)
    assert sorted(places(out.read_text())) == [0, 1, 2], out.read_text()
    assert {size for size, _ in places(out.read_text()).values()} == {3}


def test_what_is_given_on_the_command_line_wins(cluster, tmp_path):
    done = cluster.run("srun", "-N2", MUSTER, "run", "--standalone", "sh", "-c", WHO)
    assert done.stdout.count("rank 0 of 1") == 2
    done = cluster.run("srun", "-N2", "-w", "node[1-2]", MUSTER, "run", "--rdzv-endpoint=node2:29400", "--nnodes=2", "--rdzv-id=mine", "sh", "-c", WHO)
    assert sorted(places(done.stdout)) == [0, 1] and done.stdout.count("run mine") == 2
    address = cluster.nodes[0].ipv4
    for place in (f"--rdzv-endpoint={address}",), ("--rdzv-backend=c10d",), ("--rdzv-backend=static",), (f"--master-addr={address}",):
        done = cluster.run("srun", "-N3", "-w", "node[1-3]", MUSTER, "run", *place, "sh", "-c", WHO)
        assert sorted(places(done.stdout)) == [0, 1, 2] and done.stdout.count("run slurm-") == 3, (place, done.stdout)
        assert "there is no token" not in done.stderr, done.stderr
    end = tmp_path / "end"
    job = cluster.start("srun", "-N4", MUSTER, "run", "--nnodes=3", "sh", "-c", f"{WHO}; until [ -e {end} ]; do sleep 0.05; done")
    job.says("this node waits for a place in it")  # a spare that comes after the end would not hear of it
    end.touch()
    assert job.wait() == 0 and {size for size, _ in places(job.text()).values()} == {3}


@pytest.mark.parametrize("srun, options, says", [
    (("-N2", "-n4"), (), "add --ntasks-per-node=1 to srun"),
    (("-N2",), ("--nnodes=3",), "add -N3 to srun"),
])
def test_a_step_that_cannot_work_is_refused_with_the_srun_option(cluster, srun, options, says):
    done = cluster.run("srun", *srun, MUSTER, "run", *options, "echo", "started", check=False)
    assert done.returncode == 2 and says in done.stderr and "started" not in done.stdout


@pytest.mark.parametrize("scrubbed", [("env", "-i"), ("env", "-u", "SLURM_STEP_NODELIST", "-u", "SLURM_STEP_ID"),
                                      ("bash", "-c", 'unset ${!SLURM_*}; "$@"; exit $?', "bash")])
@pytest.mark.parametrize("options", [(), ("--nnodes=2",)])
def test_a_step_without_its_variables_is_no_number_of_jobs_of_one(cluster, scrubbed, options):
    done = cluster.run("srun", "-N2", *scrubbed, MUSTER, "run", *options, "echo", "started", check=False)
    assert done.returncode == 2 and "this is a step of Slurm ([" in done.stderr and "started" not in done.stdout
    done = cluster.run("srun", "-N2", *scrubbed, MUSTER, "run", "--standalone", "echo", "started")
    assert done.stdout.count("started") == 2


def test_too_few_cpus_for_the_workers_are_told_with_the_srun_option(cluster):
    done = cluster.run("srun", "-N1", "taskset", "-c", "0", MUSTER, "run", "--nproc-per-node=2", "true")
    assert "2 workers share 1 CPU" in done.stderr and "--cpus-per-task" in done.stderr


def test_a_port_that_is_taken_on_one_node_is_passed_over(cluster):
    job = int(re.search(r"slurm-(\d+)", cluster.run("srun", "-N1", MUSTER, "run", "sh", "-c", WHO).stdout)[1]) + 1
    taken = 16384 + job * 7 % 16384
    program = ("import socket\ns = socket.socket(socket.AF_INET6)\ns.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)\n"
               f"s.bind(('::', {taken}))\ns.listen()\nprint('listens', flush=True)\nwhile True: s.accept()[0].close()")
    other = cluster.nodes[0].start("python3", "-c", program)
    other.says("listens")
    done = cluster.run("srun", "-N3", MUSTER, "run", "--rdzv-conf=failover_after=1", "sh", "-c", WHO)
    other.kill()
    assert f"slurm-{job}." in done.stdout and sorted(places(done.stdout)) == [0, 1, 2]


# ---- host lists ----

def random_list(rng):
    def bracket():
        low = [rng.choice(["", "0", "00"]) + str(rng.randrange(30)) for _ in range(rng.randrange(1, 4))]
        return "[" + ",".join(n if rng.random() < 0.5 else f"{n}-{int(n) + rng.randrange(9)}" for n in low) + "]"
    return ",".join(rng.choice(["node", "r1-", "a"]) + "".join(rng.choice(["", "x", "-"]) + bracket() for _ in range(rng.randrange(4)))
                    for _ in range(rng.randrange(1, 4)))


def test_host_lists_mean_what_slurm_means(tmp_path):
    if not find("scontrol"):
        pytest.skip("scontrol is not installed; scripts/deps test installs it")
    config = tmp_path / "slurm.conf"
    config.write_text("ClusterName=none\nSlurmctldHost=localhost\nNodeName=node1\nPartitionName=all Nodes=ALL\n")
    rng = random.Random(15)
    lists = [*(random_list(rng) for _ in range(60)), "n[00001-60000]", "r[1-100]n[001-999]"]
    for text in lists:
        theirs = subprocess.run([find("scontrol"), "show", "hostnames", text], env=clean_env(SLURM_CONF=config), text=True,
                                capture_output=True)
        ours = subprocess.run([helper("hostlist"), text], text=True, capture_output=True)
        assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout), (text, ours.stderr, theirs.stderr)


# ---- signals ----

# Writes the number of each signal that it gets into a file.
CATCHER = """\
    import os, signal, sys
    got = open(f"{sys.argv[1]}/got-{os.environ['RANK']}", "w", buffering=1)
    for sig in signal.SIGUSR1, signal.SIGUSR2:
        signal.signal(sig, lambda number, _: got.write(f"{number}\\n"))
    come, told = os.pipe()  # a signal that comes right before a signal.pause() would not end it
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)
    print("ready", flush=True)
    while True:
        os.read(come, 1)
    """


def signals_of(directory, rank):
    return [int(number) for number in (directory / f"got-{rank}").read_text().split()]


def test_a_worker_that_catches_a_user_signal_gets_it_once_and_others_live_on(cluster, place, tmp_path):
    catcher = place("catcher.py", CATCHER)
    job = cluster.start("srun", "-N2", MUSTER, "run", "--nproc-per-node=2", "sh", "-c",
                        f"if [ $LOCAL_RANK = 0 ]; then exec python3 {catcher} {tmp_path}; fi\n"
                        f"echo ready; until [ -e {tmp_path}/end ]; do sleep 0.05; done; echo lives")
    wait_for(lambda: job.text().count("ready") == 4, "all workers to start")
    cluster.run("scancel", "-s", "USR1", cluster.newest())
    # The second signal comes after all that the first has caused.
    for rank in (0, 2):
        wait_for(lambda: signals_of(tmp_path, rank), "SIGUSR1")
    cluster.run("scancel", "-s", "USR2", cluster.newest())
    for rank in (0, 2):
        wait_for(lambda: signal.SIGUSR2 in signals_of(tmp_path, rank), "SIGUSR2")
        assert signals_of(tmp_path, rank) == [signal.SIGUSR1, signal.SIGUSR2]
    (tmp_path / "end").touch()
    wait_for(lambda: job.text().count("lives") == 2, "the others to end well")
    cluster.run("scancel", cluster.newest())
    assert job.wait() != 0 and "SIGUSR" not in job.text()


def test_a_user_signal_to_the_agent_alone_is_passed_on_once(cluster, place, tmp_path):
    catcher = place("catcher.py", CATCHER)
    job = cluster.start("srun", "-N1", MUSTER, "run", "python3", catcher, tmp_path)
    job.says("ready")
    ((host, agent),) = [(host, pid) for host in cluster.nodes for pid in host.pids() if is_agent(pid)]
    host.call("kill", "-USR1", inner_pid(agent))
    wait_for(lambda: signals_of(tmp_path, 0) == [signal.SIGUSR1], "the signal")


def is_agent(pid):
    return words(pid)[:2] == [MUSTER.encode(), b"run"]


def inner_pid(pid):
    """What a process of a host is called there."""
    with open(f"/proc/{pid}/status") as file:
        return re.search(r"^NSpid:.*\s(\d+)$", file.read(), re.M)[1]


# ---- authentication by munge ----

def test_agents_of_a_step_prove_their_user_to_each_other(cluster, tmp_path):
    """And another user, or a process without munge, that knows where the job is and what it is called, is refused."""
    end = tmp_path / "end"
    job = cluster.start("srun", "-N2", MUSTER, "run", "sh", "-c", f"{WHO}; until [ -e {end} ]; do sleep 0.05; done")
    wait_for(lambda: job.text().count("of 2 on") == 2, "the workers")
    run = re.search(r"run (\S+)", job.text())[1]
    port = 16384 + int(re.search(r"slurm-(\d+)", run)[1]) * 7 % 16384
    hosts = " ".join(re.findall(r"on (\w+)", job.text()))
    where = ",".join(f"{host}:{port}" for host in hosts.split())
    stranger = (MUSTER, "run", "--nnodes=2", f"--rdzv-endpoint={where}", f"--rdzv-id={run}", "echo", "started")
    bare = cluster.run(*stranger, check=False)
    assert bare.returncode == 125 and "with munge and this side with none" in bare.stderr
    other = cluster.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *stranger[:2], "--rdzv-conf=auth=munge",
                        "--log-dir=/dev/null", *stranger[2:], check=False)
    assert other.returncode == 125 and "does not accept the credential" in other.stderr, other.stderr
    end.touch()
    assert job.wait() == 0
    assert "there is no token" not in job.text()
    assert "Unauthorized credential" in job.text() and "started" not in bare.stdout + other.stdout


def test_a_token_or_nothing_may_be_chosen_instead_of_munge(cluster, place):
    token = place("token", "secret")
    done = cluster.run("srun", "-N2", MUSTER, "run", f"--rdzv-conf=token_file={token}", "sh", "-c", WHO)
    assert sorted(places(done.stdout)) == [0, 1] and "no token" not in done.stderr
    done = cluster.run("srun", "-N2", MUSTER, "run", "--rdzv-conf=auth=none", "sh", "-c", WHO)
    assert sorted(places(done.stdout)) == [0, 1] and "no token" not in done.stderr


def test_without_munge_a_step_runs_with_a_warning_and_auth_munge_is_refused(cluster):
    """In a mount namespace of their own the agents do not find the socket of munged."""
    hidden = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run/munge && exec "$@"', "sh", MUSTER, "run")
    done = cluster.run("srun", "-N2", *hidden, "sh", "-c", WHO)
    assert sorted(places(done.stdout)) == [0, 1]
    assert "munge cannot be used: munge: " in done.stderr and "there is no token" in done.stderr
    done = cluster.run("srun", "-N2", *hidden, "--rdzv-conf=auth=munge", "echo", "started", check=False)
    assert done.returncode == 125 and "auth=munge: munge: " in done.stderr and "started" not in done.stdout


def test_a_node_of_the_step_without_munge_is_told_and_no_job_of_one(cluster):
    """Which nobody asked for with --rdzv-conf."""
    hidden = "[ $SLURM_NODEID = 0 ] || exec unshare --mount sh -c 'mount -t tmpfs none /run/munge && exec \"$@\"' sh \"$@\"; exec \"$@\""
    done = cluster.run("srun", "-N2", "sh", "-c", hidden, "sh", MUSTER, "run", "--rdzv-conf=join_timeout=10", "echo", "started", check=False)
    assert done.returncode != 0 and "started" not in done.stdout, done.stdout
    assert "munge cannot be used: munge: " in done.stderr and "munge does not work on one of the two hosts" in done.stderr, done.stderr


@pytest.mark.parametrize("export", ["NONE", "NIL"])
def test_a_step_without_the_users_variables_is_one_job(cluster, export):
    done = cluster.run("srun", "-N2", f"--export={export}", MUSTER, "run", "sh", "-c", WHO)
    assert sorted(places(done.stdout)) == [0, 1], done.stdout


# ---- batches ----

def test_a_step_runs_one_batch_on_all_of_its_nodes(cluster, tmp_path):
    orders = tmp_path / "orders"
    orders.write_text("".join(f"echo {n} on $(hostname); sleep 0.1\n" for n in range(24)))
    done = cluster.run("srun", "-N4", MUSTER, "batch", "-j2", "-o", tmp_path / "out.jsonl", orders)
    said = dict(re.findall(r"^(\d+) on (\w+)$", done.stdout, re.M))
    assert sorted(map(int, said)) == list(range(24)) and done.stdout.count(" on ") == 24
    assert set(said.values()) <= {f"node{n}" for n in range(1, 5)}
    assert (tmp_path / "out.jsonl").read_text().count('"reason":"ok"') == 24
