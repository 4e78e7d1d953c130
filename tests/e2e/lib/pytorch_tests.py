"""PyTorch's own tests of its launcher, as Debian's source package has them, in an environment where they run."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from frameworks import PATIENCE, Environment, locked
from tree import BUILD, MUSTER, clean_env

RELEASE = "bookworm"  # has 1.13.1
WANTED = "*/test/distributed/"
AGAIN = ("terminate called without an active exception",  # a thread of torch at the interpreter's end, whoever has launched it
         "1 of 1 to 2 nodes is here")  # the second one is still importing torch when the round forms without it


def fetch():
    """The directory of the tests; sources and lists of packages of our own, so that nothing of the system changes."""
    place = BUILD / "frameworks/pytorch-source"
    found = place / "test/distributed"
    with locked(BUILD / "frameworks/pytorch-source.lock"):
        if not found.exists():
            unpack(place)
    return found


def debian():
    """Where this system has its packages from; one of the same family has sources there."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"], text=True, capture_output=True)
    for line in done.stdout.splitlines():
        origin, _, where = line.partition(" ")
        if origin == "Debian" and "security" not in where:
            return where
    pytest.skip("this system does not get its packages from Debian")


def unpack(place):
    for tool in ("apt-get", "xz"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    apt = place / "apt"
    for directory in ("lists/partial", "cache/archives/partial"):
        (apt / directory).mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text(f"deb-src {debian()} {RELEASE} main\n")
    options = ["-o", f"Dir::Etc::SourceList={apt}/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null", "-o", f"Dir::State::Lists={apt}/lists",
               "-o", f"Dir::Cache={apt}/cache", "-o", "Acquire::Retries=1", "-o", "APT::Sandbox::User="]
    for words in (["update", "--error-on=any"], ["source", "--tar-only", "pytorch"]):
        done = subprocess.run(["apt-get", "--quiet", *options, *words], cwd=apt, text=True, capture_output=True)
        if done.returncode != 0:
            why = [line for line in done.stderr.splitlines() if line.startswith("E:")] or ["apt-get failed"]
            pytest.skip(f"Debian's sources cannot be fetched: {why[0]}")
    [archive] = apt.glob("pytorch_*.orig.tar.*")
    subprocess.run(["tar", "-xf", archive, "-C", place, "--strip-components=1", "--wildcards", f"{WANTED}launcher/*", f"{WANTED}elastic/*",
                    f"{WANTED}test_store.py"], check=True)


class PytorchTests:
    def __init__(self):
        self.directory = fetch()
        self.site = Environment("pytorch", "python-etcd", "expecttest", "hypothesis")
        shutil.copy(pathlib.Path(__file__).with_name("pytorch_adapter.py"), self.site.packages)
        (self.site.packages / "pytorch_adapter.pth").write_text('import os; os.environ.get("PYTORCH_TESTS") and exec("import pytorch_adapter")\n')

    def run(self, file, switch, only=()):
        """What each test of a file came to: passed, failed, or the reason why it was skipped. One that failed by chance (AGAIN) runs again."""
        ends = self.once(file, switch, only)
        for _ in range(5):
            again = [name for name, (end, said) in ends.items() if end != "passed" and any(text in said for text in AGAIN)]
            if not again:
                break
            ends.update(self.once(file, switch, again))
        return ends

    def once(self, file, switch, only):
        env = clean_env(**switch, MUSTER_PROGRAM=MUSTER, MUSTER_LIBRARY=BUILD / "libmuster.so", PYTORCH_TESTS=1, OMP_NUM_THREADS=1)
        env["PATH"] = f"{self.site.python.parent}:{os.environ['PATH']}:/usr/sbin"
        words = ["-k", " or ".join(only)] if only else []
        done = subprocess.run([self.site.python, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short", *words, file], env=env,
                              cwd=self.directory, text=True, capture_output=True, timeout=20 * PATIENCE, stdin=subprocess.DEVNULL)
        parts = dict(re.findall(r"^_+ \w+\.(test_\w+) _+$(.*?)(?=^_{3,} |^={3,} |\Z)", done.stdout, re.M | re.S))
        found = re.findall(r"::(test_\w+) (PASSED|FAILED|ERROR|SKIPPED)", done.stdout)
        assert found, done.stdout[-3000:] + done.stderr[-2000:]
        return {name: (end.lower(), parts.get(name, "")) for name, end in found}
