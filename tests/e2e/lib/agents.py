"""Several agents of one job on this host: what a test needs where name spaces would be too much."""

import json
import pathlib
import shutil
import socket
import subprocess
import tempfile

from process import Process
from tree import MUSTER, clean_env
from waits import DEADLINE


class Agent(Process):
    """One `muster run`. It has what crew.Crew wants of agents."""

    def __init__(self, name, argv, directory, env):
        self.host = self
        self.runtime = pathlib.Path(tempfile.mkdtemp(prefix="muster-"))  # short: there will be sockets in it
        log = directory / f"{name}.log"
        popen = subprocess.Popen([MUSTER, *map(str, argv)], stdin=subprocess.DEVNULL, stdout=log.open("w"),
                                 stderr=subprocess.STDOUT, cwd=directory,
                                 env=dict(env, XDG_RUNTIME_DIR=str(self.runtime), TMPDIR=str(self.runtime)))
        super().__init__(name, popen, log)

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

