"""The wheel: the Python package, and what `make` builds.

    bin/muster                      the program itself, so that starting it starts no Python
    libexec/muster/*                the programs it starts
    lib/muster/*                    shared libraries, once scripts/repair-wheel has put them there
    site-packages/muster/           the package, with libmuster in it
    site-packages/muster.pth        what runs at Python's start: uncaught exceptions in workers, torchrun's place

The first three go below the prefix of the environment (the wheel's "data"), where they keep their
places relative to each other.
"""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / os.environ.get("BUILD", "build")


class Build(build_py):
    """Puts what goes into site-packages besides modules there; nothing of an earlier build stays."""

    def run(self):
        target = pathlib.Path(self.build_lib)
        shutil.rmtree(target, ignore_errors=True)
        super().run()
        self.copy_file(str(BUILD / "libmuster.so"), str(target / "muster/libmuster.so.0"))
        self.copy_file(str(ROOT / "python/muster.pth"), str(target / "muster.pth"))


class Wheel(bdist_wheel):
    """One wheel for every Python: nothing in it is linked with one."""

    def run(self):
        need_tools()
        jobs = len(os.sched_getaffinity(0))
        subprocess.run(["make", f"-j{jobs}", "--no-print-directory", "wheel-files"], cwd=ROOT, check=True)
        self.distribution.data_files = built_files()
        super().run()

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class Binary(Distribution):
    def has_ext_modules(self):
        return True


def need_tools():
    """What make needs besides libraries, whose absence it tells itself."""
    missing = [tool for tool in ("make", "gcc", "pkg-config") if not shutil.which(tool)]
    if missing:
        raise SystemExit(f"muster is written in C and is compiled first, for which {' and '.join(missing)} is missing; "
                         "scripts/deps --print build says what to install")


def built_files():
    """What make built for below the prefix, folder by folder."""
    files = sorted(path for path in (BUILD / "wheel").rglob("*") if path.is_file())
    return [(str(path.parent.relative_to(BUILD / "wheel")), [os.path.relpath(path, ROOT)]) for path in files]


setup(distclass=Binary, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
