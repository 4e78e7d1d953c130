"""A name that takes long to look up: muster does that in a child, which has nothing of muster's and ends with it."""

import contextlib
import os
import pathlib
import signal

import pytest

from netns_job import PORT, Job
from proc import children, gone
from waits import wait_for

SILENT_SERVER = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 53)); input()"


@pytest.fixture
def host(make_lab):
    """A host whose name server never answers."""
    host, = make_lab(1).hosts
    settings = host.lab.directory / "resolv.conf"
    settings.write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n")
    host.call("mount", "--bind", settings, "/etc/resolv.conf")
    host.start("sh", "-c", f"sleep 1000 | python3 -c \"{SILENT_SERVER}\"")
    wait_for(lambda: "0100007F:0035" in host.call("cat", "/proc/net/udp"), "the name server")
    return host


def sockets(pid):
    with contextlib.suppress(FileNotFoundError):
        links = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
        return {link for link in links if link.startswith("socket:")}
    return set()


def lookup_of(agent):
    """The child that has asked the name server; None if there is none."""
    lines = [line.split() for line in agent.host.call("cat", "/proc/net/udp").splitlines()[1:]]
    asking = {f"socket:[{words[9]}]" for words in lines if words[2] == "0100007F:0035"}
    return next((pid for pid in children(agent.pid) if sockets(pid) & asking), None)


def test_a_lookup_that_hangs_has_no_descriptor_of_ours_and_ends_with_the_agent(host):
    job = Job(host.lab, "2", [host, "slow.example.test"]).start(host)
    agent = job.agents[host]
    child = wait_for(lambda: lookup_of(agent), "a look-up")
    assert len(sockets(child)) == 1
    agent.kill()
    agent.wait()
    assert gone([child]) == []
    # Nothing listens there any more, so the next agent can.
    assert f":{PORT:04X} " not in host.call("cat", "/proc/net/tcp", "/proc/net/tcp6")
    job.start(host)
    job.says(host, "node1")
    job.signal(signal.SIGTERM, host)
    job.agents[host].wait()
