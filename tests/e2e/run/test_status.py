"""What a running job shows of itself: HTTP pages, metrics, `muster status` and `muster stop`."""

import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import pty
import re
import resource
import select
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ports import Port
from proc import cpu_share, parent
from tracing import traced
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for


JOB = f"job-{os.getpid()}"  # others may run the same tests on this host


@pytest.fixture
def job(start):
    """Starts a job of two workers with a page on a free port; waits until it is ready."""
    with tempfile.TemporaryDirectory(prefix="m") as runtime, contextlib.ExitStack() as held:
        env = clean_env(XDG_RUNTIME_DIR=runtime)

        def call(*args, command=("sleep", "100"), ready=True):
            port = held.enter_context(contextlib.closing(Port())).number
            process = start("run", "--nproc-per-node=2", f"--rdzv-id={JOB}", f"--http=127.0.0.1:{port}", *args,
                            *command, env=env)
            process.env, process.port = env, port
            if ready:
                wait_for(lambda: process.poll() is not None or get(port, "/readyz")[0] == 200, "the job to be ready")
            return process

        yield call


def get(port, path, method="GET"):
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def test_probes_answer_and_unknown_pages_do_not(job):
    process = job()
    for path in "/", "/healthz", "/livez", "/readyz", "/metrics", "/api/state":
        assert get(process.port, path)[0] == 200
    assert get(process.port, "/healthz", "HEAD")[0] == 200
    assert get(process.port, "/nothing")[0] == 404
    assert get(process.port, "/healthz", "POST")[0] == 405
    assert get(process.port, "/api/stop", "POST")[0] == 404  # never over TCP


def test_data_is_for_those_who_ask_for_this_host(job):
    """A page of another site, whose name leads here, is told by its browser's 'Host:'. Probes are answered whatever it says."""
    port = job().port

    def code(host, path):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)) as connection:
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().status

    own = socket.gethostname()
    for path in "/metrics", "/api/state":
        for host in f"127.0.0.1:{port}", "localhost", f"LOCALHOST:{port}", "[::1]:1", own:
            assert code(host, path) == 200, host
        for host in "evil.example", f"127.0.0.1.evil.example:{port}", f"{own}.evil.example", "localhost.evil", "", "a:b:c":
            assert code(host, path) == 421, host
    assert code("evil.example", "/livez") == code("evil.example", "/readyz") == 200


def test_health_is_refused_while_there_is_no_warden(job):
    """A worker that is traced stays a zombie until its tracer has looked: that long no new warden can start."""
    process = job("--max-restarts=1")
    worker = json.loads(get(process.port, "/api/state")[1])["workers"][0]["pid"]
    warden = parent(worker)
    with traced(worker):
        os.kill(warden, signal.SIGKILL)
        wait_for(lambda: get(process.port, "/healthz")[0] == 503, "the health page to say no")
        assert get(process.port, "/healthz")[1].startswith("unhealthy")
        assert get(process.port, "/readyz")[0] == 503
    wait_for(lambda: get(process.port, "/readyz")[0] == 200, "the group to be started again")
    assert get(process.port, "/healthz")[0] == 200


def test_the_real_prometheus_parser_reads_the_metrics(job):
    process = job()
    families = {f.name: f for f in text_string_to_metric_families(get(process.port, "/metrics")[1])}
    value = lambda family, **labels: [s.value for s in families[family].samples if labels.items() <= s.labels.items()]
    assert value("muster_build_info", run_id=JOB) == [1]
    assert value("muster_worker_up") == [1, 1]
    assert value("muster_world_size") == [2]
    assert value("muster_failures", reason="exit") == [0]
    assert value("muster_worker_resident_bytes", rank="1")[0] > 0
    assert families["muster_restarts"].type == "counter"
    assert value("muster_ballot_round") == [1] and value("muster_ballot_epoch")[0] > 0
    assert len(families) >= 24


