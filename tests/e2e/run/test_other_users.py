"""What other users of the host can do to a job: nothing. The job is root's, the other user is nobody."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

import able
from page import Page
from tree import MUSTER, clean_env
from waits import DEADLINE, read_line, wait_for


@pytest.fixture
def theirs():
    """A directory of the other user in one of root's that they may enter."""
    able.need_root("another user's directories are needed")
    able.need(*able.NOBODY, "true")
    with tempfile.TemporaryDirectory(prefix="m") as home:
        os.chmod(home, 0o755)
        directory = pathlib.Path(home, "theirs")
        directory.mkdir()
        os.chown(directory, 65534, 65534)
        yield directory


@pytest.fixture
def victim(tmp_path):
    directory = tmp_path / "victim"
    directory.mkdir(mode=0o700)
    for name in ("one", "two"):
        (directory / name).write_text("precious")
    return directory


def as_nobody(script, *args, **more):
    return subprocess.run([*able.NOBODY, "bash", "-c", script, "bash", *map(str, args)], text=True, capture_output=True, timeout=DEADLINE,
                          **more)


def texts(directory):
    return {path.name: path.read_text() for path in directory.iterdir()}


@pytest.mark.parametrize("variable", ["XDG_RUNTIME_DIR", "TMPDIR"])
def test_no_file_is_removed_that_another_user_makes_the_name_of_the_job_directory_lead_to(start, theirs, victim, tmp_path, variable):
    before = texts(victim)
    job = start("run", "bash", "-c", "touch started; while [ ! -e go ]; do sleep 0.01; done", env=clean_env(**{variable: str(theirs)}))
    wait_for(lambda: (tmp_path / "started").exists() or job.poll() is not None, "the worker")
    # What the other user finds there they replace by links of the same names.
    attack = as_nobody("""
cd "$1" && for dir in muster*; do
	[ -d "$dir" ] || continue
	mv "$dir" moved && mkdir "$dir"
	for name in $(grep -ao "$dir/[0-9]*-[0-9a-f]*" /proc/net/unix | sort -u); do ln -s "$2" "$name"; done
done""", theirs, victim)
    assert attack.returncode == 0, attack.stderr
    (tmp_path / "go").touch()
    assert job.wait(timeout=DEADLINE) == 0
    assert texts(victim) == before
    assert not list(theirs.iterdir())


REPLACE = """
cd "$1" && run=$(echo logs/*_*) && mv "$run" logs/moved && mkdir -p "$run/attempt_1/0" &&
ln -s "$2/one" "$run/attempt_1/0/stdout.log" && ln -s "$2/two" "$run/report.json"
"""


def write_to_logs_of(start, theirs, tmp_path, *options):
    (theirs / "logs").mkdir()
    os.chown(theirs / "logs", 65534, 65534)
    script = "echo PAYLOAD; touch started; while [ ! -e go ]; do sleep 0.01; done; exit 3"
    job = start("run", f"--log-dir={theirs}/logs", "--redirects=3", "--max-restarts=1", *options, "bash", "-c", script)
    wait_for(lambda: (tmp_path / "started").exists() or job.poll() is not None, "the worker")
    return job


def test_root_writes_no_log_below_a_directory_that_another_user_can_replace(start, theirs, tmp_path):
    job = write_to_logs_of(start, theirs, tmp_path)
    error = job.communicate(timeout=DEADLINE)[1]
    assert job.returncode == 125
    assert error.startswith(f"muster: error: --log-dir: user 65534 owns {theirs} and can replace what is in it; ")
    assert "--shared-log-dir" in error
    assert not list((theirs / "logs").iterdir())


def test_no_log_goes_where_another_user_makes_the_log_directory_lead_to(start, theirs, victim, tmp_path):
    before = texts(victim)
    job = write_to_logs_of(start, theirs, tmp_path, "--shared-log-dir")
    attack = as_nobody(REPLACE, theirs, victim)
    assert attack.returncode == 0, attack.stderr
    (tmp_path / "go").touch()
    job.communicate(timeout=DEADLINE)
    assert job.returncode == 3
    assert texts(victim) == before
    moved = theirs / "logs" / "moved"
    assert [(moved / f"attempt_{i}" / "0" / "stdout.log").read_text() for i in range(2)] == ["PAYLOAD\n"] * 2
    assert (moved / "report.json").is_file()


def test_a_log_directory_that_is_sticky_will_do(muster, theirs):
    logs = theirs.parent / "logs"
    logs.mkdir()
    logs.chmod(0o1777)
    assert muster("run", f"--log-dir={logs}", "--redirects=3", "true").returncode == 0
    logs.chmod(0o777)
    assert "chmod +t" in muster("run", f"--log-dir={logs}", "--redirects=3", "true").stderr
    shutil.rmtree(logs)


@pytest.fixture
def program(theirs):
    """The program where the other user can run it."""
    return shutil.copy(MUSTER, theirs.parent / "muster")


def kv(program, address, *words, before=able.NOBODY):
    """`muster kv` of the other user, or of root."""
    host, port = address.rsplit(":", 1)
    return subprocess.run([*before, program, "kv", *words], env=clean_env(MASTER_ADDR=host, MASTER_PORT=port, ASAN_OPTIONS="detect_leaks=0"),
                          text=True, capture_output=True, timeout=DEADLINE)


TELLS = "echo $MASTER_ADDR:$MASTER_PORT; read"


