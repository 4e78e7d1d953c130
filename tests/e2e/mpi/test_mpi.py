"""MPI programs on one host: real MPICH, one world, and what ends a job."""

import json
import os
import re
import socket
import struct
import subprocess
import sys

import pytest

import mpi
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

RUN = ("run", "--mpi=pmi")


@pytest.mark.parametrize("count", [1, 2, 8])
def test_the_workers_are_one_world(muster, count):
    job = muster(*RUN, f"--nproc-per-node={count}", mpi.user(), "all", "hosts")
    assert job.returncode == 0, job.stdout + job.stderr
    assert mpi.is_one_world(job.stdout, count), job.stdout
    assert job.stdout.count(f"shares memory with {count}\n") == count


@pytest.mark.parametrize("kind", ["mpich", "intel"])
def test_a_program_that_is_linked_with_mpi_needs_no_option(muster, kind):
    job = muster("run", "--nproc-per-node=2", mpi.user(kind), "all", env=clean_env(**mpi.environment(kind)))
    assert job.returncode == 0 and mpi.is_one_world(job.stdout, 2), job.stdout + job.stderr


def test_without_mpi_each_worker_is_a_world(muster):
    job = muster("run", "--mpi=none", "--nproc-per-node=2", mpi.user(), "all")
    assert job.returncode == 0 and mpi.ranks(job.stdout) == ([0, 0], {1}), job.stdout + job.stderr


def test_a_program_that_is_not_linked_with_mpi_gets_nothing(muster):
    job = muster("run", "--no-python", "--nproc-per-node=2", "sh", "-c", "echo $PMI_FD.")
    assert job.returncode == 0 and job.stdout == ".\n.\n" and not job.stderr, job.stdout + job.stderr


def assert_refused(job):
    assert job.returncode == 2 and not job.stdout, job.stdout + job.stderr
    assert "is linked with libmpi.so.40 (Open MPI), which muster does not serve" in job.stderr
    assert "mpirun" in job.stderr and "--mpi=none" in job.stderr


def test_open_mpi_is_refused_before_it_starts(muster):
    assert_refused(muster("run", "--nproc-per-node=2", mpi.user("openmpi"), "all"))


def test_what_a_program_is_linked_with_decides_not_what_it_does(muster, tmp_path):
    """A library of the name and an ordinary program: one worker alone and --mpi=none start it."""
    (tmp_path / "program.c").write_text("#include <stdio.h>\nint answer(void);\nint main(void) { return printf(\"%d\\n\", answer()) < 0; }\n")
    (tmp_path / "library.c").write_text("int answer(void) { return 42; }\n")
    for words in (["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", "-o", "libmpi.so.40", "library.c"],
                  ["-o", "program", "program.c", "libmpi.so.40", f"-Wl,-rpath,{tmp_path}"]):
        subprocess.run(["gcc", *words], cwd=tmp_path, check=True)
    program = tmp_path / "program"
    assert_refused(muster("run", "--nproc-per-node=2", program))
    assert_refused(muster("run", "--nproc-per-node=2", "--dry-run", program))
    assert_refused(muster("run", "--nnodes=2", "--rdzv-endpoint=127.0.0.1:1", program))
    assert muster("run", program).stdout == "42\n"
    assert muster("run", "--mpi=none", "--nproc-per-node=2", program).stdout == "42\n42\n"


def test_a_file_that_contradicts_itself_is_said_and_started(muster, tmp_path):
    """The loader does not look at the size of the names."""
    program = tmp_path / "program"
    subprocess.run(["gcc", "-o", program, "-x", "c", "-"], input=b"int main(void) { return 0; }\n", check=True)
    strsz, syment = struct.pack("=Q", 10), struct.pack("=QQ", 11, 24)  # the tags of two entries that follow each other
    image, changed = re.subn(strsz + b".{8}" + syment, strsz + struct.pack("=Q", 1 << 62) + syment, program.read_bytes(), flags=re.S)
    assert changed == 1
    program.write_bytes(image)
    job = muster("run", "--nproc-per-node=2", program)
    assert job.returncode == 0 and "cannot read whether" in job.stderr and "--mpi=pmi" in job.stderr, job.stderr


def test_env_mpi_is_one_world_too(muster):
    job = muster("run", "--env=mpi", "--nproc-per-node=2", mpi.user(), "all")
    assert job.returncode == 0 and mpi.is_one_world(job.stdout, 2), job.stdout + job.stderr


def test_a_program_behind_a_shell_is_served(muster):
    job = muster(*RUN, "--no-python", "--nproc-per-node=2", "sh", "-c", f"{mpi.user()} all && echo after $RANK")
    assert job.returncode == 0, job.stderr
    assert sorted(job.stdout.splitlines()) == ["after 0", "after 1", "rank 0 of 2", "rank 1 of 2"]


