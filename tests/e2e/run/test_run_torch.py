"""Unmodified PyTorch programs under muster."""

import json
import re
import subprocess
import sys

from able import need_own_name
from tree import clean_env

TIMEOUT = 300


def test_gloo_all_reduce_works_through_twenty_restarts_in_a_row(muster, place):
    """torchrun 2.13 manages about half of its restarts: the new group meets the old one's keys. (torch is imported
    once: 84 times would take minutes.)"""
    script = place("train.py", """
        import os, sys, torch, torch.distributed as dist
        attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        dist.init_process_group("gloo")
        x = torch.ones(1) * dist.get_rank()
        dist.all_reduce(x)
        assert x.item() == 6, x
        if dist.get_rank() == 0:
            print("sum", int(x.item()), "attempt", attempt, flush=True)
        dist.barrier()
        if attempt < 20:
            # Another rank each time, and each in its own way.
            if dist.get_rank() == attempt % 4:
                os._exit(1) if attempt % 2 else os.kill(os.getpid(), 9)
            import time; time.sleep(600)
        dist.destroy_process_group()
        """)
    job = muster("run", "--preload=torch.distributed", "--nproc-per-node=4", "--max-restarts=20", "--shutdown-timeout=1", script,
                 timeout=TIMEOUT)
    assert job.returncode == 0, job.stderr
    assert job.stdout.splitlines() == [f"sum 6 attempt {i}" for i in range(21)]


def test_record_decorator_gives_the_traceback_to_the_report(muster, place, tmp_path):
    script = place("train.py", """
        from torch.distributed.elastic.multiprocessing.errors import record
        @record
        def main():
            raise ValueError("a boom of its own")
        main()
        """)
    job = muster("run", "--log-dir", tmp_path / "logs", script)
    assert job.returncode == 1
    assert "a boom of its own" in job.stderr and "train.py" in job.stderr
    (error,) = (tmp_path / "logs").glob("*/attempt_0/0/error.json")
    assert "boom" in json.loads(error.read_text())["message"]["message"]


def table_of(text):
    """The failures of torchrun's table: exit code and error by rank."""
    ranks = [int(rank) for rank in re.findall(r"rank      : (\d+) ", text)]
    codes = [int(code) for code in re.findall(r"exitcode  : (-?\d+) ", text)]
    errors = [("boom" in part) for part in text.split("exitcode  :")[1:]]
    return dict(zip(ranks, zip(codes, errors)))


def test_a_worker_that_was_stopped_is_a_failure_as_with_torchrun(muster, place, tmp_path):
    """Rank 1 has left an error when rank 0 fails, rank 2 has not; both run on until they are stopped. Rank 3 is done."""
    need_own_name()
    worker = place("worker.sh", """
        [ $RANK = 3 ] && echo $$ >"$1.3" && exit 0
        [ $RANK = 1 ] && echo '{"message": {"message": "boom of 1", "extraInfo": {"timestamp": "1"}}}' >"$TORCHELASTIC_ERROR_FILE"
        touch "$1.$RANK"
        while [ $RANK = 0 ]; do
            [ -e "$1.1" ] && [ -e "$1.2" ] && [ -s "$1.3" ] && ! kill -0 $(cat "$1.3") 2>/dev/null && exit 7
            sleep 0.01
        done
        exec sleep 600
        """)
    command = ["--nproc-per-node=4", "--no-python", "bash", worker]
    ours = muster("run", "--report=torchrun", *command, tmp_path / "ours")
    theirs = subprocess.run([sys.executable, "-m", "torch.distributed.run", *command, str(tmp_path / "theirs")], env=clean_env(),
                            cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT)
    assert table_of(ours.stderr) == table_of(theirs.stderr) == {0: (7, False), 1: (-15, True), 2: (-15, False)}


def test_environment_equals_that_of_torchrun(muster, place, tmp_path):
    """Every variable torchrun gives its workers, with the same value where it is not random."""
    need_own_name()
    script = place("env.py", """
        import json, os, sys
        json.dump(dict(os.environ), open(f"{sys.argv[1]}.{os.environ['RANK']}", "w"))
        """)
    ours = muster("run", "--nproc-per-node=2", "--role=train", "--max-restarts=3", script, tmp_path / "ours")
    assert ours.returncode == 0, ours.stderr
    theirs = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--role=train", "--max-restarts=3",
                             str(script), str(tmp_path / "theirs")], env=clean_env(), capture_output=True, text=True, timeout=TIMEOUT)
    assert theirs.returncode == 0, theirs.stderr
    random = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "_", "MASTER_ADDR", "TORCHELASTIC_USE_AGENT_STORE"}
    for rank in range(2):
        a = json.load(open(tmp_path / f"ours.{rank}"))
        b = json.load(open(tmp_path / f"theirs.{rank}"))
        ours_only = {name for name in a if name not in b and not name.startswith("MUSTER_")}
        # torchrun itself, being Python with torch loaded, adds what its own libraries set.
        assert ours_only == set()
        assert {k: v for k, v in b.items() if k not in random and k in a} == {k: a[k] for k in b if k not in random and k in a}
        missing = {name for name in b if name not in a}
        assert not any(name.startswith(("TORCH", "RANK", "LOCAL", "WORLD", "ROLE", "GROUP", "MASTER", "OMP")) for name in missing), missing
