"""Which rank did not come: the flight recorder of the real PyTorch, with gloo, joined by muster."""

import json
import os
import re
import signal
import subprocess
import tempfile

import pytest

from page import Page, board_of
from tree import MUSTER, ROOT, clean_env
from waits import DEADLINE, wait_for

JOB = f"flight-{os.getpid()}"  # others may run the same tests on this host

WORKER = """
import datetime, os, sys, time
if os.environ.get("SITE"): __import__("site").addsitedir(os.environ["SITE"])
import torch, torch.distributed as dist
rank = int(os.environ["RANK"])
def stay(): time.sleep(1000)
dist.init_process_group("gloo")
dp = dist.new_group([0, 1], group_desc="dp")
tp = dist.new_group([1, 2], group_desc="tp")
tensor = torch.ones(4, 3)
for _ in range(3): dist.all_reduce(tensor)
print("ready", flush=True)
open(f"ready.{rank}", "w").write(str(os.getpid()))
if sys.argv[1] == "missing":
    stay() if rank == 1 else dist.all_reduce(tensor)
elif sys.argv[1] == "operation":
    dist.broadcast(tensor, 0) if rank == 1 else dist.all_reduce(tensor)
elif sys.argv[1] == "chain":
    stay() if rank == 2 else dist.all_reduce(tensor, group=tp if rank == 1 else dp)
elif sys.argv[1] == "circle":
    dist.all_reduce(tensor, group=tp if rank == 1 else None)
elif sys.argv[1] == "barrier":
    stay() if rank == 1 else dist.barrier()
elif sys.argv[1] == "receive":
    dist.recv(tensor, src=1) if rank == 0 else stay()
elif sys.argv[1] == "receive-any":
    dist.recv(tensor) if rank == 0 else stay()
elif sys.argv[1] == "posted":  # 2 waits for 0 and 1, and 0 for 1
    stay() if rank == 1 else dist.irecv(tensor, 1).wait() if rank == 0 else dist.all_reduce(tensor)
elif sys.argv[1] == "monitored":
    for _ in range(2): dist.monitored_barrier()
    stay() if rank == 1 else dist.monitored_barrier()
elif sys.argv[1] == "forgiven":  # a barrier that nobody is in any more
    try:
        if rank != 1: dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))
    except RuntimeError:
        pass
    stay() if rank == 2 else dist.all_reduce(tensor, group=tp if rank == 1 else dp)
elif sys.argv[1] == "batched":  # each sends to the next and gets from the one before, but for the last
    ops = [dist.P2POp(dist.isend, tensor, (rank + 1) % 3), dist.P2POp(dist.irecv, torch.ones(4, 3), (rank - 1) % 3)]
    stay() if rank == 2 else [work.wait() for work in dist.batch_isend_irecv(ops)]
    dist.all_reduce(tensor)
elif sys.argv[1] == "monitored-timeout":
    stay() if rank == 1 else dist.monitored_barrier(timeout=datetime.timedelta(seconds=2))
elif sys.argv[1] == "timeout":
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=2))
    stay() if rank == 1 else dist.barrier()
elif sys.argv[1] == "type":
    dist.all_reduce(tensor.double() if rank == 2 else tensor)
elif sys.argv[1] == "late":
    stay() if rank == 3 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else dist.all_reduce(tensor)
    sys.exit()
elif sys.argv[1] == "behind":  # its steps take as long as the others', who wait for it
    while True:
        time.sleep(0.2 if rank == 1 else 0)
        dist.all_reduce(tensor)
elif sys.argv[1] == "slow":
    while True:
        time.sleep(1 if rank == 1 else 0)
        dist.all_reduce(tensor)
stay()
"""

WARM = "--preload=torch,torch.distributed"


@pytest.fixture
def env():
    with tempfile.TemporaryDirectory(prefix="m") as runtime:
        yield clean_env(XDG_RUNTIME_DIR=runtime)


@pytest.fixture
def hang(start, place, tmp_path, env):
    """hang(kind) starts a job of three ranks, which have all come to the place where it begins."""

    def begin(kind, *options):
        script = place("worker.py", WORKER)
        job = start("run", "--nproc-per-node=3", "--flight-recorder", f"--rdzv-id={JOB}", *options, script, kind, env=env)
        wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 3, "the workers")
        return job

    return begin


