"""PyTorch trainings under a real Slurm, undisturbed, losing nodes, requeued, preempted and given notice: the examples among them."""

import functools
import os
import re
import subprocess

import pytest

import ddp
from proc import words
from slurm import batch_script
from tree import MUSTER, MUSTER_SH, ROOT, clean_env, package_env
from waits import wait_for

pytestmark = pytest.mark.xdist_group("slurm training")


def example_env(**extra):
    return dict(PATH=f"{os.path.dirname(MUSTER)}:{clean_env()['PATH']}", OMP_NUM_THREADS=1, **extra)


def loss_of(text):
    return re.search(r"final loss (\S+) after", text)[1]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """undisturbed(workers): the final loss of a training on one host that nothing happens to."""
    @functools.cache
    def train(workers):
        directory = tmp_path_factory.mktemp("undisturbed")
        done = subprocess.run([MUSTER, "run", f"--nproc-per-node={workers}", ddp.SCRIPT, f"--checkpoint={directory}/c.pt"],
                              env=clean_env(), text=True, capture_output=True, timeout=ddp.DEADLINE)
        assert done.returncode == 0, done.stderr
        return loss_of(done.stdout)
    return train


def example(cluster, name, out, *options, **env):
    return cluster.submit("-o", out, *options, ROOT / "examples/slurm" / name, cwd=ROOT, **example_env(**env))


def test_the_plain_example_trains(cluster, tmp_path, undisturbed):
    out = tmp_path / "out"
    job = example(cluster, "plain.sh", out, CHECKPOINT=tmp_path / "c.pt")
    assert cluster.wait_state(job, "COMPLETED", "FAILED", timeout=ddp.DEADLINE)["JobState"] == "COMPLETED", out.read_text()
    assert loss_of(out.read_text()) == undisturbed(4)


def test_the_elastic_example_replaces_a_node_that_dies(cluster, tmp_path, undisturbed):
    out, hold = tmp_path / "out", tmp_path / "hold"
    job = example(cluster, "elastic.sh", out, "-N4", CHECKPOINT=tmp_path / "c.pt", HOLD=hold)
    wait_for(lambda: out.exists() and out.read_text().count("holds") == 3, "the first round", ddp.DEADLINE)
    working(cluster).kill()
    wait_for(lambda: out.read_text().count("holds") == 6, "the next round", ddp.DEADLINE)
    hold.touch()
    wait_for(lambda: "final loss" in out.read_text(), "the end", ddp.DEADLINE)
    cluster.wait_state(job, "COMPLETED", "FAILED", "NODE_FAIL", timeout=ddp.DEADLINE)
    assert near(loss_of(out.read_text()), undisturbed(3))


def test_the_requeue_example_goes_on_from_its_checkpoint(cluster, tmp_path, undisturbed):
    out, hold = tmp_path / "out", tmp_path / "hold"
    job = example(cluster, "requeue.sh", out, CHECKPOINT=tmp_path / "c.pt", HOLD=hold)
    wait_for(lambda: out.exists() and out.read_text().count("holds") == 2, "the training to come to its end", ddp.DEADLINE)
    cluster.run("scancel", "--batch", "-s", "USR1", job)  # as Slurm does before the time limit
    wait_for(lambda: cluster.job(job).get("Restarts") == "1", "the job to be queued again")
    wait_for(lambda: out.read_text().count("holds") == 4, "the training to come to its end again", ddp.DEADLINE)
    hold.touch()
    assert cluster.wait_state(job, "COMPLETED", "FAILED", timeout=ddp.DEADLINE)["JobState"] == "COMPLETED", out.read_text()
    assert loss_of(out.read_text()) == undisturbed(2)
    assert out.read_text().count("step 10 ") == 2  # the second run did not begin again


def test_the_leave_example_loses_no_step(cluster, tmp_path, undisturbed):
    out, hold, steps = tmp_path / "out", tmp_path / "hold", 30
    job = example(cluster, "leave.sh", out, "--time=60", "--signal=USR1@1800", CHECKPOINT=tmp_path / "c.pt", HOLD=hold,
                  HOLD_AT=steps, NOTICE="10m", LOGLEVEL="INFO", **package_env())
    wait_for(lambda: out.exists() and out.read_text().count("holds") == 4, "all ranks to wait", ddp.DEADLINE)
    cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=29")  # so the signal is due now, and half an hour is left
    wait_for(lambda: out.read_text().count(f"the workers leave after step {steps}") == 2, "both hosts to agree on a step", ddp.DEADLINE)
    cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=60")  # or the next run would get it, too
    hold.touch()
    wait_for(lambda: cluster.job(job).get("Restarts") == "1", "the job to be queued again")
    assert cluster.wait_state(job, "COMPLETED", "FAILED", "TIMEOUT", timeout=ddp.DEADLINE)["JobState"] == "COMPLETED", out.read_text()
    assert sorted(re.findall(r"(rank \d) leaves after step (\d+)", out.read_text())) == [(f"rank {rank}", str(steps)) for rank in range(4)]
    assert re.findall(r"begins at step (\d+)", out.read_text()) == 4 * ["0"] + 4 * [str(steps + 1)]
    assert near(loss_of(out.read_text()), undisturbed(4))


def test_a_training_that_loses_a_node_and_is_preempted_ends_with_the_loss_of_an_undisturbed_one(cluster, tmp_path, undisturbed, place):
    out, hold, checkpoint = tmp_path / "out", tmp_path / "hold", tmp_path / "c.pt"
    script = batch_script(place, f"exec {MUSTER_SH} run --slurm --nnodes=3 --max-restarts=3 {ddp.SCRIPT} --checkpoint={checkpoint} --hold={hold}")
    job = cluster.submit("-N4", "-n4", "-c4", "--no-kill", "--requeue", "--open-mode=append", "-o", out, script, **example_env())

    def holding(times):
        wait_for(lambda: out.exists() and out.read_text().count("holds") == 3 * times, f"round {times}", ddp.DEADLINE)

    holding(1)
    lost = working(cluster)
    lost.kill()
    holding(2)
    cluster.revive(lost)
    cluster.run("srun", "-p", "high", "-N4", "-n4", "-c4", "true")
    holding(3)
    assert cluster.job(job)["Restarts"] == "1"
    hold.touch()
    assert cluster.wait_state(job, "COMPLETED", "FAILED", timeout=ddp.DEADLINE)["JobState"] == "COMPLETED", out.read_text()
    assert near(loss_of(out.read_text()), undisturbed(3))


def near(loss, other):
    """Three summands or more: DDP orders its buckets anew after a start, and with them the additions of gloo's ring."""
    return float(loss) == pytest.approx(float(other), rel=1e-6)


def working(cluster):
    """A node with a worker; not the first, which has the batch script: Slurm requeues a job that loses that one."""
    return next(host for host in reversed(cluster.nodes[1:]) if any(is_worker(pid) for pid in host.pids()))


def is_worker(pid):
    command = words(pid)
    return any(word.endswith(b"ddp/train.py") for word in command) and b"run" not in command
