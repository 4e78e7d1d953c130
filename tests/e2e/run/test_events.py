"""The event log: one JSON line for each thing that happened, with real times."""

import json
import time

import pytest

from tree import clean_env

ALWAYS = {"event", "seq", "timestamp", "ts", "mono_ns", "run_id", "host", "round", "restarts"}


def test_a_job_with_a_restart_tells_its_story(muster, tmp_path):
    before = time.time() * 1000
    done = muster("run", "--nproc-per-node=2", "--max-restarts=1", "--rdzv-id=myjob", "--events=events",
                  "--log-dir=logs", "bash", "-c", "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit $((RANK * 7))",
                  env=clean_env(LOGLEVEL="ERROR"))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "events").read_text()
    events = [json.loads(line) for line in text.splitlines()]
    assert all(ALWAYS <= event.keys() and event["run_id"] == "myjob" for event in events)
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert all(before <= event["timestamp"] <= time.time() * 1000 for event in events)
    names = [event["event"] for event in events]
    assert names[0] == "job.started" and names[-1] == "job.ended"
    for name, count in {"round.formed": 2, "worker.started": 4, "worker.exited": 4, "group.failed": 1,
                        "group.done": 1, "group.gone": 2, "group.restart": 1}.items():
        assert names.count(name) == count, names
    ballots = [event["ballot"] for event in events if event["event"] == "round.formed"]
    assert [ballot["round"] for ballot in ballots] == [1, 2] and ballots[0]["epoch"] == ballots[1]["epoch"] > 0
    assert "ballot" not in events[0]
    [failed] = [event for event in events if event["event"] == "group.failed"]
    assert (failed["rank"], failed["reason"], failed["round"], failed["restarts"]) == (1, "exit", 1, 0)
    [culprit] = [e for e in events if e["event"] == "worker.exited" and e["round"] == 1 and e["rank"] == 1]
    assert culprit["status"] == "exit code 7" and culprit["max_rss_kb"] > 0
    [log] = (tmp_path / "logs").glob("myjob_*/events.jsonl")
    assert log.read_text() == text


def test_events_can_go_to_a_descriptor(muster):
    done = muster("run", "--events=-", "true")
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "job.ended"


@pytest.mark.parametrize("mode", ["a", "w"])
@pytest.mark.parametrize("target", ["-", "fd:1"])
def test_events_share_a_file_with_what_is_there_and_what_workers_print(start, tmp_path, target, mode):
    log = tmp_path / "log"
    with open(log, mode) as out:
        print("before", file=out, flush=True)
        assert start("run", f"--events={target}", "seq", "200", stdout=out).wait(timeout=60) == 0
    lines = log.read_text().splitlines()
    assert lines[0] == "before" and [line for line in lines if line.isdigit()] == [str(i + 1) for i in range(200)]
    events = [json.loads(line)["event"] for line in lines if line.startswith("{")]
    assert (events[0], events[-1]) == ("job.started", "job.ended") and len(events) + 201 == len(lines)


def test_events_for_a_descriptor_that_is_not_open_are_told_and_cost_nothing_else(muster):
    done = muster("run", "--events=fd:99", "echo", "ran")
    assert done.returncode == 0 and done.stdout == "ran\n" and "fd:99" in done.stderr


def test_an_events_file_that_cannot_be_written_never_stops_a_job(muster):
    for _ in range(40):
        done = muster("run", "--events=/dev/full", "-t3", "--nproc-per-node=2", "seq", "5")
        assert done.returncode == 0 and done.stderr.count("events: cannot write /dev/full") == 1


def console_events(stderr):
    return [json.loads(line) for line in stderr.splitlines() if line.startswith('{"name": "torchelastic')]