@pytest.fixture
def ask(muster, env):
    """ask() returns the findings once a collective has waited for a second, and the text."""

    def findings():
        shown = muster("collectives", "--patience=1", "--json", JOB, env=env)
        assert shown.returncode == 0, shown.stderr
        answer = json.loads(shown.stdout)
        return answer["findings"], answer["text"]

    def settled():
        found, text = findings()  # that of an irecv stays early: nobody knows whether it is waited for
        return found and not any(f["early"] for f in found if not f["operation"].startswith("i")) and (found, text)

    return lambda: wait_for(settled, "a collective that waits")


# kind: operation, kind of finding, culprits, and words of the text
HANGS = {
    "missing": ("all_reduce", "waits", [1], "rank 1 never came; it is at worker.py:6 in stay() (in the system call clock_nanosleep); ranks 0, 2 came"),
    "operation": ("all_reduce", "differs", [1], "rank 1 came with broadcast, the others with all_reduce"),
    "chain": ("all_reduce", "waits", [2], "of group 'tp' (2 ranks)"),
    "barrier": ("barrier", "waits", [1], "barrier #4 of the default group (3 ranks)"),
    "receive": ("recv 0<-1", "waits", [1], "recv 0<-1 #1 of the default group waits"),
    "receive-any": ("recv 0<-any", "waits", [], "rank 0 came alone; ranks 1, 2 did not, and wait in no recorded collective"),
    "posted": ("all_reduce", "waits", [1], "ranks 0, 1 never came"),
    "monitored": ("monitored_barrier", "waits", [1], "monitored_barrier #3 of the default group (3 ranks) waits"),
    "forgiven": ("all_reduce", "waits", [2], "all_reduce #1 of group 'tp' (2 ranks) waits"),
    "circle": ("all_reduce", "waits", [], "waiting in another collective for ranks that wait in this one"),
}


@pytest.mark.parametrize("kind", HANGS)
def test_the_rank_that_holds_the_others_up_is_named(hang, ask, kind):
    operation, finding, culprits, words = HANGS[kind]
    hang(kind, WARM)
    found, text = ask()
    assert (found[0]["operation"], found[0]["kind"], found[0]["culprits"]) == (operation, finding, culprits), text
    assert words in text


def test_a_rank_that_cannot_answer_is_named_with_the_reason(hang, ask, tmp_path):
    hang("missing", WARM)
    os.kill(int((tmp_path / "ready.1").read_text()), signal.SIGSTOP)
    found, text = ask()
    assert found[0]["culprits"] == [1] and "rank 1 gives no record (it is stopped by a signal)" in text


def test_a_slow_job_blames_nobody(hang, muster, env):
    hang("slow", WARM)
    for _ in range(3):
        shown = muster("collectives", "--json", JOB, env=env)
        assert shown.returncode == 0, shown.stderr
        assert [f["culprits"] for f in json.loads(shown.stdout)["findings"] if f["culprits"]] == []


def text_if_late(shown, rank):
    """What `muster collectives --json` says, once that rank alone comes last again and again."""
    answer = json.loads(shown.stdout) if shown.returncode == 0 else {"late": []}
    return [late["rank"] for late in answer["late"]] == [rank] and answer["text"]


def test_a_rank_that_comes_last_to_collectives_is_named_though_nothing_hangs(hang, muster, env):
    hang("behind", WARM)
    text = wait_for(lambda: text_if_late(muster("collectives", "--json", JOB, env=env), 1), "rank 1 to be named")
    assert re.search(r"rank 1 holds the others up: it came last to \d+ of the last \d+ collectives of the default group that were waited for", text)


