"""Several agents of one job on this host: what a test needs where name spaces would be too much."""

import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from conftest import DEADLINE, MUSTER, clean_env, wait_for


class Port:
    """A port that the kernel chose and that stays ours: bound, but not listened on, so that agents of
    the test can listen there and nobody else gets it."""

    def __init__(self, host="127.0.0.1"):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((host, 0))
        self.number = self.socket.getsockname()[1]
        self.endpoint = f"{host}:{self.number}"


class Agent:
    """One `muster run`. It has what crew.Crew wants of agents."""

    def __init__(self, name, argv, directory, env):
        self.name, self.host = name, self
        self.log = directory / f"{name}.log"
        self.runtime = pathlib.Path(tempfile.mkdtemp(prefix="muster-"))  # short: there will be sockets in it
        self.popen = subprocess.Popen([MUSTER, *map(str, argv)], stdin=subprocess.DEVNULL, stdout=self.log.open("w"),
                                      stderr=subprocess.STDOUT, cwd=directory,
                                      env=dict(env, XDG_RUNTIME_DIR=str(self.runtime), TMPDIR=str(self.runtime)))
        self.pid = self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def text(self):
        return self.log.read_text(errors="replace")

    def signal(self, number):
        self.popen.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)

    def wait(self, timeout=DEADLINE):
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended within {timeout} s:\n{self.text()}") from None

    def says(self, pattern, timeout=DEADLINE):
        """Waits until it has printed what the pattern finds."""
        try:
            return wait_for(lambda: re.search(pattern, self.text()), f"{self.name} to say {pattern!r}", timeout)
        except AssertionError as late:
            raise AssertionError(f"{late}; it said:\n{self.text()}") from None

    def state(self):
        """/api/state over its private socket."""
        return json.loads(self.get("/api/state"))

    def get(self, path):
        (found,) = [p for p in self.runtime.rglob("http") if p.is_socket()]
        with socket.socket(socket.AF_UNIX) as http:
            http.settimeout(DEADLINE)
            http.connect(str(found))
            http.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            answer = b""
            while part := http.recv(65536):
                answer += part
        return answer.partition(b"\r\n\r\n")[2].decode()


def agent_pid(worker):
    """The agent of a worker, whose parent is the agent's warden."""
    def parent(pid):
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    return parent(parent(worker.pid))


class Agents:
    """The agents of a test, by the order of their start."""

    def __init__(self, directory):
        self.directory = directory
        self.all = []

    def start(self, *args, name=None, command="run", env=None, **environ):
        agent = Agent(name or f"agent{len(self.all)}", [command, *args], self.directory, env or clean_env(**environ))
        self.all.append(agent)
        return agent

    def wait(self):
        return [agent.wait() for agent in self.all]

    def close(self):
        for agent in self.all:
            if agent.running():
                agent.kill()
            agent.popen.wait(DEADLINE)
            shutil.rmtree(agent.runtime, ignore_errors=True)

