"""The event log: one JSON line for each thing that happened, with real times."""

import json
import time

from conftest import clean_env

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
                        "group.done": 1, "group.gone": 2}.items():
        assert names.count(name) == count, names
    [failed] = [event for event in events if event["event"] == "group.failed"]
    assert (failed["rank"], failed["reason"], failed["round"], failed["restarts"]) == (1, "exit", 1, 0)
    [culprit] = [e for e in events if e["event"] == "worker.exited" and e["round"] == 1 and e["rank"] == 1]
    assert culprit["status"] == "exit code 7" and culprit["max_rss_kb"] > 0
    [log] = (tmp_path / "logs").glob("myjob_*/events.jsonl")
    assert log.read_text() == text


def test_events_can_go_to_a_descriptor(muster):
    done = muster("run", "--events=-", "true")
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "job.ended"