def test_ranks_of_hosts_with_other_clocks_are_compared_by_when_they_come(make_lab, place):
    """node2's monotonic clock is 20 s ahead."""
    lab = make_lab(2, clocks={2: 20})
    script = place("worker.py", WORKER)
    for host in lab.hosts:
        host.start(MUSTER, "run", "--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint={lab.hosts[0].name}:29400", f"--rdzv-id={JOB}",
                   "--flight-recorder", WARM, script, "behind", env=clean_env())

    def named():
        shown = subprocess.run(lab.hosts[1].space.command("env", "TMPDIR=/run/here", "XDG_RUNTIME_DIR=/run/here", MUSTER, "collectives", "--json", JOB),
                               env=clean_env(), text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
        return text_if_late(shown, 1)

    assert re.search(r"rank 1 on node[12] holds the others up: it came last to", wait_for(named, "rank 1 to be named"))


@pytest.mark.parametrize("kind, words", [
    ("missing", "rank 1 never came; it is at worker.py:6 in stay()"),
    ("batched", "rank 2 never came; it is at worker.py:6 in stay()"),  # it is known to hang: so the irecv is waited for
])
def test_the_report_of_a_hang_begins_with_the_collective(muster, place, env, kind, words):
    done = muster("run", "--nproc-per-node=3", "--flight-recorder=100", "--start-timeout=100", "--hang-timeout=3", WARM,
                  place("worker.py", WORKER), kind, env=env)
    report = done.stderr[done.stderr.index("muster: job failed"):].splitlines()
    assert report[1].strip().startswith("collective")
    assert words in report[1]


def test_the_verdict_is_in_the_events_the_report_the_status_and_the_page(hang, muster, env, tmp_path):
    """Of a job that goes on after a hang, and then is stopped."""
    words = "all_reduce #4 of the default group (3 ranks) waits"
    culprit = "rank 1 never came; it is at worker.py:6 in stay() (in the system call clock_nanosleep); ranks 0, 2 came"
    events = tmp_path / "events"
    job = hang("missing", WARM, "--start-timeout=100", "--hang-timeout=2", "--hang-action=report", f"--events={events}", f"--log-dir={tmp_path}/logs")

    def told():
        lines = [json.loads(line) for line in events.read_text().splitlines()]
        return [line["detail"] for line in lines if line["event"] == "hang.explained"]

    said = wait_for(told, "the verdict")[0]
    assert words in said and culprit in said
    status = muster("status", JOB, env=env).stdout
    line = next(line for line in status.splitlines() if line.strip().startswith("last hang:"))
    assert words in line and culprit in line
    state = json.loads(muster("status", "--json", JOB, env=env).stdout)
    assert culprit in json.dumps(state)
    page = Page(str(job.pid), env)
    with page.stream() as told_page:
        board = board_of(told_page, lambda board: board.attempts and board.job.get("last_hang"))
    assert culprit in board.job["last_hang"] and culprit in board.attempts[0]["collectives"]

    job.send_signal(signal.SIGTERM)
    job.wait(DEADLINE)
    written = json.loads(next((tmp_path / "logs").glob("**/report.json")).read_text())
    assert culprit in written["attempts"][0]["collectives"]


@pytest.mark.parametrize("kind, words", [
    ("timeout", r"barrier #4 of the default group \(3 ranks\) waits"),
    ("monitored-timeout", r"monitored_barrier #1 of the default group \(3 ranks\) waits"),
    # gloo aborts a rank that got too many bytes. Its record is lost, so those with Float may be the most or not.
    ("type", r"rank 2 came with type \[\"Double\"\], (the others with \[\"Float\"\]|others with \[\"Float\"\], and neither are the most)"),
])
def test_the_report_of_a_failure_in_a_collective_begins_with_it(muster, place, env, kind, words):
    done = muster("run", "--nproc-per-node=3", "--flight-recorder", WARM, place("worker.py", WORKER), kind, env=env)
    report = done.stderr[done.stderr.index("muster: job failed"):].splitlines()
    assert report[1].strip().startswith("collective") and re.search(words, report[1]), done.stderr
    if kind != "type":
        assert re.match(r"muster: job failed: rank 1 held the others up: rank [02] of 3 ended with ", report[0]), report[0]


def test_the_records_of_all_nodes_are_joined(start, muster, place, tmp_path, env, port):
    script = place("worker.py", WORKER)
    for _ in range(2):
        start("run", "--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint=127.0.0.1:{port.number}", "--flight-recorder", WARM,
              f"--rdzv-id={JOB}", script, "missing", env=env)
    wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 4, "the workers")

    def joined(*options):
        shown = muster("collectives", "--patience=1", "--json", *options, JOB, env=env)
        found = json.loads(shown.stdout)["findings"]
        return shown.returncode == 0 and len(found) == 1 and not found[0]["early"] and found[0]

    found = wait_for(joined, "a collective that waits")
    assert (found["culprits"], found["came"], found["not_asked"]) == ([1], [0, 2, 3], [])
    here = joined("--here")  # the node with rank 1, or the other
    assert sorted(here["came"] + here["missing"] + here["not_asked"]) == [0, 1, 2, 3] and len(here["not_asked"]) == 2


