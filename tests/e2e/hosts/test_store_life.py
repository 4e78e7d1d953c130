"""How long the workers' store lives: until the job ends or the next round begins, whichever node is done first."""

import pytest

from tree import MUSTER_SH
from waits import wait_for

# Ranks meet in the store; then rank 0 is done, and with it the node that serves the store, before rank 1 uses it again.
KV = f"{MUSTER_SH} kv --timeout=20s"
BASH = ["bash", "-c", f"""
    {KV} barrier start 2 || exit 99
    [ $RANK = 0 ] && exit 0
    until [ -e first-is-done.$TORCHELASTIC_RESTART_COUNT ]; do sleep 0.02; done
    echo "took $({KV} add items)"
    [ ! -e fail-once ] || {{ rm fail-once; exit 7; }}"""]

TORCH = """
import os, pathlib, time
from torch.distributed import rendezvous
store, rank, _ = next(iter(rendezvous("env://")))
store.add("here", 1)
while store.add("here", 0) < 2:
    time.sleep(0.01)
if rank == 1:
    while not pathlib.Path("first-is-done.0").exists():
        time.sleep(0.01)
    print("took", store.add("items", 1), flush=True)
"""

FORMS = {"c10d": lambda port, rank: [f"--rdzv-endpoint={port.endpoint}"],
         "static": lambda port, rank: [f"--node-rank={rank}", "--master-addr=127.0.0.1", f"--master-port={port.number}"]}


def events(directory, name):
    return sum(path.read_text().count(f'"{name}"') for path in directory.glob("events.*"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", ["bash", "torch"])
def test_the_store_outlives_the_node_that_serves_it(agents, port, tmp_path, form, command):
    if command == "torch":
        (tmp_path / "train.py").write_text(TORCH)
    for rank in range(2):
        agents.start("--nnodes=2", *FORMS[form](port, rank), f"--events=events.{rank}",
                     *(BASH if command == "bash" else ["train.py"]))
    wait_for(lambda: events(tmp_path, "group.gone"), "one node to be done")
    (tmp_path / "first-is-done.0").touch()
    assert agents.wait() == [0, 0], [agent.text() for agent in agents.all]
    assert sum(agent.text().count("took 1") for agent in agents.all) == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_round_after_that_has_a_store_of_its_own(agents, port, tmp_path, form):
    (tmp_path / "fail-once").touch()
    for rank in range(2):
        agents.start("--nnodes=2", *FORMS[form](port, rank), "--max-restarts=1", f"--events=events.{rank}", *BASH)
    for attempt in range(2):
        wait_for(lambda: events(tmp_path, "group.gone") == 1 + 2 * attempt, "one node to be done")
        (tmp_path / f"first-is-done.{attempt}").touch()
    assert agents.wait() == [0, 0], [agent.text() for agent in agents.all]
    assert sum(agent.text().count("took 1") for agent in agents.all) == 2
