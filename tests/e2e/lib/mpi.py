"""MPI programs: compiled with the MPI libraries that this place has."""

import functools
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

SOURCE = pathlib.Path(__file__).with_name("mpi_user.c")
COMPILERS = {"mpich": ("mpicc.mpich", "mpicc-mpich"), "openmpi": ("mpicc.openmpi", "mpicc-openmpi")}


@functools.lru_cache(maxsize=None)
def _directory():
    return tempfile.TemporaryDirectory(prefix="muster-mpi-")


@functools.lru_cache(maxsize=None)
def _compiled(kind):
    compiler = next(filter(None, map(shutil.which, COMPILERS[kind])), None)
    if not compiler:
        return None, f"{COMPILERS[kind][0]} is not installed here"
    program = pathlib.Path(_directory().name) / f"user.{kind}"
    done = subprocess.run([compiler, "-O1", "-o", program, SOURCE], text=True, capture_output=True)
    return (program, None) if done.returncode == 0 else (None, done.stderr.strip().splitlines()[-1])


def user(kind="mpich"):
    """The path of mpi_user.c, compiled; skips the test where that is not possible."""
    program, why = _compiled(kind)
    if not program:
        pytest.skip(why)
    return program


def ranks(text):
    """The ranks that have printed "rank R of N" as their last word, sorted, and the sizes that they have seen."""
    found = re.findall(r"^rank (\d+) of (\d+)$", text, re.M)
    return sorted(int(rank) for rank, _ in found), {int(size) for _, size in found}


def is_one_world(text, size):
    return ranks(text) == (list(range(size)), {size})
