"""muster.launcher on several nodes: agents under one run id, and when the rendezvous is closed.

Each agent is a process of its own, as on a host of its own.
"""

import contextlib
import json
import signal
import subprocess
import sys
import uuid

import pytest

from tree import python_env
from waits import DEADLINE, read_line, wait_for
from etcd_cluster import Cluster
from launching import launching_program

AGES = 600  # longer than any test: nothing may wait this long


class Nodes:
    """How the agents of one test find each other."""

    def __init__(self, backend, endpoint, etcd, start, tmp_path):
        self.backend, self.endpoint, self.etcd, self.start, self.tmp_path = backend, endpoint, etcd, start, tmp_path
        self.run_id = f"job {uuid.uuid4()}"
        self.started = 0

    def agent(self, entries, nodes="1, 2", hosts=True, entry="work", **more):
        """Starts an agent that launches `entry`, a function, and prints what becomes of it as JSON.
        `hosts`: it is the one that coordinates; the first one is."""
        conf = {"last_call_timeout": AGES, **more.pop("conf", {})}
        if self.backend == "c10d":
            conf["is_host"] = int(hosts)
        else:
            conf["quorum"] = "any"  # one of two goes on alone only if the user allows it
        settings = {"run_id": self.run_id, "rdzv_backend": self.backend, "rdzv_endpoint": self.endpoint,
                    "max_restarts": 0, "rdzv_configs": conf, **more}
        script = self.tmp_path / f"agent{self.started}.py"
        self.started += 1
        script.write_text(launching_program(entries, f"""
            ended = []
            try:
                c = LaunchConfig({nodes}, 2, on_event=lambda e: ended.append(e["event"]), **{settings!r})
                show({{"results": elastic_launch(c, {entry})(), "ends": ended.count("job.ended")}})
            except ChildFailedError as e:
                rank, failure = e.get_first_failure()
                show({{"failed": rank, "exitcode": failure.exitcode, "ends": ended.count("job.ended")}})
            except SignalException as e:
                show({{"signal": int(e.sigval), "ends": ended.count("job.ended")}})
            except Exception as e:
                show({{"error": type(e).__name__, "text": str(e), "ends": ended.count("job.ended")}})
            """))
        process = self.start(script, program=sys.executable, env=python_env())
        if hosts and self.etcd:
            key = f"/muster/{self.run_id}/coordinator"
            wait_for(lambda: self.etcd.members[0].key(key), "the first agent to be elected")
        return process


@pytest.fixture(scope="module")
def etcd(tmp_path_factory):
    """A real one, for all tests: each has a job of its own in it."""
    with contextlib.closing(Cluster(tmp_path_factory.mktemp("etcd"))) as cluster:
        yield cluster


@pytest.fixture(params=["c10d", "etcd"])
def nodes(request, start, tmp_path, port):
    etcd = request.getfixturevalue("etcd") if request.param == "etcd" else None
    endpoint = etcd.endpoints if etcd else port.endpoint
    return Nodes(request.param, endpoint, etcd, start, tmp_path)


def outcome(process):
    try:
        out, err = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    assert out.strip() and process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


SUM = """
    def work():
        import muster
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        with muster.Store() as store:
            store.add("sum", rank)
            store.barrier("all", world)
            return [rank, store.add("sum", 0), world]
"""


def test_an_elastic_job_runs_with_the_fewest_nodes(nodes):
    assert outcome(nodes.agent(SUM, conf={"last_call_timeout": 1})) == {
        "results": {"0": [0, 1, 2], "1": [1, 1, 2]}, "ends": 1}


def test_several_agents_join_under_one_run_id(nodes):
    """Each gets the results of its own workers; the job is shut down once in each."""
    agents = [nodes.agent(SUM), nodes.agent(SUM, hosts=False)]
    found = [outcome(agent) for agent in agents]
    assert [f["ends"] for f in found] == [1, 1]
    ranks = [set(f["results"]) for f in found]
    assert sorted(map(sorted, ranks)) == [["0", "1"], ["2", "3"]]
    assert all(value[1:] == [6, 4] for f in found for value in f["results"].values())


@pytest.mark.parametrize("nodes", ["etcd"], indirect=True)
def test_gloo_over_several_agents(nodes):
    entries = """
        def work():
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            value = torch.tensor([10 + dist.get_rank()])
            dist.all_reduce(value)
            dist.destroy_process_group()
            return value.item()
    """
    agents = [nodes.agent(entries, nodes="2, 2"), nodes.agent(entries, nodes="2, 2", hosts=False)]
    values = {}
    for agent in agents:
        values.update(outcome(agent)["results"])
    assert values == {str(rank): 46 for rank in range(4)}


# Waits in the full job, and returns in a smaller one.
WAITS = """
    def work():
        import signal
        if os.environ["WORLD_SIZE"] == "4":
            os.write(1, b"ready\\n")  # in one piece: two workers share the pipe
            signal.pause()
        return int(os.environ["WORLD_SIZE"])
"""


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_the_rendezvous_open(nodes, sig):
    """The node that got the signal is gone; the other one goes on without it."""
    stays, leaves = nodes.agent(WAITS), nodes.agent(WAITS, hosts=False)
    for agent in (stays, stays, leaves, leaves):
        assert read_line(agent) == "ready\n"
    leaves.send_signal(sig)
    assert outcome(leaves) == {"signal": int(sig), "ends": 1}
    assert outcome(stays) == {"results": {"0": 2, "1": 2}, "ends": 1}


def test_a_failure_closes_the_rendezvous(nodes):
    """No restart is left: the job is over for the other node too, though it could go on alone."""
    entries = WAITS + """
    def fail():
        if os.environ["LOCAL_RANK"] == "0":
            import muster
            with muster.Store() as store:
                store.get("fail")
            os._exit(3)
        import signal
        signal.pause()

    def ask():
        import muster, signal
        with muster.Store() as store:
            store.set("fail", "now")
        signal.pause()
    """
    stays, fails = nodes.agent(entries, entry="ask"), nodes.agent(entries, entry="fail", hosts=False)
    found = outcome(fails)
    assert found["exitcode"] == 3 and found["ends"] == 1
    other = outcome(stays)
    assert "results" not in other and other["ends"] == 1