def test_every_host_reports_the_rank_that_held_the_others_up_and_a_spare_takes_its_place(make_lab, place):
    """Three hosts for a job of two. Rank 3 is late in the first attempt; the second one, without its host, ends well."""
    lab = make_lab(3)
    script = place("worker.py", WORKER)
    agents = {host: host.start(
        MUSTER, "run", "--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint={lab.hosts[0].name}:29400", "--max-restarts=1", WARM,
        "--flight-recorder", "--exclude-culprit", "--start-timeout=100", "--hang-timeout=3", f"--events={host.name}.events", script, "late",
        env=clean_env(LOGLEVEL="INFO")) for host in lab.hosts}

    def told(host):
        lines = [json.loads(line) for line in (lab.directory / f"{host.name}.events").read_text().splitlines()]
        return [line for line in lines if line["event"] in ("round.formed", "hang.explained")]

    wait_for(lambda: not any(agent.running() for agent in agents.values()), "the job to end", 3 * DEADLINE)
    said = {host: told(host) for host in lab.hosts}
    assert [agent.wait() for agent in agents.values()] == [0, 0, 0], "\n".join(agent.text() for agent in agents.values())
    ranks = {host: [line.get("group_rank") for line in lines if line["event"] == "round.formed"] for host, lines in said.items()}
    first = {host: lines for host, lines in said.items() if any(line["event"] == "hang.explained" for line in lines)}
    assert len(first) == 2, said
    culprit = next(host for host in first if ranks[host][0] == 1)
    for lines in first.values():
        words = next(line["detail"] for line in lines if line["event"] == "hang.explained")
        assert f"rank 3 on {culprit.name} never came; it is at worker.py:6 in stay() (in the system call clock_nanosleep); ranks 0-2 came" in words
    assert len(ranks[culprit]) == 1 and sum(len(of) for of in ranks.values()) == 4, ranks


def test_a_worker_that_was_started_cold_is_read_through_the_package(hang, ask, env):
    env["SITE"] = str(ROOT / "python")
    hang("missing")
    found, _ = ask()
    assert found[0]["culprits"] == [1]


def test_a_worker_whose_python_lacks_the_package_is_read(hang, ask, env):
    env["PYTHONPATH"] = "/nonexistent"  # what was there stays
    hang("missing")
    found, _ = ask()
    assert found[0]["culprits"] == [1]


def test_without_torch_the_command_says_what_is_missing(start, muster, env):
    start("run", "--flight-recorder", f"--rdzv-id={JOB}", "sh", "-c", "echo up; exec sleep 100", env=env).stdout.readline()
    # The worker may speak before its muster has heard that it runs.
    wait_for(lambda: json.loads(muster("status", "--json", JOB, env=env).stdout)[0]["workers"][0]["state"] == "running", "a running worker")
    shown = muster("collectives", JOB, env=env)
    assert shown.returncode == 1 and shown.stdout == ""
    assert "has not imported torch.distributed" in shown.stderr and "--flight-recorder" in shown.stderr


def test_a_job_whose_workers_have_not_started_says_so(start, muster, env, port):
    process = start("run", "--flight-recorder", "--nnodes=2", f"--rdzv-endpoint={port.endpoint}", f"--rdzv-id={JOB}", "--no-python", "true", env=env)
    wait_for(lambda: muster("status", JOB, env=env).returncode == 0, "a job that waits for its second node")
    shown = muster("collectives", "--here", JOB, env=env)
    assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", "muster collectives: none of these workers runs now\n")
    process.terminate()
    process.wait(timeout=DEADLINE)


def test_the_server_of_the_recorder_adds_no_line_to_the_output(muster, place, env):
    script = place("worker.py", "import os, torch.distributed\nassert os.path.exists(os.environ['MUSTER_FLIGHT'] + '/f0')\n")
    done = muster("run", "--flight-recorder", WARM, script, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("size", ["-1", "1000001", "many"])
def test_a_bad_size_is_refused(muster, size):
    done = muster("run", f"--flight-recorder={size}", "true")
    assert done.returncode == 2 and size in done.stderr
