"""MPI programs: compiled with the MPI libraries that this place has."""

import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

SOURCE = pathlib.Path(__file__).with_name("mpi_user.c")
COMPILERS = {"mpich": ("mpicc.mpich", "mpicc-mpich"), "openmpi": ("mpicc.openmpi", "mpicc-openmpi")}


@functools.lru_cache(maxsize=None)
def _directory():
    return tempfile.TemporaryDirectory(prefix="muster-mpi-")


@functools.lru_cache(maxsize=None)
def _compiled_for_intel():
    """Intel's runtime has no headers, but the binary interface of MPICH."""
    library = pathlib.Path(sys.prefix) / "lib"
    headers = next(iter(pathlib.Path("/usr/include").glob("*/mpich/mpi.h")), None)
    if not (library / "libmpi.so.12").exists():
        return None, "the package impi-rt is not installed in this Python"
    if not headers:
        return None, "the headers of MPICH are not installed here"
    program = pathlib.Path(_directory().name) / "user.intel"
    done = subprocess.run(["gcc", "-O1", f"-I{headers.parent}", "-o", program, SOURCE, f"-Wl,-rpath,{library}", library / "libmpi.so.12"],
                          text=True, capture_output=True)
    return (program, None) if done.returncode == 0 else (None, done.stderr.strip().splitlines()[-1])


@functools.lru_cache(maxsize=None)
def _compiled(kind):
    if kind == "intel":
        return _compiled_for_intel()
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


def environment(kind="mpich"):
    """What its library needs to be told where it was not installed in the usual place."""
    library = pathlib.Path(sys.prefix) / "lib"
    return {"I_MPI_ROOT": sys.prefix, "LD_LIBRARY_PATH": str(library), "FI_PROVIDER_PATH": str(library),
            "FI_PROVIDER": "tcp"} if kind == "intel" else {}


def ranks(text):
    """The ranks that have printed "rank R of N" as their last word, sorted, and the sizes that they have seen."""
    found = re.findall(r"^rank (\d+) of (\d+)$", text, re.M)
    return sorted(int(rank) for rank, _ in found), {int(size) for _, size in found}


def is_one_world(text, size):
    return ranks(text) == (list(range(size)), {size})
