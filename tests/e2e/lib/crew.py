"""The workers of a job as the test sees them: each reports when it starts, obeys, and is seen to die.

Workers (crew_worker.py) connect to a socket in the file system, which reaches through network
namespaces: the test hears of their starts and deaths at once, also on hosts that are cut off.

Whenever a worker starts, none of another round may be alive anywhere; that is checked here, for every
test. Only frozen hosts are excused."""

import json
import os
import pathlib
import selectors
import socket
import struct
import sys
import time

from waits import DEADLINE

PROGRAM = str(pathlib.Path(__file__).with_name("crew_worker.py"))


class Worker:
    def __init__(self, connection):
        self.connection = connection
        self.pid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        self.rest = b""
        self.environ = {}
        self.steps, self.sums = 0, set()
        self.kept, self.committed = ..., None  # steps: what it began with, and its last one
        self.alive = True

    def order(self, text):
        """"exit N", "commit N" or "finish"."""
        self.connection.sendall(text.encode() + b"\n")

    host = property(lambda self: self.environ["host"])
    rank = property(lambda self: int(self.environ["RANK"]))
    world = property(lambda self: int(self.environ["WORLD_SIZE"]))
    restarts = property(lambda self: int(self.environ["TORCHELASTIC_RESTART_COUNT"]))
    key = property(lambda self: (self.environ["MASTER_ADDR"], self.environ["MASTER_PORT"], self.restarts))

    def __repr__(self):
        return f"<{self.environ.get('host')} rank {self.environ.get('RANK')} of {self.environ.get('WORLD_SIZE')} " \
               f"in {self.environ and self.key}, {'alive' if self.alive else 'dead'}>"


class Round(list):
    """The workers of a round, by rank."""

    hosts = property(lambda self: [worker.host for worker in self])
    key = property(lambda self: self[0].key)
    restarts = property(lambda self: self[0].restarts)

    def on(self, host):
        """The one worker of a host."""
        (found,) = [worker for worker in self if worker.host == host.name]
        return found

    def finish(self):
        for worker in self:
            worker.order("finish")


class Crew:
    def __init__(self, directory):
        self.path = f"{directory}/desk"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o777)
        self.listener.listen(1024)
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(self.listener, selectors.EVENT_READ)
        self.workers = []
        self.seen = set()  # workers of rounds that were handed out: a later round may have the key of an earlier one
        self.excused = set()  # names of hosts that were frozen
        self.strict = True  # one round at a time

    def command(self, *flags):
        """What the agents are to run."""
        return [sys.executable, "-S", PROGRAM, self.path, *flags] if "--torch" not in flags else \
               [sys.executable, PROGRAM, self.path, *flags]

    def close(self):
        for worker in self.workers:
            worker.connection.close()
        self.listener.close()

    def alive(self, host=None):
        return [worker for worker in self.workers if worker.alive and worker.environ and host in (None, worker.host)]

    # ---- waiting ----

    def wait(self, condition, what, timeout=DEADLINE, agents=()):
        """Lives on until the condition holds. Ends early when one of the agents does."""
        end = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            ended = [agent for agent in agents if not agent.running()]
            if ended or time.monotonic() > end:
                why = f"{ended[0].host.name} ended with {ended[0].wait()}" if ended else f"{timeout} s have passed"
                raise AssertionError(f"waited for {what}, but {why}; workers: {self.alive()}\n" +
                                     "\n".join(f"--- {agent.host.name}\n{agent.text()}" for agent in agents))
            self.turn(0.1)

    def round(self, world, agents=(), timeout=DEADLINE):
        """The next complete round that was not returned before; all must agree what it is."""
        def complete():
            new = [worker for worker in self.alive() if worker not in self.seen]
            for key in {worker.key for worker in new}:
                found = Round(sorted((w for w in new if w.key == key), key=lambda w: w.rank))
                if len(found) == world:
                    return found
            return None
        found = self.wait(complete, f"a round of {world}", timeout, agents)
        assert [(w.rank, w.world) for w in found] == [(rank, world) for rank in range(world)], found
        self.seen.update(found)
        return found

    def steps(self, workers, count, agents=(), timeout=DEADLINE):
        """Waits until every worker has made this many steps, and checks what it calculated."""
        goals = {worker: worker.steps + count for worker in workers}
        self.wait(lambda: all(worker.steps >= goal for worker, goal in goals.items()), f"{count} steps of {list(workers)}",
                  timeout, agents)
        for worker in workers:
            assert worker.sums == {worker.world * (worker.world + 1) // 2}, worker

    def gone(self, workers, timeout=DEADLINE):
        self.wait(lambda: not any(worker.alive for worker in workers), f"the end of {list(workers)}", timeout)

    # ---- events ----

    def turn(self, timeout):
        for key, _ in self.waiting.select(timeout):
            if key.fileobj is self.listener:
                self.accept()
            else:
                self.read(key.data)

    def accept(self):
        connection, _ = self.listener.accept()
        worker = Worker(connection)
        self.workers.append(worker)
        self.waiting.register(connection, selectors.EVENT_READ, worker)

    def read(self, worker):
        if not worker.alive:
            return
        try:
            data = worker.connection.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            worker.alive = False
            self.waiting.unregister(worker.connection)
            return
        *lines, worker.rest = (worker.rest + data).split(b"\n")
        for line in lines:
            self.hear(worker, json.loads(line))

    def hear(self, worker, what):
        if "step" in what:
            worker.steps = what["step"]
            worker.sums.add(what["sum"])
            return
        if "kept" in what or "committed" in what:
            worker.kept = what.get("kept", worker.kept)
            worker.committed = what.get("committed", worker.committed)
            return
        worker.environ = what
        if self.strict:
            self.check_only_one_round(worker)

    def check_only_one_round(self, newest):
        self.catch_up(newest)  # a short life may be over before we hear of its start
        others = [w for w in self.alive() if newest.alive and w.key != newest.key]
        for worker in others:
            self.catch_up(worker)
        left = [worker for worker in others if worker.alive and worker.host not in self.excused]
        assert not left or newest.host in self.excused, f"{newest} started while others were alive: {left}"

    def catch_up(self, worker):
        """Reads what it has said, and its end if that is among it."""
        while worker.alive and self.readable(worker):
            self.read(worker)

    @staticmethod
    def readable(worker):
        with selectors.DefaultSelector() as one:
            one.register(worker.connection, selectors.EVENT_READ)
            return bool(one.select(0))
