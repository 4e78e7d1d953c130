"""Nodes that check themselves: the one that stands out is named with its figure and gives way to a spare; healthy ones are named never."""

import glob
import json
import re

import pytest

from netns_job import Job
from tree import SANITIZER

CONF = "--rdzv-conf=last_call_timeout=5,scale_up_delay=1"
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
UNFIT = " is not fit and becomes a spare of last resort: "


@pytest.fixture
def hosts(make_lab):
    return make_lab(4).hosts


def fake_torch(directory, version):
    """A directory for PYTHONPATH in which torch has another version."""
    info = directory / f"torch-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    return directory


def test_a_node_with_another_torch_is_named_and_the_job_starts_without_it(hosts, tmp_path):
    one, two, three, four = hosts
    job = Job(one.lab, "3:4", [one], CONF, "--preflight=versions,limits", f"--log-dir={tmp_path}/logs")
    other, same = fake_torch(tmp_path / "other", "9.9.9"), fake_torch(tmp_path / "same", "8.8.8")
    job.start(one, two, three, env={"PYTHONPATH": str(same)}).start(four, env={"PYTHONPATH": str(other)})
    job.round(3, [one, two, three])
    job.says(one, f"node4{UNFIT}torch 9.9.9, 3 of 4 nodes have 8.8.8")
    job.finish()
    job.ends(0)
    text = job.agents[one].text()
    assert text.count(UNFIT) == 1 and "sbatch --exclude=node4, or muster run --exclude-hosts=node4" in text
    [report] = [json.loads(path.read_text()) for path in (tmp_path / "logs").glob("*/report.json")]
    nodes = {row["name"]: row for row in report["nodes"]}
    assert {name: (row["fit"], row["in_round"], row["facts"]["torch"]) for name, row in nodes.items()} == {
        "node1": (True, True, "8.8.8"), "node2": (True, True, "8.8.8"), "node3": (True, True, "8.8.8"), "node4": (False, False, "9.9.9")}
    assert nodes["node4"]["why"] == "torch 9.9.9, 3 of 4 nodes have 8.8.8"


@pytest.mark.parametrize("env", [{}, {"MUSTER_TOKEN": "a secret"}], ids=["open", "token"])
def test_a_node_with_a_slow_wire_is_told_from_its_partners_and_the_spare_takes_its_place(hosts, env):
    one, two, three, four = hosts
    two.limit(10)
    job = Job(one.lab, "3", [one], "--rdzv-conf=last_call_timeout=300", "--preflight=pairs", env=env)
    job.start(one, two, three)
    job.says(one, f"node2{UNFIT}pair_bandwidth ")
    job.start(four)
    job.round(3, [one, three, four])
    job.finish()
    job.ends(0)
    assert job.agents[one].text().count(UNFIT) == 1


@pytest.mark.skipif(not FAKETIME, reason="libfaketime is not installed")
@pytest.mark.skipif(bool(SANITIZER), reason="libfaketime and a sanitizer both want to come first")
def test_a_node_with_a_wrong_clock_is_named_with_its_offset(hosts):
    one, two, three, four = hosts
    job = Job(one.lab, "4", [one], CONF, "--preflight=limits", '--check=echo {\\"gemm\\": 100}')
    job.start(one, two, three).start(four, env=dict(LD_PRELOAD=FAKETIME[0], FAKETIME="-20s", FAKETIME_DONT_FAKE_MONOTONIC="1"))
    job.round(4)
    job.says(one, "node4 has a wrong clock: ")
    job.finish()
    job.ends(0)
    assert re.search(r"node4 has a wrong clock: (19\.9|20\.0)\d* s behind the middle of [34] nodes", job.agents[one].text())
    assert job.agents[one].text().count("has a wrong clock") == 1


def test_a_node_whose_figure_drops_gives_way_to_the_spare_at_the_next_attempt(hosts, tmp_path):
    """A checker that prints garbage and crashes says nothing about its node."""
    one, two, three, four = hosts
    job = Job(one.lab, "3", [one], CONF, "--max-restarts=3", "--preflight=limits", '--check=cat "$FIGURES"; eval "$THEN"')
    figures = {host: tmp_path / host.name for host in hosts}

    def start(host, text='{"gemm": 100}', then=":"):
        figures[host].write_text(text)
        job.start(host, env={"FIGURES": str(figures[host]), "THEN": then})

    start(one), start(two), start(three, "{garbage", "kill -9 $$")
    job.round(3, [one, two, three])
    start(four)
    job.says(one, "node4 has joined")
    figures[two].write_text('{"gemm": 10}')
    job.now.on(one).order("exit 7")
    job.round(3, [one, three, four])
    job.says(one, f"node2{UNFIT}gemm 10, median of 3 nodes 100")
    job.finish()
    job.ends(0)
    assert job.agents[one].text().count(UNFIT) == 1
