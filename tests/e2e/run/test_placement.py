"""Where workers run, seen from inside them; dry runs; and programs that are not torch's."""

import json
import os
import subprocess
import sys

import pytest

from able import cores, need_cores, need_own_name
from tree import clean_env

INSIDE = """
import json, os, sys
names = ("RANK", "OMP_NUM_THREADS", *sys.argv[1:])
facts = {"cpus": sorted(os.sched_getaffinity(0)), **{n: os.environ.get(n) for n in names}}
os.write(1, json.dumps(facts).encode() + b"\\n")  # the ranks share a pipe
"""
ALL = sorted(os.sched_getaffinity(0))


@pytest.fixture
def inside(muster, tmp_path):
    """What the workers see of themselves, by rank. (An empty prefix: whole lines, whichever worker writes them.)"""
    path = tmp_path / "inside.py"
    path.write_text(INSIDE)

    def call(*options, env=None, names=(), within=None):
        preexec = (lambda: os.sched_setaffinity(0, within)) if within else None
        done = muster("run", "--prefix=", *options, path, *names, env=env or clean_env(), preexec_fn=preexec)
        assert done.returncode == 0, done.stderr
        seen = [json.loads(line) for line in done.stdout.splitlines()]
        return sorted(seen, key=lambda worker: int(worker["RANK"]))

    return call


def test_nothing_is_bound_unless_asked_for(inside):
    assert [w["cpus"] for w in inside("--nproc-per-node=2")] == [ALL, ALL]


def test_core_binding_gives_every_worker_cores_of_its_own(inside):
    need_cores()
    count = len(cores())
    workers = inside(f"--nproc-per-node={count}", "--bind=core")
    assert sorted(tuple(w["cpus"]) for w in workers) == sorted(map(tuple, cores()))
    assert {w["OMP_NUM_THREADS"] for w in workers} == {"1"}
    (alone,) = inside("--bind=core")
    assert alone["cpus"] == ALL
    assert int(alone["OMP_NUM_THREADS"]) <= count


def test_binding_stays_within_the_mask_muster_was_given(inside):
    last = ALL[-1]
    for options in (["--bind=core"], ["--bind=numa"], ["--numa-binding=node"], ["--numa-binding=core-complex"]):
        (worker,) = inside(*options, within={last})
        assert worker["cpus"] == [last], options


def test_explicit_lists_are_taken_as_they_are(inside, muster):
    first, last = ALL[0], ALL[-1]
    workers = inside("--nproc-per-node=2", f"--bind=explicit:{last}:{first},{last}")
    assert [w["cpus"] for w in workers] == [[last], sorted({first, last})]
    done = muster("run", "--bind=explicit:4000", "true")
    assert done.returncode == 2 and "CPU 4000 of local rank 0 is not allowed" in done.stderr


@pytest.mark.parametrize("mode", ["node", "socket", "exclusive", "core-complex"])
def test_numa_binding_works_without_devices(inside, mode):
    workers = inside("--nproc-per-node=2", f"--numa-binding={mode}")
    assert all(w["cpus"] and set(w["cpus"]) <= set(ALL) for w in workers)
    if mode == "exclusive":
        assert not set(workers[0]["cpus"]) & set(workers[1]["cpus"])


def test_the_users_own_thread_count_is_left_alone(inside):
    workers = inside("--nproc-per-node=2", "--bind=numa", env=clean_env(OMP_NUM_THREADS=7))
    assert [w["OMP_NUM_THREADS"] for w in workers] == ["7", "7"]


def test_show_binding_draws_the_plan_and_goes_on(muster):
    need_cores()
    done = muster("run", f"--nproc-per-node={len(cores())}", "--bind=core", "--show-binding", "true")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert len(lines) == len(cores())
    assert lines[0].startswith("local rank 0  [B") and "CPUs " in lines[0]


