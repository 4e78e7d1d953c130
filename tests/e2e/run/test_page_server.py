"""The server of a job's page: who may see and do what, and what it tells."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile

import pytest

from page import Page, board_of
from tree import clean_env
from waits import DEADLINE, wait_for

JOB = f"page-{os.getpid()}"


@pytest.fixture
def job(start, tmp_path):
    """Starts a job; its page is opened without --http, by `muster dash`."""
    with tempfile.TemporaryDirectory(prefix="m") as runtime:
        env = clean_env(XDG_RUNTIME_DIR=runtime)

        def call(*args, command=("sleep", "100"), **environ):
            process = start("run", "--standalone", "--nproc-per-node=2", f"--rdzv-id={JOB}", f"--log-dir={tmp_path}/logs", *args, *command,
                            env=dict(env, **environ))
            wait_for(lambda: subprocess.run([process.args[0], "status", JOB], env=env, capture_output=True).returncode == 0, "the job to be there")
            process.page = Page(JOB, env)
            return process

        yield call


def test_the_page_is_served_to_all_and_data_only_with_the_token(job):
    page = job().page
    assert page.url.startswith("http://127.0.0.1:") and len(page.token) == 32
    for path in "/", "/page.css", "/page.js", "/single.html":
        code, headers, text = page.request(path)
        assert code == 200 and text and page.token not in text
        assert "default-src 'none'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
        assert "unsafe" not in headers["Content-Security-Policy"]
    for token in None, "", "0" * 32, page.token[:-1], page.token + "0":
        for path in "/api/stream", "/api/log", "/api/state", "/metrics":
            assert page.request(path, token=token)[0] == 401
        assert page.request("/api/do", "POST", token, b'{"do":"stop"}')[0] == 401
    assert page.request("/api/state", token=page.token)[0] == page.request("/metrics", token=page.token)[0] == 200
    assert page.request("/api/do", token=page.token)[0] == 405
    assert page.request("/api/stream", "POST", page.token, b"")[0] == 405
    assert page.request("/api/dash", "POST", page.token, b"")[0] == 404  # on the private socket only
    for body in b"", b"stop", b'{"do":"nothing"}', b"x" * 5000:
        assert page.request("/api/do", "POST", page.token, body)[0] in (400, 413)


def test_a_page_is_told_of_states_wishes_and_the_end(job, tmp_path):
    """What comes over one stream: everything, the answer to a wish, and how the job ended."""
    process = job("--redirects=3", command=(sys.executable, "-u", "-c", "import os, time; print('hello', os.environ['RANK']); time.sleep(100)"))
    page = process.page
    with page.stream() as events, page.stream("/api/log") as lines:
        board = board_of(events, lambda board: board.running(2))
        assert board.job["run_id"] == JOB and board.job["world_size"] == 2
        assert [host["workers"] for host in board.hosts.values()] == [2]
        assert board.about["command"][-1].startswith("import os")
        seen = set()
        for _, told in lines:
            seen |= {tuple(line[1:]) for line in told["lines"]}
            if len(seen) == 2:
                break
        assert seen == {("0", "hello 0"), ("1", "hello 1")}

        assert page.wish(do="workers", ranks=[1])[0] == 202
        answer = next(told for name, told in events if name == "answer")
        (worker,) = answer["workers"]
        assert worker["state"]["rank"] == 1 and "RANK=1" in worker["state"]["environment"]
        assert worker["state"]["command"][1] == "-u" and worker["state"]["cpus"]

        assert page.wish(do="checkpoint")[0] == 202
        ((_, why),) = next(told for name, told in events if name == "answer")["failed"]
        assert "worker" in why  # these do not ask whether to save

        assert page.wish(do="stop")[0] == 202
        end = next(told for name, told in events if "exit_code" in told.get("job", {}))
        assert end["job"]["state"] == "stopped" and end["job"]["exit_code"] == 128 + signal.SIGTERM
    assert process.wait(60) == 128 + signal.SIGTERM


def test_a_page_that_reads_late_gets_the_last_words_and_the_end_of_the_stream(job):
    """A browser forgets what the page has not read when a stream breaks off."""
    process = job()
    with process.page.opened() as answer:
        process.terminate()
        assert process.wait(DEADLINE) == 143
        events = Page.events(io.BytesIO(answer.read()))  # which raises IncompleteRead at a stream without an end
        assert board_of(events, lambda board: "exit_code" in board.job).job["exit_code"] == 143


def test_a_restart_is_wished_and_told(job):
    page = job().page
    with page.stream() as events:
        board_of(events, lambda board: board.running(2))
        assert page.wish(do="restart")[0] == 202
        attempts = next(told["attempts"] for name, told in events if len(told.get("attempts", [])) == 2)
    assert attempts[0]["end"] == "restarted" and attempts[1]["end"] == "running"


def test_secrets_in_the_environment_are_hidden(job):
    page = job(MY_API_KEY="tell-nobody").page
    with page.stream() as events:
        next(events)
        assert page.wish(do="workers", ranks=[0])[0] == 202
        answer = next(told for name, told in events if name == "answer")
    assert "MY_API_KEY=(hidden)" in answer["workers"][0]["state"]["environment"]


def test_too_many_pages_are_refused_and_closed_ones_make_room(job):
    page = job().page
    with contextlib.ExitStack() as open_pages:
        for _ in range(16):
            open_pages.enter_context(page.stream())
        assert page.request("/api/stream", token=page.token)[0] == 503
        assert page.request("/healthz")[0] == 200

    def opens():
        with contextlib.suppress(AssertionError), page.stream() as events:
            return next(events)[1]["n"] == 2

    wait_for(opens, "a place for another page")


def test_nothing_is_done_after_the_last_page_is_closed(job):
    """No wake-ups: the loop makes no system call when nobody looks any more."""
    process = job()
    page = process.page
    with page.stream() as events, page.stream("/api/log"):
        next(events)

    def switches():
        with open(f"/proc/{process.pid}/status") as status:
            return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)

    def rests():
        before = switches()
        with contextlib.suppress(subprocess.TimeoutExpired):  # longer than any period of an open page
            process.wait(2)
        return switches() == before

    wait_for(rests, "the job to rest")


def test_agents_of_several_nodes_show_the_whole_job(agents, port):
    env = clean_env()
    for _ in range(2):
        agents.start("--nnodes=2", "--nproc-per-node=2", f"--rdzv-id={JOB}", f"--rdzv-endpoint=127.0.0.1:{port.number}", "sleep", "100", env=env)
    for agent in agents.all:
        wait_for(lambda: list(agent.runtime.rglob("http")), "the socket of an agent")
        page = Page(JOB, dict(env, XDG_RUNTIME_DIR=str(agent.runtime), TMPDIR=str(agent.runtime)))
        with page.stream() as events:
            board = board_of(events, lambda board: board.running(4))
            assert board.job["nodes"] == 2 and sorted(board.columns["host"]) == [0, 0, 1, 1]
            assert [host["rank"] for host in board.hosts.values()] == [0, 1]
    assert page.wish(do="stop")[0] == 202
    assert agents.wait() == [128 + signal.SIGTERM] * 2
