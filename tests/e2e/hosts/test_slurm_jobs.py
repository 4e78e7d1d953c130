"""The life of jobs under a real Slurm: nodes that die, time limits, signals, requeueing, preemption."""

import re

import pytest

from proc import words
from slurm import ENDED, batch_script
from tree import MUSTER, MUSTER_SH
from waits import wait_for

pytestmark = pytest.mark.xdist_group("slurm jobs")

# Says where it is, and waits for a file.
WAITER = "echo rank $RANK of $WORLD_SIZE on $(hostname), restart $TORCHELASTIC_RESTART_COUNT; until [ -e {end} ]; do sleep 0.05; done"

# Says which signals it gets, and leaves well after the one that asks it to.
LISTENER = """\
    import os, signal, sys
    def heard(number, _):
        signal.signal(number, signal.SIG_IGN)  # Slurm signals the workers too, not only muster
        print(f"rank {os.environ['RANK']} got {signal.Signals(number).name}", flush=True)
        sys.exit(0)
    for name in sys.argv[1:]:
        signal.signal(signal.Signals[name], heard)
    come, told = os.pipe()  # a signal that comes right before a signal.pause() would not end it
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)
    print("listens", flush=True)
    while True:
        os.read(come, 1)
    """


def wait_listeners(out, count):
    """Until that many have set their signals up: before, a signal would end them."""
    wait_for(lambda: out.exists() and out.read_text().count("listens") == count, f"{count} workers that listen")


def hosts_of(text):
    """{world size: the hosts of its workers, in the order in which they started}."""
    rounds = {}
    for size, host in re.findall(r"rank \d+ of (\d+) on (\w+)", text):
        rounds.setdefault(size, []).append(host)
    return rounds


# ---- nodes that die ----

@pytest.mark.parametrize("victim", [0, 2], ids=["first", "other"])
def test_a_node_that_dies_is_replaced_by_a_spare_of_the_allocation(cluster, tmp_path, victim):
    end = tmp_path / "end"
    job = cluster.start("srun", "-N4", "--no-kill", MUSTER, "run", "--nnodes=2:3", "--rdzv-conf=last_call_timeout=60", "sh", "-c",
                        WAITER.format(end=end))
    wait_for(lambda: job.text().count(" of 3 on ") == 3, "the first round")
    before = set(hosts_of(job.text())["3"])
    lost = cluster.nodes[victim]
    spared = {node.name for node in cluster.nodes} - before
    if lost.name in spared:  # then its loss is none, and the next one's is
        lost = next(node for node in cluster.nodes if node.name in before)
    lost.kill()
    wait_for(lambda: job.text().count(" of 3 on ") == 6, "the next round; " + job.text())
    after = set(hosts_of(job.text())["3"][3:])
    assert after == (before | spared) - {lost.name}
    end.touch()
    job.wait()


def test_an_elastic_job_goes_on_with_fewer_nodes(cluster, tmp_path):
    end = tmp_path / "end"
    job = cluster.start("srun", "-N3", "--no-kill", MUSTER, "run", "--nnodes=2:3", "sh", "-c", WAITER.format(end=end))
    wait_for(lambda: job.text().count(" of 3 on ") == 3, "the first round")
    lost = next(node for node in cluster.nodes if node.name in hosts_of(job.text())["3"])
    lost.kill()
    wait_for(lambda: job.text().count(" of 2 on ") == 2, "a round of two")
    assert lost.name not in hosts_of(job.text())["2"]
    end.touch()
    job.wait()


# ---- what Slurm does to a job: the table of docs/slurm.md ----

def test_a_signal_before_the_time_limit_reaches_every_worker(cluster, place, tmp_path):
    listener = place("listener.py", LISTENER)
    script = batch_script(place, f"srun {MUSTER_SH} run --nproc-per-node=2 python3 {listener} SIGUSR1")
    out = tmp_path / "out"
    job = cluster.submit("-N2", "-t", "60", "--signal=USR1@1800", "-o", out, script)
    wait_listeners(out, 4)
    cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=29")  # so the signal is due now
    assert cluster.wait_state(job, *ENDED)["JobState"] == "COMPLETED", out.read_text()
    assert sorted(re.findall(r"rank (\d) got SIGUSR1", out.read_text())) == ["0", "1", "2", "3"]


def test_the_time_limit_stops_the_workers_and_leaves_them_the_kill_wait(cluster, place, tmp_path):
    listener = place("listener.py", LISTENER)
    script = batch_script(place, f"srun {MUSTER_SH} run python3 {listener} SIGTERM")
    out = tmp_path / "out"
    job = cluster.submit("-N2", "-t", "60", "-o", out, script)
    wait_listeners(out, 2)
    cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=1")
    assert cluster.wait_state(job, *ENDED)["JobState"] == "TIMEOUT"
    assert sorted(re.findall(r"rank (\d) got SIGTERM", out.read_text())) == ["0", "1"], out.read_text()
    assert left_on(cluster) == []


def test_scancel_ends_the_job_and_leaves_nothing(cluster, place, tmp_path):
    listener = place("listener.py", LISTENER)
    script = batch_script(place, f"srun {MUSTER_SH} run --max-restarts=3 python3 {listener} SIGTERM")
    out = tmp_path / "out"
    job = cluster.submit("-N2", "-o", out, script)
    wait_listeners(out, 2)
    cluster.run("scancel", job)
    assert cluster.wait_state(job, "CANCELLED", "FAILED", "COMPLETED")["JobState"] == "CANCELLED"
    wait_for(lambda: cluster.idle() == 4, "the nodes to be free")
    assert sorted(re.findall(r"rank (\d) got SIGTERM", out.read_text())) == ["0", "1"], out.read_text()
    assert out.read_text().count("listens") == 2  # no restart
    assert left_on(cluster) == []


def test_preemption_requeues_the_job_which_is_another_run_then(cluster, place, tmp_path):
    end = tmp_path / "end"
    script = batch_script(place, f"srun {MUSTER_SH} run sh -c 'echo run $TORCHELASTIC_RUN_ID; until [ -e {end} ]; do sleep 0.05; done'")
    out = tmp_path / "out"
    job = cluster.submit("-N4", "-n4", "-c4", "--requeue", "--open-mode=append", "-o", out, script)
    wait_for(lambda: out.exists() and out.read_text().count(f"run slurm-{job}.0.0") == 4, "the first run")
    cluster.run("srun", "-p", "high", "-N1", "-c4", "true")
    wait_for(lambda: out.read_text().count(f"run slurm-{job}.0.1") == 4, "the second run")
    end.touch()
    assert cluster.wait_state(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"


def left_on(cluster):
    """What still runs of jobs on any node."""
    found = []
    for host in cluster.nodes:
        for command in map(words, host.pids()):
            if b"listener.py" in b" ".join(command) or command[0] == MUSTER.encode():
                found.append((host.name, command))
    return found


def test_slurm_without_srun_starts_on_every_node_of_the_job(cluster, place, tmp_path):
    out = tmp_path / "out"
    script = batch_script(place, f"{MUSTER_SH} run --slurm --nproc-per-node=2 sh -c 'echo rank $RANK of $WORLD_SIZE on $(hostname)'")
    assert cluster.batch("-N3", "-o", out, script)["JobState"] == "COMPLETED", out.read_text()
    assert sorted(hosts_of(out.read_text())["6"]) == sorted(2 * [f"node{n}" for n in (1, 2, 3)])


def test_slurm_outside_of_a_job_is_refused(muster):
    done = muster("run", "--slurm", "true")
    assert done.returncode == 2 and "not a job of Slurm" in done.stderr
