"""In torchrun's place: two workers that do nothing, started in the words of torch's launcher and of accelerate, with the switch and without it;
and what the switch costs at the start of a Python in which it is off."""

import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/e2e/lib"))

from frameworks import COMMON, OFF, ON, Environment
from table import head, row

WORKER = "import os; os.environ['RANK']\n"
ROUNDS = 5


def seconds(words, directory, env):
    start = time.monotonic()
    subprocess.run(words, cwd=directory, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - start


def race(words, directory, envs, rounds):
    """The best time of each, in turns."""
    return [min(times) for times in zip(*([seconds(words, directory, env) for env in envs] for _ in range(rounds)))]


def main():
    head("place", peer="torch's")
    site = Environment("common", *COMMON)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "w.py").write_text(WORKER)
        for how in ("ultralytics", "accelerate"):
            words, changes = site.command(how, "w.py")
            ours, peer = race(words, directory, [site.env(directory, **switch, **changes) for switch in (ON, OFF)], ROUNDS)
            what = "python -m torch.distributed.run" if how == "ultralytics" else "accelerate launch"
            row(f"{what}, 2 workers that do nothing, start to end", ours, peer, "s", "< 0.2" if how == "ultralytics" else "1, as it imports torch itself")
        starts_of_python(site, directory, site.env(directory, **OFF))


def starts_of_python(site, directory, off):
    pth = site.packages / "muster.pth"
    whole = pth.read_text()
    without = "".join(line + "\n" for line in whole.splitlines() if "_switch" not in line)
    times = {"with": [], "without": []}
    try:
        for _ in range(40):
            for name, text in (("with", whole), ("without", without)):
                pth.write_text(text)
                times[name].append(seconds([site.python, "-c", "pass"], directory, off))
    finally:
        pth.write_text(whole)
    row("python -c pass with the switch off, against no line for it", min(times["with"]) * 1e3, min(times["without"]) * 1e3, "ms", "1")


if __name__ == "__main__":
    main()
