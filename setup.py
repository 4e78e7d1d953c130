"""The wheel: the Python package, and what `make` builds.

    bin/muster                      the program itself, so that starting it starts no Python
    libexec/muster/*                the programs it starts
    lib/muster/*                    shared libraries, once scripts/repair-wheel has put them there
    site-packages/muster/           the package, with libmuster in it
    site-packages/*.pth             what runs at the start of every interpreter, if there is any

The first three go below the prefix of the environment (the wheel's "data"), where they keep their
places relative to each other.
"""

import pathlib
import subprocess

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
BUILD = "build/wheel"
# Libraries beside the program come first, for the program and for the libraries themselves: that is
# what a DT_RPATH means, and a DT_RUNPATH does not.
RPATH = "-Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/muster:$$ORIGIN/../../lib/muster'"


def make():
    subprocess.run(["make", "-j2", "--no-print-directory", f"BUILD={BUILD}", f"LDFLAGS={RPATH}", "all"],
                   cwd=ROOT, check=True)


class Build(build_py):
    """Builds the C parts first, and puts the library into the package."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib)
        self.copy_file(str(ROOT / BUILD / "libmuster.so"), str(target / "muster" / "libmuster.so.0"))
        for hook in (ROOT / "python").glob("*.pth"):
            self.copy_file(str(hook), str(target / hook.name))


class Binary(Distribution):
    def has_ext_modules(self):
        return True


def programs():
    """What make built, as paths below the prefix."""
    make()
    libexec = sorted(str(path.relative_to(ROOT)) for path in (ROOT / BUILD / "libexec").glob("*")
                     if path.suffix != ".d")
    return [("bin", [f"{BUILD}/muster"]), *([("libexec/muster", libexec)] if libexec else [])]


class Wheel(bdist_wheel):
    """One wheel for every Python: nothing in it is linked with one."""

    def run(self):
        self.distribution.data_files = programs()
        super().run()

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(distclass=Binary, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
