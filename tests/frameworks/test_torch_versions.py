"""Other versions of PyTorch: the newest one, and the two oldest of the last two years. They come with CUDA, of which nothing is used: 5 GB each."""

import json
import subprocess

import pytest

from frameworks import PATIENCE, Environment, said
from store_server import our_server
from tree import MUSTER
from waits import wait_for

VERSIONS = ("2.15.0", "2.7.0", "2.6.0")
OF_NCCL_ALONE = ("2.6", "2.7")  # their flight recorders; there is no device here


@pytest.fixture(scope="module", params=VERSIONS)
def site(request):
    made = Environment(f"torch-{request.param}", "numpy", torch=f"torch=={request.param}")
    assert made.version("torch").partition("+")[0] == request.param
    return made


STORE = """
import sys
from datetime import timedelta
from torch.distributed import TCPStore
for libuv in (True, False):
    s = TCPStore(sys.argv[1], int(sys.argv[2]), is_master=False, use_libuv=libuv, timeout=timedelta(seconds=30))
    s.set("a", "1"); assert s.get("a") == b"1"
    s.append("a", "2"); assert s.get("a") == b"12"
    assert [s.add("n", 5), s.add("n", -7)] == [5, -2]
    assert s.compare_set("c", "", "x") == b"x" and s.compare_set("c", "x", "y") == b"y" and s.compare_set("c", "x", "z") == b"y"
    assert s.check(["a", "n"]) and not s.check(["none"])
    s.wait(["a", "c"])
    s.multi_set(["p", "q"], ["1", "2"]); assert s.multi_get(["p", "q"]) == [b"1", b"2"]
    n = s.num_keys(); assert s.delete_key("p") and s.num_keys() == n - 1
    for key in ("a", "n", "c", "q"): s.delete_key(key)
    try:
        s.wait(["none"], timedelta(milliseconds=100)); sys.exit("no time-out")
    except RuntimeError:
        pass
"""


def test_its_client_and_our_store(site, tmp_path):
    with our_server() as (_, host, port):
        done = site.call(tmp_path, "python", "-c", STORE, host, str(port))
    assert done.returncode == 0, done.stderr[-2000:]


TRAIN = """
import os, saw, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor(float(saw.rank + 1))
dist.all_reduce(total)
saw.step(1)
dist.barrier()
saw.end("torch", total)
"""


@pytest.mark.parametrize("options", [[], ["--preload=torch"]], ids=["", "preload"])
def test_it_trains_through_a_kill(site, tmp_path, options):
    site.prepare(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    done = site.call(tmp_path, MUSTER, "run", "--nproc-per-node=2", "--max-restarts=1", *options, "train.py", KILL=1)
    assert done.returncode == 0, done.stderr[-3000:]
    assert said(done) == [(rank, 2, 1, "muster", f"torch {site.version('torch')}", 3.0) for rank in (0, 1)]


RECORDED = """
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main(): raise KeyError("boom")
main()
"""


@pytest.mark.parametrize("source", [RECORDED, "raise KeyError('boom')"], ids=["record", "plain"])
def test_its_error_files_are_read(site, tmp_path, source):
    (tmp_path / "boom.py").write_text(source)
    done = site.call(tmp_path, MUSTER, "run", "--nproc-per-node=1", f"--log-dir={tmp_path}/log", "boom.py")
    assert done.returncode == 1
    [file] = (tmp_path / "log").rglob("error.json")
    message = json.loads(file.read_text())["message"]
    assert "KeyError: 'boom'" in message["message"] and message["extraInfo"]["timestamp"].isdigit()
    assert "KeyError: 'boom'" in done.stderr


HANG = """
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
tensor = torch.ones(4)
for _ in range(3): dist.all_reduce(tensor)
open("ready." + os.environ["RANK"], "w").close()
time.sleep(1000) if os.environ["RANK"] == "1" else dist.all_reduce(tensor)
"""


def test_its_flight_recorder_names_who_did_not_come(site, tmp_path):
    (tmp_path / "hang.py").write_text(HANG)
    env = site.env(tmp_path, XDG_RUNTIME_DIR=tmp_path)
    with subprocess.Popen([MUSTER, "run", "--nproc-per-node=2", "--flight-recorder", "--rdzv-id=old", "hang.py"], cwd=tmp_path, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
        try:
            wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 2 or job.poll() is not None, "the workers", PATIENCE)

            def ask():
                return subprocess.run([MUSTER, "collectives", "--patience=1", "--json", "old"], env=env, cwd=tmp_path, text=True,
                                      capture_output=True, timeout=PATIENCE)

            def findings():
                done = ask()
                assert done.returncode == 0, done.stderr
                return [finding for finding in json.loads(done.stdout)["findings"] if not finding["early"]]

            if site.version("torch").startswith(OF_NCCL_ALONE):
                assert "PyTorch's worker server gives no flight record" in ask().stderr
                return
            found = wait_for(findings, "a collective that waits", PATIENCE)
        finally:
            job.terminate()
            job.communicate(timeout=PATIENCE)
    assert (found[0]["operation"], found[0]["culprits"]) == ("all_reduce", [1]), found