def test_torchs_console_events_are_told_whatever_the_log_level(muster):
    before = time.time() * 1000
    done = muster("run", "--nproc-per-node=2", "--max-restarts=1", "--rdzv-id=myjob", "--event-log-handler=console",
                  "bash", "-c", "[ $RANK = 0 ] && exec sleep 100; exit 7", env=clean_env(LOGLEVEL="ERROR"))
    assert done.returncode == 7
    events = console_events(done.stderr)
    # Torch's own class takes every line as it is.
    from torch.distributed.elastic.events.api import Event
    for line in done.stderr.splitlines():
        if line.startswith('{"name": "torchelastic'):
            assert Event.deserialize(line).metadata["run_id"] == "myjob"
    assert all(before <= event["timestamp"] <= time.time() * 1000 for event in events)
    members = ["run_id", "global_rank", "group_rank", "worker_id", "role", "hostname", "state", "total_run_time",
               "rdzv_backend", "raw_error", "metadata", "agent_restarts", "duration_ms"]
    assert all(list(event["metadata"]) == members for event in events)
    told = [(event["metadata"]["state"], event["source"], event["metadata"]["global_rank"]) for event in events]
    start = [("RENDEZVOUS", "AGENT", None), ("ASSIGN_WORKER_RANKS", "AGENT", None), ("START", "WORKER", 0),
             ("START", "WORKER", 1)]
    assert told == start * 2 + [("TERMINATED", "WORKER", 0), ("FAILED", "WORKER", 1), ("FAILED", "AGENT", None)]
    failed = events[-2]["metadata"]
    inner = json.loads(failed["metadata"])
    assert inner["exit_code"] == [7] and inner["worker_pid"] == [int(failed["worker_id"])]
    assert failed["agent_restarts"] == 1 and json.loads(failed["raw_error"])["message"] == "exit code 7"


def test_success_at_the_console(muster):
    done = muster("run", "--event-log-handler=console", "true")
    assert [event["metadata"]["state"] for event in console_events(done.stderr)][-2:] == ["SUCCEEDED"] * 2


def test_an_unknown_handler_is_refused_at_the_start(muster):
    done = muster("run", "--event-log-handler=nonsense", "echo", "started")
    assert done.returncode == 2 and "nonsense" in done.stderr and "started" not in done.stdout


def test_a_rejected_watchdog_request_is_an_event(muster, tmp_path):
    line = '{"version": 1, "pid": 1, "scope_id": "s", "expiration_time": 9e9, "signal": 9}'
    done = muster("run", "--events=events", "bash", "-c",
                  f"echo '{line}' > $TORCHELASTIC_TIMER_FILE; until grep -q timer.rejected events; do sleep 0.01; done",
                  env=clean_env(TORCHELASTIC_ENABLE_FILE_TIMER="1"))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    [rejected] = [event for event in events if event["event"] == "timer.rejected"]
    assert (rejected["reason"], rejected["detail"]) == ("impossible process number", "pid 1")


def test_an_expired_timer_is_told_in_torchs_words_and_in_ours(muster, tmp_path):
    worker = """printf '{"pid": %d, "scope_id": "step", "expiration_time": %d, "signal": 9}\\n' $$ 1 \
        >"$TORCHELASTIC_TIMER_FILE"; exec sleep 100"""
    done = muster("run", "--events=events", "--event-log-handler=console", "sh", "-c", worker,
                  env=clean_env(TORCHELASTIC_ENABLE_FILE_TIMER="1", LOGLEVEL="ERROR"))
    assert done.returncode == 137, done.stderr
    from torch.distributed.elastic.events.api import Event
    told = [Event.deserialize(line) for line in done.stderr.splitlines() if line.startswith('{"name": ')]
    told = [event for event in told if not event.name.startswith("torchelastic.")]
    assert [event.name for event in told] == ["watchdog started", "timer expired", "kill worker process", "watchdog stopped"]
    members = ["run_id", "global_rank", "group_rank", "worker_id", "role", "hostname", "state", "total_run_time",
               "rdzv_backend", "raw_error", "metadata", "agent_restarts"]
    assert all(list(event.metadata) == members and event.metadata["state"] == "RUNNING" for event in told)
    assert all(json.loads(event.metadata["metadata"])["watchdog_event"] == event.name for event in told)
    timer = json.loads(told[1].metadata["metadata"])
    assert list(timer) == ["watchdog_event", "worker_pid", "scope_id", "expiration_time", "signal"]
    assert (timer["scope_id"], timer["signal"]) == ("step", "9")
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    [ours] = [event for event in events if event["event"] == "timer.expired"]
    assert (ours["rank"], str(ours["pid"]), ours["scope"], ours["signal"]) == (0, timer["worker_pid"], "step", "SIGKILL")
