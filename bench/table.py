"""What the benches share: where the programs are, what a worker finds in its environment, and the table that report.py reads."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
VENV = pathlib.Path(os.environ.get("VENV", "build/venv")).absolute()
MUSTER = str(BUILD / "muster")
TORCHRUN = str(VENV / "bin" / "torchrun")

# A worker's `python` is the one that has torch, and `import muster` finds the build that is measured.
WORKER_ENV = dict(os.environ, PATH=f"{VENV}/bin:{os.environ['PATH']}", OMP_NUM_THREADS="1",
                  PYTHONPATH=str(ROOT / "python"), MUSTER_LIBRARY=str(BUILD / "libmuster.so"))


def need_torchrun():
    if not os.access(TORCHRUN, os.X_OK):
        sys.exit(f"no torchrun in {VENV}: make bench installs it")


def head(what, peer="peer", note=""):
    print(f"{what:<66} {'ours':>10} {peer:>10} {'ratio':>8}  {'unit':<9} aim{note}", flush=True)


def row(what, ours, peer=None, unit="-", aim="", ratio=None):
    """One line of the table. The ratio is ours / peer, unless the bench gives the one that its aim is about. Text has none."""
    if ratio is None and peer and not isinstance(peer, str):
        ratio = ours / peer
    print(f"{what:<66} {shown(ours):>10} {shown(peer):>10} {'-' if ratio is None else f'{ratio:.3g}':>8}  {unit:<9} {aim}".rstrip(), flush=True)


def shown(figure):
    return "-" if figure is None else figure if isinstance(figure, str) else f"{figure:.4g}"