@pytest.mark.parametrize("option", ["", "--rdzv-backend=static"])
def test_the_workers_store_is_for_this_user_and_root(start, program, port, option):
    static = [option, f"--rdzv-endpoint={port.endpoint}", "--nnodes=1"] if option else []
    job = start("run", *static, "bash", "-c", TELLS, stdin=subprocess.PIPE)
    address = read_line(job).strip()
    for words in ("set", "evil", "pickled"), ("get", "evil"):
        refused = kv(program, address, "--timeout=2s", *words)
        assert refused.returncode != 0, refused
    assert kv(program, address, "set", "good", "1", before=()).returncode == 0
    assert kv(program, address, "get", "good", before=()).stdout == "1\n"
    error = job.communicate("\n", timeout=DEADLINE)[1]
    assert job.returncode == 0
    assert "it is of user 65534 of this host; MUSTER_ANY_USER=1 lets all in" in error


@pytest.mark.parametrize("option, variables", [("--store-access=any", {}), ("--store-access=members", {"MUSTER_ANY_USER": "1"})])
def test_the_workers_store_can_be_opened_to_all_users(start, program, option, variables):
    job = start("run", option, "bash", "-c", TELLS, stdin=subprocess.PIPE, env=clean_env(**variables))
    address = read_line(job).strip()
    assert kv(program, address, "set", "good", "1").returncode == 0
    assert job.communicate("\n", timeout=DEADLINE)[1] == ""


def test_root_uses_the_store_of_another_users_job(start, program, theirs):
    able.need(*able.NOBODY, program, "--version")
    job = start(*able.NOBODY[1:], program, "run", "bash", "-c", TELLS, stdin=subprocess.PIPE, cwd="/", program=able.NOBODY[0])
    address = read_line(job).strip()
    assert kv(program, address, "set", "good", "1", before=()).returncode == 0
    assert kv(program, address, "get", "good").stdout == "1\n"
    job.communicate("\n", timeout=DEADLINE)
    assert job.returncode == 0


def test_a_worker_that_has_become_another_user_uses_the_store(start, program):
    job = start("run", *able.NOBODY, program, "kv", "set", "good", "1", cwd="/")
    assert job.wait(timeout=DEADLINE) == 0, job.stderr.read()


def test_who_sends_and_leaves_at_once_has_said_nothing(start, program, tmp_path):
    """The kernel does not know any more whose such a connection was; the job is stopped while it comes."""
    job = start("run", "bash", "-c", TELLS, stdin=subprocess.PIPE)
    address = read_line(job).strip()
    job.send_signal(signal.SIGSTOP)
    send = r"""
import encodings.idna, os, socket, struct, sys  # while root may read them
os.setuid(65534)
host, port = sys.argv[1].rsplit(":", 1)
for linger in (0, 1):
    with socket.create_connection((host, int(port))) as peer:
        if linger:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        text = lambda word: struct.pack("<Q", len(word)) + word
        peer.sendall(b"\0" + struct.pack("<I", 0x3C85F7CE) + b"\1" + text(b"/evil") + text(b"pickled"))
"""
    subprocess.run([sys.executable, "-c", send, address], check=True)
    job.send_signal(signal.SIGCONT)
    assert kv(program, address, "set", "good", "1", before=()).returncode == 0
    assert kv(program, address, "keys", before=()).stdout == "good\n"
    job.communicate("\n", timeout=DEADLINE)


def test_agents_of_another_user_do_not_join_a_job_without_a_token(start, program, port):
    ours = start("run", "--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-id=job", "true")
    theirs = [*able.NOBODY, program, "run", "--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-id=job", "true"]
    refused = subprocess.run(theirs, env=clean_env(ASAN_OPTIONS="detect_leaks=0"), text=True, capture_output=True, timeout=DEADLINE, cwd="/")
    assert refused.returncode == 125 and "it accepts only its own user's processes of this host; use a token" in refused.stderr, refused
    assert ours.poll() is None
    second = start("run", "--nnodes=2", f"--rdzv-endpoint={port.endpoint}", "--rdzv-id=job", "true")
    assert (second.wait(timeout=DEADLINE), ours.wait(timeout=DEADLINE)) == (0, 0)


ASK = r"""
exec 3<>"/dev/tcp/${1/://}"
printf 'GET %s HTTP/1.0\r\nAuthorization: Bearer %s\r\n\r\n' "$2" "$3" >&3
cat <&3"""


def test_the_page_of_a_job_is_for_this_user_and_root(start, theirs):
    """Whether the other user has the token or not: the page was not asked for at a port that others may use."""
    with tempfile.TemporaryDirectory(prefix="m") as runtime:
        env = clean_env(XDG_RUNTIME_DIR=runtime)
        job = start("run", "--rdzv-id=train", "bash", "-c", TELLS, stdin=subprocess.PIPE, env=env)
        read_line(job)
        page = Page("train", env)
        for path in "/", "/livez", "/metrics", "/api/state", "/api/stream":
            for token in "", page.token:
                refused = as_nobody(ASK, page.url.removeprefix("http://"), path, token).stdout
                assert "403" in refused.splitlines()[0] and "it is of user 65534 of this host" in refused
        assert page.request("/api/state", token=page.token)[0] == 200
        job.communicate("\n", timeout=DEADLINE)


def test_a_port_that_was_asked_for_is_for_all_users(start, port, theirs):
    job = start("run", f"--http={port.number}", "bash", "-c", TELLS, stdin=subprocess.PIPE)
    read_line(job)
    for path in "/livez", "/metrics", "/api/state":
        assert "200" in as_nobody(ASK, port.endpoint, path, "").stdout.splitlines()[0]
    assert "401" in as_nobody(ASK, port.endpoint, "/api/stream", "").stdout.splitlines()[0]
    job.communicate("\n", timeout=DEADLINE)
