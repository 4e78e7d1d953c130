"""What the hosts of a chaos run find each other by: one class for each kind of discovery.

Hosts 1 to 5 have agents, host 6 has what serves them and is never harmed as a host."""

import pathlib
import sys

from etcd_cluster import ETCD, etcd_env
from tree import MUSTER, clean_env

PORT = 29400
ARBITER = str(pathlib.Path(__file__).with_name("arbiter.py"))


class Service:
    """A program on some hosts that can be killed and started again."""

    environ = {}  # of the agents
    homes = ()  # the hosts of its program, by number
    keeps_data_at_home = False  # a home that is switched off would lose it

    def __init__(self, lab):
        self.lab, self.programs = lab, {}
        self.begin()

    def begin(self):
        """Starts what lives for all jobs."""

    def begin_job(self, run):
        """Starts what lives for one job."""

    def hosts(self):
        return [self.lab.hosts[number - 1] for number in self.homes]

    def command(self, host):
        """The program's command line on a host."""
        raise NotImplementedError

    def start(self, host):
        self.programs[host] = host.start(*self.command(host), env=self.program_env())

    def program_env(self):
        return clean_env()

    def kill(self, host):
        self.programs[host].kill()
        host.wake_waiters()  # it may have been frozen
        self.programs[host].wait()

    def pids(self):
        return {program.pid for program in self.programs.values() if program.running()}

    def options(self, run):
        raise NotImplementedError

    def conf(self):
        return {}

    def works_without(self, hosts):
        """Can the other hosts go on while these are away?"""
        return True

    def can_be_killed(self):
        return bool(self.homes)


class Endpoints(Service):
    """Three of the agents' hosts may coordinate."""

    def options(self, run):
        return [f"--rdzv-endpoint={','.join(f'node{n}:{PORT}' for n in (1, 2, 3))}"]

    def conf(self):
        return {"failover_after": 2}

    def works_without(self, hosts):
        return not {1, 2, 3} <= {host.number for host in hosts}


class EndpointsWithToken(Endpoints):
    environ = {"MUSTER_TOKEN": "known to the five hosts alone"}


class Coordinator(Service):
    """`muster coordinator` on a host of its own."""

    homes = (6,)

    def begin_job(self, run):
        """Agents that were stopped may come back, so the coordinator of the job before may still wait for them."""
        (host,) = self.hosts()
        if host in self.programs:
            self.kill(host)
        self.run = run
        self.start(host)

    def command(self, host):
        return [MUSTER, "coordinator", f"--listen=node6:{PORT}", f"--rdzv-id={self.run}"]

    def options(self, run):
        return [f"--rdzv-endpoint=node6:{PORT}"]


class Etcd(Service):
    """One etcd for all."""

    homes = (6,)
    keeps_data_at_home = True

    def begin(self):
        assert ETCD, "etcd is not installed (scripts/deps test does it)"
        for host in self.hosts():
            self.start(host)

    def command(self, host):
        cluster = ",".join(f"{home.name}=http://{home.ipv4}:2380" for home in self.hosts())
        client, peer = f"http://{host.ipv4}:2379", f"http://{host.ipv4}:2380"
        return [ETCD, "--name", host.name, "--data-dir", "/run/here/etcd", "--unsafe-no-fsync", "--listen-client-urls", client,
                "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", cluster]

    def program_env(self):
        return etcd_env()

    def options(self, run):
        return ["--rdzv-backend=etcd", f"--rdzv-endpoint={','.join(host.name for host in self.hosts())}"]

    def conf(self):
        return {"lease_ttl": 3}


class EtcdOnThree(Etcd):
    """A member on each of three agents' hosts."""

    homes = (1, 2, 3)

    def works_without(self, hosts):
        return len({1, 2, 3} & {host.number for host in hosts}) < 2


class Program(Service):
    """An arbiter of our own behind exec:."""

    homes = (6,)

    def begin(self):
        self.program = self.lab.directory / "discover"
        self.program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{ARBITER}" "$@"\n')
        self.program.chmod(0o755)
        self.start(self.lab.hosts[5])

    def command(self, host):
        return [sys.executable, "-S", ARBITER, "serve", host.ipv4, str(PORT)]

    def options(self, run):
        return [f"--rdzv-backend=exec:{self.program}", f"--rdzv-endpoint={self.lab.hosts[5].ipv4}:{PORT}"]


KINDS = {
    "endpoints": Endpoints,
    "token": EndpointsWithToken,
    "coordinator": Coordinator,
    "etcd": Etcd,
    "etcd3": EtcdOnThree,
    "exec": Program,
}