def test_metrics_after_a_restart_tell_its_cause_what_workers_used_and_the_stores_work(job):
    # Rank 0 ends well and stays counted; rank 1 fails once, then uses the store.
    script = """
import os, sys, time
if os.environ["RANK"] == "0":
    sys.exit(0 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1" else time.sleep(100))
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(3)
from torch.distributed import TCPStore
store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
store.set("a", "b")
open("set", "w").close()
time.sleep(100)
"""
    process = job("--max-restarts=2", ready=False, command=(sys.executable, "-c", script))
    port = process.port

    def values():
        families = text_string_to_metric_families(get(port, "/metrics")[1])
        return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}

    wait_for(lambda: values().get(("muster_store_requests_total", "SET"), 0) == 1
             and values()[("muster_worker_up", "0", "0")] == 0, "the store to be used")
    now = values()
    assert now[("muster_restarts_total", "exit")] == 1 and now[("muster_restarts_total", "hang")] == 0
    assert now[("muster_restarts_used",)] == 1
    assert now[("muster_store_requests_total", "VALIDATE")] >= 1 and now[("muster_store_requests_total", "BARRIER")] == 0
    assert now[("muster_store_connections",)] >= 1
    assert now[("muster_worker_cpu_seconds_total", "0", "0")] > 0
    assert now[("muster_worker_peak_resident_bytes", "0", "0")] > 1 << 20
    assert process.poll() is None