def test_an_ordinary_program_stays_one(muster):
    job = muster(*RUN, "--no-python", "--nproc-per-node=2", "sh", "-c", "echo $PMI_FD $PMI_RANK $PMI_SIZE $MPI_LOCALNRANKS")
    assert job.returncode == 0 and sorted(job.stdout.splitlines()) == ["3 0 2 2", "3 1 2 2"], job.stdout + job.stderr


def test_an_abort_ends_the_job_with_its_code_and_its_words(muster):
    job = muster(*RUN, "--nproc-per-node=4", mpi.user(), "2,abort:7", "hang")
    assert job.returncode == 7, job.stderr
    assert "rank 2 of 4 called MPI_Abort, with exit code 7" in job.stderr
    assert "rank 2 called MPI_Abort with code 7" in job.stderr


def test_an_exit_code_between_init_and_finalize_is_the_jobs(muster):
    job = muster(*RUN, "--nproc-per-node=3", mpi.user(), "1,exit:5", "hang")
    assert job.returncode == 5 and "rank 1 of 3 ended with exit code 5" in job.stderr, job.stderr


def test_the_end_without_finalize_is_a_failure_also_with_0(muster):
    job = muster(*RUN, "--nproc-per-node=3", mpi.user(), "1,exit:0", "hang")
    assert job.returncode == 1 and "rank 1 of 3 ended without MPI_Finalize, with exit code 0" in job.stderr, job.stderr


def test_names_are_published_and_spawning_is_an_error_not_a_hang(muster):
    job = muster(*RUN, "--nproc-per-node=2", mpi.user(), "names", "spawn")
    assert "spawn: an error" in job.stdout, job.stdout + job.stderr


def test_each_attempt_is_a_world_of_its_own(muster, tmp_path):
    script = f"[ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ] && exec {mpi.user()} exit:3; exec {mpi.user()} all checkpoint={tmp_path}"
    job = muster(*RUN, "--no-python", "--nproc-per-node=3", "--max-restarts=1", "sh", "-c", script)
    assert job.returncode == 0 and mpi.is_one_world(job.stdout, 3), job.stdout + job.stderr


def test_a_killed_rank_has_the_job_go_on_from_its_checkpoint(start, tmp_path):
    job = start(*RUN, "--nproc-per-node=3", "--max-restarts=3", f"--events={tmp_path}/events", mpi.user(), f"checkpoint={tmp_path}",
                stderr=subprocess.STDOUT)
    wait_for(lambda: (tmp_path / "1").exists() and int((tmp_path / "1").read_text()) > 10, "a checkpoint")
    started = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    os.kill(next(event["pid"] for event in started if event["event"] == "worker.started" and event["rank"] == 1), 9)
    out, _ = job.communicate(timeout=DEADLINE)
    assert job.returncode == 0 and out.count("done after step 100\n") == 3 and "restart 1 of 3" in out, out


# Ranks that do not keep to the protocol: what they send, and what is said of them.
HOSTILE = {
    "flood": ("init = b'cmd=init pmi_version=1 pmi_subversion=1\\n'; s.sendall(init)\n"
              "for i in range(300000): s.sendall(b'cmd=get_maxes\\n')\n", None),
    "no end of a line": ("s.sendall(b'x' * 100000)\n", "without the end of a line"),
    "another world": ("s.sendall(b'cmd=init pmi_version=1 pmi_subversion=1\\ncmd=get kvsname=other key=a\\n'); s.recv(9999)\n"
                      "s.sendall(b'cmd=finalize\\n'); s.recv(99)\n", None),
    "no such command": ("s.sendall(b'cmd=init pmi_version=1 pmi_subversion=1\\ncmd=dance\\n')\n", "'dance', which is none of PMI-1"),
    "no init": ("s.sendall(b'cmd=barrier_in\\n')\n", "it asked for barrier_in without init"),
    "half a line": ("s.sendall(b'cmd=in'); os._exit(0)\n", None),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_rank_hurts_its_own_job_only(muster, place, what):
    """One that floods without reading is not read; another job on the host does not notice."""
    sends, blamed = HOSTILE[what]
    script = place("hostile.py", "import os, socket, sys\ns = socket.socket(fileno=int(os.environ['PMI_FD']))\n"
                   "s.settimeout(3)\ntry:\n" + "".join(f"    {line}\n" for line in sends.splitlines()) +
                   ("    import time; time.sleep(600)\n" if blamed else "") + "except TimeoutError:\n    os._exit(4)\n")
    job = muster(*RUN, "--nproc-per-node=2", script, env=clean_env(PYTHON_EXEC=sys.executable))
    if blamed:
        assert job.returncode == 1 and blamed in job.stderr, job.stderr
        assert "broke the protocol between MPI and its launcher" in job.stderr
    else:
        assert job.returncode in (0, 4), job.stderr
