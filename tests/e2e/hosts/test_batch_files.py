"""muster batch on many hosts with directories of their own: files move with orders, and each comes back once."""

import contextlib
import os
import resource
import signal
import subprocess

import pytest

from batch_files import results
from ports import Port
from process import Process
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

UNCLEAN = "glibc.malloc.perturb=85"  # memory that nobody wrote is never zero by chance


class Far:
    """A host that coordinates, in the directory `home`, and others, each in a directory of its own."""

    def __init__(self, directory):
        self.directory, self.port, self.processes = directory, Port(), []
        self.home = self.add("home")

    def add(self, name):
        (self.directory / name).mkdir()
        return self.directory / name

    def start(self, name, *args, conf="keep_alive_interval=5", preexec_fn=None):
        log = self.directory / f"{name}.log"
        popen = subprocess.Popen(
            [MUSTER, "batch", f"--rdzv-endpoint={self.port.endpoint}", f"--rdzv-conf={conf}", "-j1", "-o", self.home / "r.jsonl", *map(str, args)],
            cwd=self.directory / name, env=clean_env(MUSTER_TOKEN="secret", GLIBC_TUNABLES=UNCLEAN), stdin=subprocess.DEVNULL, stdout=open(log, "wb"),
            stderr=subprocess.STDOUT, preexec_fn=preexec_fn)
        self.processes.append(Process(name, popen, log))
        return self.processes[-1]

    def coordinate(self, *args):
        """The first one; the others come when it coordinates."""
        host = self.start("home", *args)
        wait_for(lambda: (self.home / "r.jsonl").exists(), "a coordinator")
        return host

    def lines(self):
        return results(self.home / "r.jsonl")

    def close(self):
        for process in self.processes:
            if process.running():
                process.kill()
                process.wait()
        self.port.close()


@pytest.fixture
def far(tmp_path):
    with contextlib.closing(Far(tmp_path)) as hosts:
        yield hosts


