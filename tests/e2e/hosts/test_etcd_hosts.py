"""Jobs whose coordinator is elected through etcd, on hosts of their own: any of them may be lost."""

import re

import pytest

from tree import MUSTER, clean_env
from waits import DEADLINE
from etcd_cluster import ETCD, etcd_env

LEASE_S = 3
TORCH_DEADLINE = 3 * DEADLINE  # to load it three times takes a while on a busy machine


class Etcd:
    """A member on each of the hosts."""

    def __init__(self, hosts):
        if not ETCD:
            pytest.skip("etcd is not installed (scripts/deps test does it)")
        self.members = {}
        cluster = ",".join(f"{host.name}=http://{host.ipv4}:2380" for host in hosts)
        for host in hosts:
            self.members[host] = host.start(
                ETCD, "--name", host.name, "--data-dir", "/run/here/etcd", "--unsafe-no-fsync",
                "--listen-client-urls", f"http://{host.ipv4}:2379", "--advertise-client-urls", f"http://{host.ipv4}:2379",
                "--listen-peer-urls", f"http://{host.ipv4}:2380", "--initial-advertise-peer-urls",
                f"http://{host.ipv4}:2380", "--initial-cluster", cluster, env=etcd_env())
        self.endpoints = ",".join(host.name for host in hosts)

    def kill(self, *hosts):
        for host in hosts:
            self.members[host].kill()
            self.members[host].wait()


class Job:
    def __init__(self, hosts, etcd, crew, *options, torch=False, nnodes="2:3", conf=(f"lease_ttl={LEASE_S}", "last_call_timeout=600")):
        self.agents = {host: host.start(
            MUSTER, "run", f"--nnodes={nnodes}", "--rdzv-backend=etcd", f"--rdzv-endpoint={etcd.endpoints}",
            "--rdzv-id=job", f"--rdzv-conf={','.join(conf)}", *options,
            *crew.command(*(["--torch"] if torch else [])), env=clean_env(LOGLEVEL="INFO", OMP_NUM_THREADS=1))
            for host in hosts}

    def of(self, *hosts):
        return [self.agents[host] for host in hosts]

    def coordinator(self):
        """The host with the highest epoch that any host has heard of."""
        words = re.findall(r"(\S+):\d+ coordinates, epoch (\d+)", "".join(agent.text() for agent in self.agents.values()))
        address = max(words, key=lambda word: int(word[1]))[0]
        return next(host for host in self.agents if host.ipv4 == address)


@pytest.mark.parametrize("which, how, torch", [
    ("coordinator", "power_off", True), ("coordinator", "kill", False), ("other", "power_off", False), ("other", "kill", False),
])
def test_any_one_host_may_be_lost_and_its_member_of_etcd_with_it(make_lab, crew, which, how, torch):
    hosts = make_lab(3).hosts
    job = Job(hosts, Etcd(hosts), crew, torch=torch)
    round_ = crew.round(3, job.agents.values())
    if torch:
        crew.steps(round_, 3, job.agents.values(), TORCH_DEADLINE)
    coordinator = job.coordinator()
    lost = coordinator if which == "coordinator" else next(h for h in hosts if h is not coordinator)
    getattr(lost, how)()
    left = [host for host in hosts if host is not lost]
    again = crew.round(2, job.of(*left))
    assert sorted(again.hosts) == sorted(host.name for host in left)
    assert again.restarts == 0
    if torch:
        crew.steps(again, 3, job.of(*left), TORCH_DEADLINE)
    again.finish()
    assert [agent.wait() for agent in job.of(*left)] == [0, 0]


def test_the_loss_of_one_member_of_etcd_goes_unnoticed(make_lab, crew):
    hosts = make_lab(3).hosts
    etcd = Etcd(hosts)
    job = Job(hosts, etcd, crew, torch=True)
    round_ = crew.round(3, job.agents.values())
    crew.steps(round_, 3, job.agents.values(), TORCH_DEADLINE)
    etcd.kill(job.coordinator())
    crew.steps(round_, 25 * LEASE_S, job.agents.values(), TORCH_DEADLINE)  # longer than a lease: one takes 50 ms at least
    round_.finish()
    assert [agent.wait() for agent in job.agents.values()] == [0, 0, 0]


def test_a_coordinator_that_is_cut_off_gives_way_and_comes_back_as_a_member(make_lab, crew):
    lab = make_lab(3)
    job = Job(lab.hosts, Etcd(lab.hosts), crew)
    crew.round(3, job.agents.values())
    lost = job.coordinator()
    lost.cut()
    left = [host for host in lab.hosts if host is not lost]
    crew.round(2, job.of(*left))
    lost.plug()
    again = crew.round(3, job.agents.values())
    assert again.restarts == 0
    again.finish()
    assert [agent.wait() for agent in job.agents.values()] == [0, 0, 0]
    assert not [name for name in lab.left_behind() if "muster" in str(lab.left_behind()[name])]


# ---- two nodes: etcd's lease decides, not a majority ----

PERIOD = "keep_alive_interval=500ms"  # the lease is six times as long as workers live without answers


@pytest.fixture
def two(make_lab, crew):
    """Two hosts with a job of one or two nodes, while a third has etcd."""
    lab = make_lab(3)
    *hosts, service = lab.hosts
    job = Job(hosts, Etcd([service]), crew, nnodes="1:2", conf=(PERIOD, "last_call_timeout=600"))
    job.first = crew.round(2, job.agents.values())
    job.leader = job.coordinator()
    job.other = next(host for host in hosts if host is not job.leader)
    return job


@pytest.mark.parametrize("which", ["leader", "other"])
@pytest.mark.parametrize("how", ["kill", "power_off"])
def test_two_nodes_survive_the_loss_of_either(two, crew, which, how):
    lost = getattr(two, which)
    left = two.other if lost is two.leader else two.leader
    getattr(lost, how)()
    alone = crew.round(1, two.of(left))  # at every start, crew sees to it that no worker of another round is alive
    assert alone.hosts == [left.name]
    assert alone.restarts == 0
    alone.finish()
    assert [agent.wait() for agent in two.of(left)] == [0]


@pytest.mark.parametrize("which", ["leader", "other"])
def test_a_node_of_two_that_is_cut_off_stops_before_the_other_goes_on_and_comes_back(two, crew, which):
    lost = getattr(two, which)
    left = two.other if lost is two.leader else two.leader
    lost.cut()
    while crew.round(1, two.of(left)).hosts != [left.name]:
        pass  # the leader may go on alone while its lease lasts
    assert not crew.alive(lost.name)
    lost.plug()
    again = crew.round(2, two.agents.values())
    again.finish()
    assert [agent.wait() for agent in two.agents.values()] == [0, 0]


def test_a_node_that_was_away_when_the_job_ended_does_not_begin_it_again(two, crew):
    two.other.cut()
    alone = crew.round(1, two.of(two.leader))
    alone.finish()
    assert [agent.wait() for agent in two.of(two.leader)] == [0]
    two.other.plug()
    assert [agent.wait() for agent in two.of(two.other)] == [0]
    crew.gone(alone)
    assert [worker.world for worker in crew.workers if worker.host == two.other.name] == [2]
