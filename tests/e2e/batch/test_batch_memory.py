"""muster batch --memory-limit: the memory of an order's whole tree, counted by a cgroup or added up."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import able
import pytest
from tree import MUSTER, clean_env

CHILDREN, EACH = 4, 40  # processes, MiB
EATER = f"""
import os, sys, time
def child(go, told):
    memory = bytearray({EACH} << 20)
    for i in range(0, len(memory), 4096):
        memory[i] = 1
    os.write(told, b"x")
    os.read(go, 1)
    os._exit(0)
(go, start), (heard, told) = os.pipe(), os.pipe()
children = []
for _ in range({CHILDREN}):
    children.append(os.fork() or child(go, told))
have = sum(len(os.read(heard, 1)) for _ in children)
time.sleep({{"stay": 1000, "linger": 4, "leave": 0}}[sys.argv[1]])
os.write(start, b"x" * have)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
sys.exit(137 if any(codes) else 0)
"""


@pytest.fixture(params=["ourselves", "nobody"])
def batch(request):
    """As root there may be a cgroup; a user without rights has none."""
    before = able.NOBODY if request.param == "nobody" else ()
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    if before:
        able.need_root("to become another user")
        able.need(*before, MUSTER, "--version")
        able.need(*before, python, "--version")

    def go(*args, end="leave"):
        result = pathlib.Path(folder, "r.jsonl")
        done = subprocess.run([*before, MUSTER, "batch", "-o", result, *args, f"{python} eat.py {end}", ":::", "1"],
                              capture_output=True, text=True, env=clean_env(), cwd=folder, timeout=120)
        return done, json.loads(result.read_text().splitlines()[-1])

    with tempfile.TemporaryDirectory() as folder:  # not tmp_path, which only we may enter
        os.chmod(folder, 0o777)
        pathlib.Path(folder, "eat.py").write_text(EATER)
        yield go


def test_a_tree_over_its_limit_is_killed(batch):
    done, line = batch("--memory-limit=100M", end="stay")
    assert (done.returncode, line["reason"]) == (1, "oom"), done.stderr
    assert "out of memory" in done.stderr


def test_the_peak_is_that_of_the_whole_tree(batch):
    done, line = batch("--memory-limit=max", end="linger")  # long enough to be looked at
    assert line["reason"] == "ok", done.stderr
    assert CHILDREN * EACH * 1024 <= line["memory_peak_kb"] < 2 * CHILDREN * EACH * 1024
    assert line["maxrss_kb"] < 2 * EACH * 1024


def test_why_there_is_no_cgroup_is_told_once(batch):
    done, _ = batch("--memory-limit=1G")
    assert done.returncode == 0 and done.stderr.count("no cgroup for the memory of orders: ") <= 1


def test_a_limit_that_is_none_is_refused():
    done = subprocess.run([MUSTER, "batch", "--memory-limit=much", "true", ":::", "1"], capture_output=True, text=True)
    assert done.returncode == 2 and "'much' is not max or a size" in done.stderr


def test_orders_that_need_most_of_the_memory_do_not_run_together(tmp_path):
    needed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") * 6 // 10
    orders = tmp_path / "orders"
    orders.write_text("".join(json.dumps({"id": str(n), "memory": needed, "cmd": "mkdir here && sleep 0.2 && rmdir here"}) + "\n" for n in range(3)))
    done = subprocess.run([MUSTER, "batch", "--jobs=3", "--smt=share", orders], capture_output=True, text=True, env=clean_env(), cwd=tmp_path,
                          timeout=120)
    assert done.returncode == 0, done.stderr