def listed(directory):
    """All files beneath it but the result file."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file() and path.name != "r.jsonl")


def all_at_once(far, count):
    """The beginning of an order that waits until so many run."""
    return f"echo >>{far.directory}/running; until test $(wc -l <{far.directory}/running) -ge {count}; do sleep 0.05; done; "


def away(*members):
    """An order that only a host with the feature takes."""
    return '{"features": ["far"], ' + ", ".join(members) + "}\n"


def test_files_go_to_the_host_and_come_back(far):
    for name in "ab":
        (far.home / f"{name}.in").write_text(f"this is {name}\n")
    (far.home / "tool").write_text("#!/bin/sh\ntr a-z A-Z\n")
    (far.home / "tool").chmod(0o755)
    far.add("other")
    words = ["--transferfile", "tool", "--transfer", "--return", "out/{.}.out", "--cleanup",
             all_at_once(far, 2) + "mkdir -p out; ./tool <{} >out/{.}.out; pwd >>" + str(far.directory / "where"), ":::", "a.in", "b.in"]
    hosts = [far.coordinate(*words), far.start("other", *words)]
    assert [host.wait() for host in hosts] == [0, 0]
    assert sorted((far.directory / "where").read_text().split()) == [str(far.home), str(far.directory / "other")]
    assert [(far.home / f"out/{name}.out").read_text() for name in "ab"] == ["THIS IS A\n", "THIS IS B\n"]
    # The originals are kept, the other host keeps nothing.
    assert listed(far.home) == ["a.in", "b.in", "out/a.out", "out/b.out", "tool"]
    assert listed(far.directory / "other") == []
    assert [line["reason"] for line in far.lines()] == ["ok", "ok"]


def test_without_cleanup_the_files_stay_and_keep_their_modes(far):
    (far.home / "deep").mkdir()
    (far.home / "deep/tool").write_text("#!/bin/sh\ncp $0 made\nchmod 750 made\n: >empty\n")
    (far.home / "deep/tool").chmod(0o751)
    (far.directory / "list").write_text(away('"cmd": "./deep/tool"', '"transfer": "deep/tool"', '"return": ["made", "empty"]'))
    far.add("other")
    far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), far.processes[0].wait()] == [0, 0]
    for directory, modes in [(far.directory / "other", {"deep/tool": 0o751, "made": 0o750, "empty": 0o644}),
                             (far.home, {"deep/tool": 0o751, "made": 0o750, "empty": 0o644})]:
        assert {name: (directory / name).stat().st_mode & 0o777 for name in listed(directory)} == modes


def test_a_large_file_is_the_same_on_the_other_side_and_is_sent_once(far):
    data = os.urandom(1 << 20) * 20 + b"end"
    (far.home / "big").write_bytes(data)
    (far.directory / "list").write_text("".join(
        away(f'"id": "{n}"', f'"cmd": "cat big big >back{n}; stat -c %i big >>{far.directory}/inodes"', '"transfer": "big"', f'"return": "back{n}"')
        for n in range(3)))
    far.add("other")
    far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), far.processes[0].wait()] == [0, 0]
    assert all((far.home / f"back{n}").read_bytes() == data * 2 for n in range(3))
    assert len(set((far.directory / "inodes").read_text().split())) == 1


@pytest.mark.parametrize("members, told", [
    (['"transfer": "missing"'], "the transfer of missing: No such file or directory"),
    (['"transfer": "pipe"'], "the transfer of pipe: it is neither a regular file nor a directory"),
    (['"transfer": "tree"'], "the transfer of tree/pipe: it is neither a regular file nor a directory"),
    (['"transfer": "file"'], "the transfer of file: write file: something else than a file is there"),
    (['"transfer": "directory"'], "the transfer of directory: something else than a directory is there"),
    (['"return": "file"'], "the return of file: it is a directory, and only files return"),
    (['"return": "missing"'], "the return of missing: No such file or directory"),
    (['"return": "link"'], "the return of link: "),
    (['"transfer": "link/file"'], "the transfer of link/file: "),
])
def test_an_order_whose_files_cannot_move_fails_and_says_why(far, members, told):
    for name in ("directory", "link", "tree"):
        (far.home / name).mkdir()
    for name in ("file", "link/file"):
        (far.home / name).touch()
    for name in ("pipe", "tree/pipe"):
        os.mkfifo(far.home / name)
    (far.add("other") / "link").symlink_to(far.directory)
    (far.directory / "other/file").mkdir()
    (far.directory / "other/directory").touch()
    (far.directory / "list").write_text(away('"id": "bad"', '"cmd": "true"', *members) + away('"id": "good"', '"cmd": "true"'))
    first = far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), first.wait()] == [1, 1]
    by_id = {line["id"]: line for line in far.lines()}
    assert by_id["good"]["reason"] == "ok" and by_id["bad"]["reason"] == "files" and told in by_id["bad"]["missing"]["files"]
    first.says(told)
    assert not (far.directory / "file").exists()


def make_tree(top):
    """Files, links and directories in directories, of which some are empty or have strange names."""
    for path in ("a/b/c", "empty", "a/blank and \n newline"):
        (top / path).mkdir(parents=True)
    for number in range(100):
        (top / f"a/b/{number}").write_text(f"this is {number}\n")
    (top / "a/b/c/big").write_bytes(os.urandom(1 << 20) * 3)
    (top / "a/b/c/next").write_bytes(b"next" * 300000)
    (top / "a/tool").write_text("#!/bin/sh\n")
    (top / "a/tool").chmod(0o755)
    (top / "a/link").symlink_to("b/7")
    (top / "a/nowhere").symlink_to("/nowhere/at/all")
    (top / "a/up").symlink_to("..")


def described(top):
    """{path: what is there}"""
    def one(path):
        if path.is_symlink():
            return os.readlink(path)
        return "directory" if path.is_dir() else (path.stat().st_mode & 0o777, path.read_bytes())
    return {str(path.relative_to(top)): one(path) for path in top.rglob("*")}


@pytest.mark.parametrize("cleanup", [False, True])
def test_a_directory_moves_with_all_that_is_in_it(far, cleanup):
    make_tree(far.home / "deep/tree")
    (far.directory / "list").write_text(away(
        f'"cmd": "cp -a deep/tree {far.directory}/seen; echo >deep/tree/a/made"', '"transfer": "deep/tree"', f'"cleanup": {"true" if cleanup else "false"}'))
    far.add("other")
    far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), far.processes[0].wait()] == [0, 0]
    assert described(far.directory / "seen") == described(far.home / "deep/tree")
    # What the order made stays, with the directories above it.
    assert listed(far.directory / "other") == (["deep/tree/a/made"] if cleanup else sorted([*listed(far.home), "deep/tree/a/made"]))
    left = {path.name for path in (far.directory / "other/deep/tree").iterdir()}
    assert left == ({"a"} if cleanup else {"a", "empty"})


def test_a_directory_goes_into_one_that_is_there_and_leads_nowhere_else(far):
    (far.home / "tree/sub").mkdir(parents=True)
    (far.home / "tree/sub/file").write_text("new\n")
    (far.home / "tree/link").symlink_to("new")
    (far.directory / "list").write_text(away('"id": "good"', '"cmd": "cat tree/*/*"', '"transfer": "tree"'))
    other = far.add("other")
    (other / "tree/sub").mkdir(parents=True)
    (other / "tree/sub/file").write_text("old\n")
    (other / "tree/sub/own").write_text("own\n")
    (other / "tree/link").symlink_to("old")
    first = far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), first.wait()] == [0, 0]
    assert "new\nown\n" in first.text() and os.readlink(other / "tree/link") == "new"


def test_a_directory_is_not_written_through_a_link(far):
    (far.home / "tree/sub").mkdir(parents=True)
    (far.home / "tree/sub/file").touch()
    (far.directory / "list").write_text(away('"cmd": "true"', '"transfer": "tree"'))
    (far.add("other") / "tree").mkdir()
    outside = far.add("outside")
    (far.directory / "other/tree/sub").symlink_to(outside)
    first = far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), first.wait()] == [1, 1]
    first.says("the transfer of tree/sub: something else than a directory is there")
    assert not list(outside.iterdir())


def test_an_order_that_fails_returns_what_it_made(far):
    (far.directory / "list").write_text(away('"cmd": "echo log >log; exit 3"', '"return": ["log", "missing"]'))
    far.add("other")
    far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), far.processes[0].wait()] == [1, 1]
    assert [(line["reason"], line["exit"]) for line in far.lines()] == [("exit", 3)]
    assert (far.home / "log").read_text() == "log\n"


@pytest.mark.parametrize("command", ["head -c 1000000 /dev/zero >big", "echo x >big; head -c 1000000 /dev/zero"])
def test_what_a_host_sends_of_one_order_has_a_limit(far, command):
    (far.directory / "list").write_text(away('"id": "much"', f'"cmd": "{command}"', '"return": "big"') +
                                        away('"id": "fits"', '"cmd": "head -c 200000 /dev/zero >fits"', '"return": "fits"'))
    far.add("other")
    limit = "--return-limit=300K"
    first = far.coordinate(limit, far.directory / "list")
    assert [far.start("other", limit, "--features=far", far.directory / "list").wait(), first.wait()] == [1, 1]
    by_id = {line["id"]: line for line in far.lines()}
    assert by_id["fits"]["reason"] == "ok" and (far.home / "fits").stat().st_size == 200000
    assert by_id["much"]["missing"]["files"] == "what it sends is more than --return-limit=307200", by_id["much"]
    assert by_id["much"]["reason"] == "files" and not (far.home / "big").exists()


def test_a_full_disk_at_the_host_fails_the_order(far):
    """A limit on the size of files stands for it."""
    (far.home / "big").write_bytes(bytes(8 << 20))
    (far.directory / "list").write_text(away('"id": "bad"', '"cmd": "true"', '"transfer": "big"') + away('"id": "good"', '"cmd": "true"'))
    far.add("other")
    first = far.coordinate(far.directory / "list")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
    assert [far.start("other", "--features=far", far.directory / "list", preexec_fn=limit).wait(), first.wait()] == [1, 1]
    by_id = {line["id"]: line for line in far.lines()}
    assert by_id["good"]["reason"] == "ok" and "the transfer of big: File too large" in by_id["bad"]["missing"]["files"]
    assert listed(far.directory / "other") == []


def test_cleanup_keeps_what_was_there_before(far):
    (far.home / "in").write_text("new\n")
    (far.add("other") / "in").write_text("old\n")
    (far.directory / "list").write_text(away('"cmd": "cp in out"', '"transfer": "in"', '"return": "out"', '"cleanup": true'))
    far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), far.processes[0].wait()] == [0, 0]
    assert (far.home / "out").read_text() == "new\n"
    assert listed(far.directory / "other") == ["in"]


def test_hosts_that_share_the_directory_copy_and_remove_nothing(far):
    (far.home / "in").write_text("text\n")
    inode = (far.home / "in").stat().st_ino
    (far.directory / "list").write_text(away('"cmd": "cp in out"', '"transfer": "in"', '"return": "out"', '"cleanup": true'))
    far.coordinate(far.directory / "list")
    assert [far.start("home", "--features=far", far.directory / "list").wait(), far.processes[0].wait()] == [0, 0]
    assert (far.home / "in").stat().st_ino == inode and listed(far.home) == ["in", "out"]


def test_the_files_of_a_host_that_is_lost_go_to_the_next_one(far):
    data = os.urandom(1 << 20) * 30
    (far.home / "big").write_bytes(data)
    gate = f"until test -e {far.directory}/go; do sleep 0.05; done"
    (far.directory / "list").write_text(away(f'"cmd": "{gate}; cp big back"', '"transfer": "big"', '"return": "back"', '"cleanup": true'))
    first = far.coordinate(far.directory / "list")
    victim = far.add("victim")
    lost = far.start("victim", "--features=far", far.directory / "list")
    wait_for(lambda: list(victim.iterdir()), "a file to be sent")
    lost.kill()
    (far.directory / "go").touch()
    far.add("other")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), first.wait()] == [0, 0]
    assert (far.home / "back").read_bytes() == data and listed(far.home) == ["back", "big"]
    assert [line["reason"] for line in far.lines()].count("ok") == 1


@pytest.mark.parametrize("words, told", [
    (["--transferfile", "/etc/passwd", "true", ":::", "a"], "beneath the working directory"),
    (["--transfer", "true", ":::", "../a"], "beneath the working directory"),
    (["--return", "/x/./../a", "true", ":::", "a"], "beneath the working directory"),
    (["--trc", "{}.out", "list"], "the arguments of a command"),
])
def test_paths_that_lead_elsewhere_are_refused(muster, tmp_path, words, told):
    (tmp_path / "list").write_text("true\n")
    done = subprocess.run([MUSTER, "batch", *words], cwd=tmp_path, env=clean_env(), timeout=DEADLINE, capture_output=True, text=True)
    assert done.returncode == 2 and told in done.stderr


def test_behind_a_dot_begins_what_the_host_calls_it(far):
    store = far.add("store")
    (store / "sub").mkdir()
    (store / "sub/in").write_text("far away\n")
    (far.directory / "list").write_text(away('"cmd": "cp sub/in sub/out"', f'"transfer": "{store}/./sub/in"', f'"return": "{store}/./sub/out"'))
    far.add("other")
    far.coordinate(far.directory / "list")
    assert [far.start("other", "--features=far", far.directory / "list").wait(), far.processes[0].wait()] == [0, 0]
    assert (store / "sub/out").read_text() == "far away\n" and listed(far.home) == []
    assert listed(far.directory / "other") == ["sub/in", "sub/out"]


def test_on_one_host_nothing_moves(tmp_path):
    (tmp_path / "in").write_text("text\n")
    done = subprocess.run([MUSTER, "batch", "--trc", "{}.out", "cp {} {}.out", ":::", "in"], cwd=tmp_path, env=clean_env(), timeout=DEADLINE,
                          capture_output=True, text=True)
    assert done.returncode == 0 and listed(tmp_path) == ["in", "in.out"], done.stderr