def test_too_many_workers_for_the_cores_is_a_usage_error_with_a_remedy(muster):
    need_cores()
    done = muster("run", f"--nproc-per-node={len(cores()) + 1}", "--bind=core", "true")
    assert done.returncode == 2 and "share with --bind=numa" in done.stderr
    done = muster("run", "--bind=core", "--numa-binding=node", "true")
    assert done.returncode == 2 and "exclude each other" in done.stderr


def test_a_dry_run_prints_everything_and_starts_nothing(muster, tmp_path):
    done = muster("run", "--nproc-per-node=2", "--bind=numa", "--dry-run", "--log-dir=logs",
                  "touch", "file of $local_rank")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("LOCAL_WORLD_SIZE=2") == 2
    assert "rank 1, local rank 1\n" in done.stdout and "'file of 1'" in done.stdout
    assert done.stdout.count("  on CPUs ") == 2
    assert os.listdir(tmp_path) == []


def test_devices_are_counted_by_the_vendors_library(muster, tmp_path):
    for kind in ("gpu", "xpu"):
        done = muster("run", f"--nproc-per-node={kind}", "echo", "x")
        assert done.returncode == 2 and f"'{kind}': there is no such device" in done.stderr
    assert muster("run", "--nproc-per-node=auto", "echo", "x").stdout == "x\n" * len(ALL)

    # No device can be had here, so the vendor's library is ours: three devices, or what the variable says.
    source = tmp_path / "cuda.c"
    source.write_text("""
        #include <stdio.h>
        #include <stdlib.h>
        int cuInit(unsigned flags) { puts("noise"); return flags; }
        int cuDeviceGetCount(int *count) {
            const char *visible = getenv("CUDA_VISIBLE_DEVICES");
            *count = visible ? atoi(visible) : 3;
            if (*count == 99) abort();
            return 0;
        }
        int cuDeviceGetPCIBusId(char *id, int len, int device) {
            return snprintf(id, len, "0000:%02X:00.0", device + 200) < 0;
        }
    """)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
    env = clean_env(LD_LIBRARY_PATH=tmp_path)
    assert muster("run", "--nproc-per-node=gpu", "echo", "x", env=env).stdout == "x\n" * 3
    assert muster("run", "--nproc-per-node=auto", "--numa-binding=node", "echo", "x", env=env).stdout == "x\n" * 3
    env["CUDA_VISIBLE_DEVICES"] = "2"
    assert muster("run", "--nproc-per-node=gpu", "echo", "x", env=env).stdout == "x\n" * 2
    env["CUDA_VISIBLE_DEVICES"] = "99"
    done = muster("run", "--nproc-per-node=gpu", "echo", "x", env=env)
    assert done.returncode != 0 and "the vendor's library crashed" in done.stderr


def test_mpi_programs_find_their_place(inside):
    names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
    for rank, worker in enumerate(inside("--nproc-per-node=2", "--env=mpi", names=names)):
        assert [worker[n] for n in names] == [str(rank), "2"] * 4


def test_unknown_kinds_of_programs_are_refused(muster):
    done = muster("run", "--env=lisp", "true")
    assert done.returncode == 2 and "'lisp' is neither jax nor mpi" in done.stderr


JAX = """
import jax
jax.distributed.initialize()
import jax.numpy as jnp
from jax.experimental import multihost_utils
ranks = multihost_utils.process_allgather(jnp.array([jax.process_index() + 1]))
import os
os.write(1, f"sum {int(ranks.sum())} of {jax.process_count()}\\n".encode())  # two ranks share the pipe
"""


def test_jax_runs_a_collective_without_any_argument(muster, tmp_path):
    need_own_name()
    pytest.importorskip("jax")
    (tmp_path / "collective.py").write_text(JAX)
    done = muster("run", "--nproc-per-node=2", "--env=jax", "collective.py",
                  env=clean_env(JAX_PLATFORMS="cpu", PYTHON_EXEC=sys.executable))
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("sum")] == ["sum 3 of 2"] * 2
