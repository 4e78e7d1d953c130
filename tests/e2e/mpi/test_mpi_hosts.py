"""MPI programs on several hosts: one world over all of them, restarts, and what ends a job. The MPI is Intel's: MPICH 4.0
with UCX, which is Debian's, can hang in MPI_Finalize on several hosts under any launcher (pmodels/mpich#6596)."""

import os

import pytest

import mpi
from proc import words
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for


class MpiJob:
    """The same command line on each host, but for the number of ranks."""

    def __init__(self, hosts, *program, nproc=2, options=()):
        self.agents = []
        counts = nproc if isinstance(nproc, list) else [nproc] * len(hosts)
        for host, count in zip(hosts, counts):
            self.agents.append(host.start(
                MUSTER, "run", f"--nnodes={len(hosts)}", f"--rdzv-endpoint={hosts[0].name}:29400", "--rdzv-id=mpi",
                f"--nproc-per-node={count}", "--shutdown-timeout=1", *options, mpi.user("intel"), *program,
                env=clean_env(**mpi.environment("intel"))))

    def codes(self):
        return [agent.popen.wait(DEADLINE * 2) for agent in self.agents]

    def text(self):
        return "".join(agent.text() for agent in self.agents)


@pytest.fixture
def hosts(make_lab):
    mpi.user("intel")
    return make_lab(4).hosts


@pytest.mark.parametrize("counts", [[1, 1], [1, 3], [2, 2, 2, 2], [3, 1, 2]])
def test_ranks_of_all_hosts_are_one_world(hosts, counts):
    job = MpiJob(hosts[:len(counts)], "all", "rma", "hosts", nproc=counts)
    assert job.codes() == [0] * len(counts), job.text()
    assert mpi.is_one_world(job.text(), sum(counts)), job.text()
    shared = sorted(int(line.split()[-1]) for line in job.text().splitlines() if "shares memory with" in line)
    assert shared == sorted(count for count in counts for _ in range(count)), job.text()


def test_an_abort_on_one_host_ends_all_with_its_code_and_its_words(hosts):
    job = MpiJob(hosts[:2], "3,abort:7", "hang")
    assert job.codes() == [7, 7], job.text()
    assert "rank 3 called MPI_Abort with code 7" in job.agents[0].text(), job.text()


def test_a_killed_rank_has_all_hosts_go_on_in_a_new_world(hosts, tmp_path):
    job = MpiJob(hosts[:2], f"checkpoint={tmp_path}", options=["--max-restarts=3"])
    wait_for(lambda: (tmp_path / "3").exists() and int((tmp_path / "3").read_text()) > 10, "a checkpoint")
    os.kill(next(pid for pid in hosts[1].pids() if words(pid)[:1] == [os.fsencode(mpi.user("intel"))]), 9)
    assert job.codes() == [0, 0], job.text()
    assert job.text().count("done after step 100") == 4, job.text()


def test_names_are_found_from_other_hosts(hosts):
    job = MpiJob(hosts[:2], "names", nproc=1)
    assert job.codes() == [0, 0], job.text()


def test_one_world_on_one_host_is_intels_too(muster):
    job = muster("run", "--mpi=pmi", "--nproc-per-node=3", mpi.user("intel"), "all", "rma", env=clean_env(**mpi.environment("intel")))
    assert job.returncode == 0 and mpi.is_one_world(job.stdout, 3), job.stdout + job.stderr
