"""A Python environment as `pip install` leaves it: with muster.pth, and torchrun of its own."""

import pathlib
import subprocess
import sys

import torch

from tree import ROOT

TORCHRUN = """#!{python}
# -*- coding: utf-8 -*-
import re
import sys
from torch.distributed.run import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""


class Site:
    """In `directory`. What the tests have installed (torch, pytest) is seen from it, behind what it has itself."""

    def __init__(self, directory, made=False):
        """`made`: it is there already."""
        if not made:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
        self.python = directory / "bin/python"
        [self.packages] = directory.glob("lib/python3*/site-packages")
        self.torchrun = directory / "bin/torchrun"
        if not made:
            self.fill()

    def fill(self):
        installed = pathlib.Path(torch.__file__).parents[1]
        (self.packages / "installed.pth").write_text(f"{ROOT / 'python'}\n{installed}\n")
        (self.packages / "muster.pth").write_bytes((ROOT / "python/muster.pth").read_bytes())
        self.torchrun.write_text(TORCHRUN.format(python=self.python))
        self.torchrun.chmod(0o755)

    def add_plugin(self, group, name, module, source):
        """A package that has an entry point NAME = MODULE:Plugin in GROUP."""
        (self.packages / f"{module}.py").write_text(source)
        info = self.packages / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:Plugin\n")
