"""muster batch --pipe: standard input in blocks. What it prints for lines of parallel's manual is in test_manuals.py."""

import json
import os
import resource
import signal
import subprocess

import pytest
from tree import MUSTER, MUSTER_SH, SANITIZER, clean_env


@pytest.fixture
def pipe(tmp_path):
    def go(*args, text="", **more):
        return subprocess.run([MUSTER, "batch", "--pipe", *args], input=text, capture_output=True, text=True, cwd=tmp_path,
                              env=clean_env(), timeout=120, **more)
    return go


def numbers(n):
    return "".join(f"{i}\n" for i in range(n))


@pytest.mark.skipif(bool(SANITIZER), reason="the sanitizer needs more memory than that")
def test_memory_does_not_grow_with_the_input(tmp_path):
    """200 MB pass through with 64 MB of address space for data; the files of blocks are gone at the end."""
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = subprocess.run(f"head -c 200000000 /dev/zero | tr '\\0' '\\n' | {MUSTER_SH} batch -q --pipe -j2 --block 4M wc -c", shell=True,
                          capture_output=True, text=True, env=clean_env() | {"TMPDIR": str(temporary)}, preexec_fn=limit, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sum(map(int, done.stdout.split())) == 200000000
    assert list(temporary.iterdir()) == []


def test_a_block_is_read_again_by_the_next_attempt(pipe, tmp_path):
    done = pipe("-k", "-N2", "--retries=1", "--retry-delay=1ms", "-o", "r.jsonl",
                "cat; [ -e seen{#} ] || { touch seen{#}; exit 1; }", text=numbers(3))
    assert done.returncode == 0
    assert done.stdout == "0\n1\n0\n1\n2\n2\n"
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()[1:]]
    assert sorted((line["id"], line["attempt"], line["reason"]) for line in lines) == [
        ("block-1", 1, "exit"), ("block-1", 2, "ok"), ("block-2", 1, "exit"), ("block-2", 2, "ok")]
    assert len({line["hash"] for line in lines}) == 2


def test_a_command_need_not_read_its_block(pipe):
    done = pipe("-k", "--block=100k", "head -n1", text=numbers(100000))
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "0"
    assert len(done.stdout.splitlines()) == 6


def test_failures_are_named_by_their_block(pipe, tmp_path):
    done = pipe("-k", "-N1", "--joblog=log", "--exit-code=parallel", "read x; exit $x", text="0\n3\n0\n4\n")
    assert done.returncode == 2
    assert "block-2: exit code 3" in done.stderr and "block-4: exit code 4" in done.stderr
    rows = sorted(line.split("\t") for line in (tmp_path / "log").read_text().splitlines()[1:])
    assert [(row[0], row[6]) for row in rows] == [("1", "0"), ("2", "3"), ("3", "0"), ("4", "4")]


def test_records_run_as_they_come_and_an_interrupt_ends_the_reading(tmp_path):
    batch = subprocess.Popen([MUSTER, "batch", "--pipe", "-N1", "--line-buffer", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=clean_env())
    batch.stdin.write("first\n")
    batch.stdin.flush()
    assert batch.stdout.readline() == "first\n"  # though the input has not ended
    os.kill(batch.pid, signal.SIGINT)
    assert batch.wait(timeout=60) == 130  # stdin is still open
    assert "standard input not read to its end" in batch.communicate()[1]


def test_outputs_go_to_files_by_the_number_of_the_block(pipe, tmp_path):
    assert pipe("-q", "-N2", "--results=out/{#}.txt", "cat", text=numbers(3)).returncode == 0
    assert [(tmp_path / "out" / f"{n}.txt").read_text() for n in (1, 2)] == ["0\n1\n", "2\n"]


@pytest.mark.parametrize("args, word", [
    (["--ab", "A=cat", "B=cat"], "--ab"),
    (["-r", "3", "cat"], "--runs"),
    (["--resume", "-o", "r", "cat"], "--resume"),
    (["-0", "cat"], "--recend"),
    (["--block=0", "cat"], "--block"),
    (["--recend=(", "--regexp", "cat"], "'('"),
    (["-N2", "--recend=", "cat"], "records"),
    (["cat", ":::", "a"], ":::"),
    (["--round-robin", "cat"], "not supported"),
    (["--pipe-part", "cat"], "--pipe < FILE"),
    ([], "command"),
])
def test_what_does_not_work_with_it_says_so(pipe, args, word):
    done = pipe(*args, text="1\n")
    assert done.returncode == 2
    assert word in done.stderr
    assert done.stdout == ""


def test_its_options_need_it(tmp_path):
    done = subprocess.run([MUSTER, "batch", "--recend=x", "echo", ":::", "1"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "--pipe" in done.stderr
