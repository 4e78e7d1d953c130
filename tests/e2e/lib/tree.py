"""The tree under test: where it is, what was built, and the environment its programs are started with."""

import os
import pathlib
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / os.environ.get("BUILD", "build")
MUSTER = os.environ.get("MUSTER", str(BUILD / "muster"))
MUSTER_SH = shlex.quote(MUSTER)  # in a shell's command line
SANITIZER = os.environ.get("SAN", "")  # what it was built with, as -fsanitize= takes it; "" for none
ADMIN = "/usr/local/sbin:/usr/sbin:/sbin"  # ip and sysctl; not in the PATH of every user


def helper(name):
    """A program of tests/helpers."""
    return BUILD / "helpers" / name


def asan_options():
    """The caller's, and that a sanitized libmuster may come into a Python that is not."""
    return ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))


def clean_env(**extra):
    """The caller's environment without what would change the program's behaviour."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("PET_", "TORCHELASTIC_", "MUSTER_", "SLURM_", "OMP_"))
           and k not in ("LOGLEVEL", "MUSTER", "BUILD", "PYTHON_EXEC", "MASTER_ADDR", "MASTER_PORT", "COLUMNS", "LINES")}
    env["PATH"] = f"{os.path.dirname(sys.executable)}:{env['PATH']}"
    env["ASAN_OPTIONS"] = asan_options()
    env.update({k: str(v) for k, v in extra.items()})
    return env


def package_env():
    """What leads to the Python package of this tree and to what was built for it; all that a place with an environment of its own needs."""
    return {"PYTHONPATH": ROOT / "python", "MUSTER_PROGRAM": MUSTER, "MUSTER_LIBRARY": BUILD / "libmuster.so",
            "ASAN_OPTIONS": asan_options()}


def python_env(**extra):
    """The caller's environment as in clean_env(), with the package."""
    return clean_env(**{**package_env(), **extra})


def admin_env():
    """For commands of the administrator."""
    return dict(os.environ, PATH=f"{os.environ['PATH']}:{ADMIN}")