def test_debians_prometheus_scrapes_a_job(job, port, tmp_path):
    process = job()
    (tmp_path / "prometheus.yml").write_text(
        "scrape_configs:\n- job_name: muster\n  scrape_interval: 1s\n"
        f"  static_configs:\n  - targets: ['127.0.0.1:{process.port}']\n")
    with open(tmp_path / "prometheus.log", "w") as log:
        server = subprocess.Popen(["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                                   f"--web.listen-address={port.endpoint}"], cwd=tmp_path, stdout=log, stderr=log)
    try:
        def ask(query):
            code, text = get(port.number, f"/api/v1/query?query={query}")
            return [r["value"][1] for r in json.loads(text)["data"]["result"]] if code == 200 else []

        wait_for(lambda: server.poll() is not None or ask("muster_worker_up"), "a scrape")
        assert ask("up") == ["1"]
        assert ask("muster_worker_up") == ["1", "1"] and ask("muster_ballot_round") == ["1"]
    finally:
        server.terminate()
        server.wait(timeout=60)


def state_of(muster, process):
    """Of all jobs that run on this host."""
    [state] = [each for each in json.loads(muster("status", "--json", env=process.env).stdout) if each["pid"] == process.pid]
    return state


def test_a_job_that_is_stopped_by_its_terminal_is_not_called_away(job, muster):
    process = job()
    process.send_signal(signal.SIGSTOP)
    shown = muster("status", str(process.pid), env=process.env)
    assert shown.returncode == 1 and f"process {process.pid} is stopped ('kill -CONT {process.pid}' lets it go on)" in shown.stderr
    process.send_signal(signal.SIGCONT)
    assert muster("status", str(process.pid), env=process.env).returncode == 0


def test_status_finds_the_job_and_stop_ends_it(job, muster):
    process = job()
    state = state_of(muster, process)
    assert state["run_id"] == JOB and state["pid"] == process.pid and state["state"] == "running"
    assert [w["state"] for w in state["workers"]] == ["running", "running"]
    shown = muster("status", JOB, env=process.env)
    assert shown.returncode == 0 and str(state["workers"][1]["pid"]) in shown.stdout
    assert muster("status", "other", env=process.env).returncode == 1
    assert muster("stop", "other", env=process.env).returncode == 1
    assert muster("stop", str(process.pid), env=process.env).returncode == 0
    assert process.wait(timeout=60) == 143
    assert json.loads(muster("status", "--json", JOB, env=process.env).stdout or "[]") == []


def test_a_job_that_is_about_to_listen_is_found():
    """Between bind() and listen() a socket refuses whoever connects."""
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime, socket.socket(socket.AF_UNIX) as server:
        directory = pathlib.Path(runtime, "muster", f"{os.getpid()}-0000abcd")
        for made in directory.parent, directory:
            made.mkdir(mode=0o700)
        server.bind(str(directory / "http"))
        with open(directory / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with subprocess.Popen([MUSTER, "dash", "newborn"], stderr=subprocess.PIPE, text=True, env=clean_env(XDG_RUNTIME_DIR=runtime)) as asker:
                time.sleep(0.3)  # it is refused by now, or comes later
                server.listen()
                server.settimeout(DEADLINE)
                connection, _ = server.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(b'HTTP/1.0 200 OK\r\n\r\n{"run_id": "newborn"}')
                assert "no such job" not in asker.communicate(timeout=DEADLINE)[1]


HOSTILE = "".join(map(chr, (0x1b, 0x7f, 0x85, 0x9b, 0x9d, 0x9c, 0x61c, 0x200e, 0x202e, 0x2028, 0x2066, 0xfeff)))


def on_terminal(command, env, cwd):
    """What a command writes to a terminal, on both streams."""
    ends = pty.openpty()
    with open(ends[0], "rb", buffering=0) as shown:
        done = subprocess.run(command, stdin=ends[1], stdout=ends[1], stderr=ends[1], env=dict(env, TERM="xterm"), cwd=cwd, timeout=DEADLINE)
        os.close(ends[1])
        text = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := shown.read(65536):
                text += piece
    return done.returncode, text.decode(errors="replace")


def test_nothing_that_workers_or_names_say_reaches_a_terminal_as_a_command(job, muster, tmp_path, place):
    """What colours headings and draws the picture of `top` is muster's own."""
    name, logs = "evil" + HOSTILE, tmp_path / ("logs" + HOSTILE)
    process = job(f"--rdzv-id={name}", f"--log-dir={logs}", "--redirects=3",
                  command=("sh", "-c", f"printf 'seen {HOSTILE}[31m end\\n'; printf 'seen {HOSTILE}[31m end\\n' >&2; sleep 1000 & wait; exit 3"))
    wait_for(lambda: all("seen" in (worker.get("last_line") or "") for worker in state_of(muster, process)["workers"]), "the workers' lines")
    own = re.compile(r"\x1b\[[0-9;]*[mHJK]|\x1b\[\?\d+[hl]|[\r\n\t]")
    commands = [("status",), ("status", "--json"), ("top", "--once"), ("logs",), ("logs", "--rank=0"), ("logs", "--here"), ("stacks",), ("collectives",),
                ("status", "no" + HOSTILE), ("stop", "no" + HOSTILE), ("logs", "--rank=7"), ("report", str(logs)), ("status", "--nothing" + HOSTILE)]
    for command in commands:
        _, text = on_terminal([MUSTER, *command], process.env, tmp_path)
        assert text and not set(own.sub("", text)) & set(HOSTILE), (command, text)
    failed, text = on_terminal([MUSTER, "run", f"--rdzv-id={name}2", f"--log-dir={logs}2", "--redirects=3", "--max-restarts=0",
                                "sh", "-c", f"echo '{HOSTILE}[31m' >&2; exit 3"], process.env, tmp_path)
    assert failed == 3 and "job failed" in text and not set(own.sub("", text)) & set(HOSTILE), text


def test_status_keeps_to_the_columns_that_there_are(job, muster):
    process = job(command=("sh", "-c", "{ printf 'é%.0s' $(seq 200); echo; } >&2; exec sleep 100"))
    wait_for(lambda: "é" in (state_of(muster, process)["workers"][1].get("last_line") or ""), "the workers' lines")
    wide = muster("status", JOB, env=process.env).stdout
    assert max(map(len, wide.splitlines())) > 120
    for columns in 80, 100, 120:
        shown = muster("status", JOB, env=dict(process.env, COLUMNS=str(columns))).stdout
        assert max(map(len, shown.splitlines())) <= columns, shown
        assert shown.count("éééé" * 3) >= 2 and shown.split()[:3] == wide.split()[:3]


def test_a_job_is_found_whatever_bytes_its_program_has_in_its_path(job, muster, tmp_path):
    """A file name is bytes; those that are not UTF-8 are written as Python's surrogateescape has them."""
    program = os.fsencode(tmp_path) + b"/sl\xffeep"
    os.symlink("/bin/sleep", program)
    process = job("--no-python", command=(os.fsdecode(program), "100"))
    assert os.fsencode(json.loads(get(process.port, "/api/state")[1])["command"]) == program
    assert os.fsencode(state_of(muster, process)["command"]) == program
    assert JOB in muster("status", env=process.env).stdout
    assert muster("stop", str(process.pid), env=process.env).returncode == 0
    process.wait(timeout=30)


def test_a_port_that_is_taken_is_a_clear_error(muster):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = muster("run", f"--http=127.0.0.1:{other.getsockname()[1]}", "true")
    comm = pathlib.Path("/proc/self/comm").read_text().strip()
    assert done.returncode == 125 and f"the port is taken by {comm} (pid {os.getpid()})" in done.stderr


@pytest.mark.parametrize("bad", ["abc", "1:2:x", "70000", "99999", "[::1", "host.example:80"])
def test_a_bad_port_is_a_clear_error(muster, bad):
    done = muster("run", f"--http={bad}", "true")
    assert done.returncode == 2 and "PORT" in done.stderr and bad in done.stderr


def listeners(pid):
    """The addresses on which a process listens."""
    sockets = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # it is closed by now
            sockets.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    found = []
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        host, port = words[1].split(":")
        if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
            found.append((socket.inet_ntoa(bytes.fromhex(host)[::-1]), int(port, 16)))
    return found


def test_without_an_address_only_this_host_is_served(start, port):
    job = start("run", f"--http={port.number}", "sleep", "100", env=clean_env(LOGLEVEL="INFO"))
    wait_for(lambda: port.number in [number for _, number in listeners(job.pid)], "the listener")
    assert [host for host, number in listeners(job.pid) if number == port.number] == ["127.0.0.1"]
    with pytest.raises(OSError), socket.socket(socket.AF_INET6) as other:
        other.connect(("::1", port.number))


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_a_crowd_at_the_port_costs_neither_log_lines_nor_restarts(start, tmp_path, port):
    """More idle connections than there are descriptors: the job goes on, quietly, and restarts its worker."""
    script = f"[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; read line <{tmp_path}/go; exit 3"
    os.mkfifo(tmp_path / "go")
    job = start("run", "--max-restarts=1", f"--http={port.number}", "bash", "-c", script, stderr=subprocess.PIPE,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
    wait_for(lambda: ("127.0.0.1", port.number) in listeners(job.pid), "the port")
    first = None
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            idle = stack.enter_context(socket.socket())
            idle.setblocking(False)
            idle.connect_ex(("127.0.0.1", port.number))
            first = first or idle
        assert select.select([first], [], [], DEADLINE)[0], "the oldest is still there"
        assert open_files(job.pid) < 128
        (tmp_path / "go").write_text("\n")
        assert job.wait(60) == 0
    assert len(job.stderr.read().splitlines()) < 20


@contextlib.contextmanager
def flood(port, count, first=b""):
    """So many connections that send no more than this; those that are closed are replaced at once. Sees how many it was."""
    done, replaced = threading.Event(), []

    def connect(selector):
        peer = socket.socket()
        peer.setblocking(False)
        peer.connect_ex(("127.0.0.1", port))
        selector.register(peer, selectors.EVENT_READ | (selectors.EVENT_WRITE if first else 0))

    def hold():
        with selectors.DefaultSelector() as selector:
            for _ in range(count):
                connect(selector)
            while not done.is_set():
                for key, events in selector.select(0.05):
                    with contextlib.suppress(OSError):
                        if events & selectors.EVENT_WRITE:
                            key.fileobj.send(first)
                            selector.modify(key.fileobj, selectors.EVENT_READ)
                            continue
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    replaced.append(1)
                    connect(selector)
            for key in list(selector.get_map().values()):
                key.fileobj.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield replaced
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("count, first", [(128, b""), (200, b""), (1000, b""), (200, b"GET /livez HTTP/1.1\r\nHos")])
def test_probes_are_answered_however_many_connections_idle(job, count, first):
    """Half of the probes at least before the server gives up a silent connection (5 s): they do not wait for that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip(f"this process may have {hard} descriptors only")
    port, took = job().port, []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    try:
        with flood(port, count, first) as replaced:
            wait_for(lambda: len(replaced) >= 64, "the flood to be more than the server keeps")
            for _ in range(11):
                began = time.monotonic()
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=DEADLINE) as answer:
                    assert answer.status == 200
                took.append(time.monotonic() - began)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(f"{count} idle connections: the slowest probe took {max(took):.3f} s")
    assert statistics.median(took) < 5, took


def test_an_answer_that_nobody_reads_keeps_no_probe_waiting(job):
    """Clients that ask for much and take nothing."""
    port = job("--nproc-per-node=8", command=("bash", "-c", "printf %4000d 1; sleep 100")).port
    with flood(port, 200, b"GET /api/state HTTP/1.0\r\n\r\n"):
        for _ in range(5):
            assert get(port, "/livez")[0] == 200


def test_without_descriptors_the_port_rests_and_says_nothing(start, port):
    """Fewer clients than it lets in, but more than there are descriptors for."""
    job = start("run", f"--http={port.number}", "sleep", "1000", stderr=subprocess.PIPE)
    wait_for(lambda: get(port.number, "/readyz")[0] == 200, "the job")
    room = max(map(int, os.listdir(f"/proc/{job.pid}/fd"))) + 9
    hard = resource.prlimit(job.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(job.pid, resource.RLIMIT_NOFILE, (room, hard))
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            idle = stack.enter_context(socket.socket())
            idle.connect(("127.0.0.1", port.number))
        wait_for(lambda: open_files(job.pid) == room, "the last descriptor to be taken")
        assert cpu_share(job.pid) < 1 / 3 and not select.select([job.stderr], [], [], 0)[0]
    wait_for(lambda: get(port.number, "/healthz")[0] == 200, "a client that is served again")
    job.terminate()
    assert [line for line in job.communicate(timeout=DEADLINE)[1].splitlines() if "SIGTERM" not in line] == []
    assert job.returncode == 143


def test_torchs_variable_for_the_port_is_honoured_and_never_ends_a_job(start, muster, port):
    env = clean_env(TORCHELASTIC_HEALTH_CHECK_PORT=port.number)
    start("run", "sleep", "100", env=env)
    wait_for(lambda: get(port.number, "/healthz")[0] == 200, "the health page")
    for _ in range(2):  # more agents on the same host
        other = muster("run", "echo", "done", env=env)
        assert other.returncode == 0 and other.stdout == "done\n"
        assert "TORCHELASTIC_HEALTH_CHECK_PORT" in other.stderr and "taken" in other.stderr
    typed = muster("run", f"--http={port.number}", "true", env=env)
    assert typed.returncode == 125 and "--http: " in typed.stderr
    odd = muster("run", "true", env=clean_env(TORCHELASTIC_HEALTH_CHECK_PORT="http"))
    assert odd.returncode == 0 and "TORCHELASTIC_HEALTH_CHECK_PORT" in odd.stderr


def test_restart_starts_the_whole_group_again_and_charges_nothing(job, muster):
    process = job()
    before = [w["pid"] for w in state_of(muster, process)["workers"]]
    assert muster("restart", JOB, env=process.env).returncode == 0
    wait_for(lambda: get(process.port, "/readyz")[0] == 200
             and not {w["pid"] for w in state_of(muster, process)["workers"]} & set(before), "the new workers")
    state = state_of(muster, process)
    assert state["restarts"] == 0 and state["state"] == "running"
    assert muster("restart", "other", env=process.env).returncode == 1
    assert get(process.port, "/api/restart", "POST")[0] == 404  # never over TCP
    assert muster("stop", JOB, env=process.env).returncode == 0
    assert process.wait(timeout=60) == 143


TALK = ("bash", "-c", "echo out $RANK; echo err $RANK >&2; exec sleep 100")


def test_logs_shows_what_the_workers_wrote(job, muster, tmp_path):
    process = job("--redirects=3", f"--log-dir={tmp_path}", command=TALK)

    def shown(*args):
        return muster("logs", *args, env=process.env).stdout.splitlines()

    expected = ["[0] out 0", "[0] err 0", "[1] out 1", "[1] err 1"]
    wait_for(lambda: shown(JOB) == expected, "the lines of all workers")
    assert shown("--rank=1", JOB) == ["out 1", "err 1"]
    assert muster("logs", "--rank=7", JOB, env=process.env).returncode == 1


def test_logs_follows_through_a_restart_to_the_end_of_the_job(job, muster, start, tmp_path):
    process = job("--redirects=3", f"--log-dir={tmp_path}", command=TALK)
    with open(tmp_path / "shown", "w") as out:
        follower = start("logs", "-f", "--rank=1", JOB, env=process.env, stdout=out)
    seen = lambda: (tmp_path / "shown").read_text().split("\n")
    wait_for(lambda: seen() == ["out 1", "err 1", ""], "the lines of the first attempt")
    assert muster("restart", JOB, env=process.env).returncode == 0
    wait_for(lambda: len(seen()) == 5, "those of the second")
    assert muster("stop", JOB, env=process.env).returncode == 0
    assert process.wait(timeout=60) == 143 and follower.wait(timeout=60) == 0
    assert sorted(seen()) == ["", "err 1", "err 1", "out 1", "out 1"]


def test_logs_says_when_there_are_none(job, muster):
    process = job("--capture=never")
    done = muster("logs", JOB, env=process.env)
    assert done.returncode == 1 and "--redirects" in done.stderr


def test_logs_has_the_end_of_both_streams_without_log_files(job, muster):
    """They go to different places, so that neither shares the other's pipe."""
    process = job(command=TALK)
    lines = lambda: muster("logs", JOB, env=process.env).stdout.splitlines()
    wait_for(lambda: sorted(lines()) == ["[0] err 0", "[0] out 0", "[1] err 1", "[1] out 1"], "both lines of both workers")
    assert muster("logs", "--rank=1", JOB, env=process.env).stdout == "out 1\nerr 1\n"
