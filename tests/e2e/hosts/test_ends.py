"""However a job ends, all of its hosts say the same: the headline, the exit code and the first cause in report.json."""

import json
import signal

import pytest

from netns_job import Job
from tree import BUILD


@pytest.fixture
def lab(make_lab):
    return make_lab(3)


def start(lab, *options, **more):
    job = Job(lab, 3, [lab.hosts[0]], f"--log-dir={lab.directory}/logs", *options, **more).start(*lab.hosts)
    job.round(3)
    return job


def headline(agent):
    lines = [line for line in agent.text().splitlines() if line.startswith("muster: job ")]
    assert len(lines) == 1, agent.text()
    return lines[0]


def same_story(job, code, hosts=None):
    """Waits for the end of all; returns the headline and the first cause on which they agree."""
    hosts = hosts or job.lab.hosts
    job.ends(code, hosts=hosts)
    reports = [json.loads(path.read_text()) for path in job.lab.directory.glob("logs/*/report.json")]
    causes = {report["host"]: report["first_cause"] for report in reports if report["host"] in [host.name for host in hosts]}
    assert len(causes) == len(hosts)
    lines = {host.name: headline(job.agents[host]) for host in hosts}
    first, cause = list(lines.values())[0], list(causes.values())[0]
    assert all(line == first for line in lines.values()), lines
    assert all(other == cause for other in causes.values()), causes
    assert all(report["exit_code"] == code for report in reports if report["host"] in causes), reports
    return first, cause


def test_a_failure_without_restarts(lab):
    job = start(lab)
    job.now.on(lab.hosts[1]).order("exit 7")
    line, cause = same_story(job, 7)
    assert "on node2 ended with exit code 7" in line
    assert cause["host"] == "node2" and cause["exit_code"] == 7 and cause["report"].endswith("report.json")


def test_the_last_words_reach_all_hosts(lab):
    program = "import os, time, sys\nif os.environ['RANK'] == '2': raise ValueError('boom')\ntime.sleep(10**6)\n"
    script = lab.directory / "boom.py"
    script.write_text(program)
    job = Job(lab, 3, [lab.hosts[0]], f"--log-dir={lab.directory}/logs")
    job.workers_command = lambda: [script]
    job.start(*lab.hosts)
    line, cause = same_story(job, 1)
    assert cause["words"] == "ValueError: boom"
    assert all("ValueError: boom" in agent.text() for agent in job.agents.values())


def test_a_hang_that_is_to_end_the_job_ends_it_on_all_hosts(lab):
    """Restarts are left, and the others would wait for the host for join_timeout."""
    job = start(lab, "--hang-timeout=1", "--hang-action=stop", "--max-restarts=3")
    line, cause = same_story(job, 137)
    assert cause["reason"] == "hang" and cause["no_restart"] and cause["signal"] == 9


def test_a_host_that_is_lost_and_does_not_come_back(lab):
    job = start(lab, "--lost-host-timeout=4")
    lost, others = lab.hosts[2], lab.hosts[:2]
    lost.power_off()
    for host in others:
        job.says(host, "node3 is lost: it ")
    line, cause = same_story(job, 124, others)
    assert line == "muster: job failed: node3 was lost: it has been silent for too long"
    assert cause["reason"] == "lost" and cause["host"] == "node3"


def test_a_host_whose_muster_is_stopped(lab):
    job = start(lab, "--lost-host-timeout=2")
    stopped, others = lab.hosts[1], lab.hosts[::2]
    job.signal(signal.SIGTERM, stopped)
    line, cause = same_story(job, 143, others)
    assert line == "muster: job failed: node2 was lost: its muster was stopped by SIGTERM"
    assert cause["reason"] == "left" and cause["signal"] == signal.SIGTERM
    job.ends(143, hosts=[stopped])
    [own] = [json.loads(path.read_text()) for path in lab.directory.glob("logs/*/report.json") if json.loads(path.read_text())["host"] == "node2"]
    assert own["first_cause"] == cause


def test_a_host_that_comes_back_in_time(lab):
    job = start(lab, "--lost-host-timeout=1h")
    job.kill(lab.hosts[1])
    job.says(lab.hosts[0], "waiting up to 1 h 0 min for it to come back")
    job.start(lab.hosts[1])
    job.round(3)
    job.finish()
    job.ends(0)


def test_the_host_that_coordinates_is_lost(lab):
    job = start(lab, "--lost-host-timeout=2")
    lab.hosts[0].power_off()
    job.ends(124, hosts=lab.hosts[1:])
    for host in lab.hosts[1:]:
        assert "(--lost-host-timeout)" in job.agents[host].text()


def test_a_worker_in_state_d_ends_a_job_that_needs_all(lab):
    """Its host can start nothing any more."""
    job = Job(lab, 3, [lab.hosts[0]], f"--log-dir={lab.directory}/logs", "--max-restarts=3")
    job.workers_command = lambda: ["sh", "-c", f'if [ $RANK = 1 ]; then exec {BUILD / "helpers/uninterruptible"}; fi; exec sleep 1000']
    job.start(*lab.hosts, env={"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "1"})
    line, cause = same_story(job, 137)
    assert cause["reason"] == "hang" and cause["no_restart"]
