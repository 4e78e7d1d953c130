"""Discovery programs in the hands of the test: it hears of each, and says what they print."""

import json
import pathlib
import shlex
import socket
import sys
import threading

from waits import DEADLINE

PROGRAM = pathlib.Path(__file__).with_name("oracle_program.py")


class Candidate:
    def __init__(self, connection):
        self.connection = connection
        self.lines = connection.makefile("r")
        hello = json.loads(self.lines.readline())
        self.run_id, self.own = hello["args"]
        self.id, self.pid, self.agent = hello["id"], hello["pid"], hello["agent"]
        self.last = None  # "left": it was sent away; "": it died

    def say(self, text):
        self.connection.sendall(text.encode() + b"\n")


class Oracle:
    def __init__(self, directory):
        self.program = directory / "oracle"
        path = directory / "oracle.socket"
        command = shlex.join(map(str, [sys.executable, "-S", PROGRAM, path]))
        self.program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.program.chmod(0o755)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.candidates = []
        self.news = threading.Condition()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                candidate = Candidate(self.listener.accept()[0])
            except (OSError, ValueError):
                return  # closed
            with self.news:
                self.candidates.append(candidate)
                self.news.notify_all()
            threading.Thread(target=self.hear, args=(candidate,), daemon=True).start()

    def hear(self, candidate):
        try:
            last = candidate.lines.readline().strip()
        except OSError:
            last = ""
        with self.news:
            candidate.last = last
            self.news.notify_all()

    def wait(self, condition, what):
        with self.news:
            assert self.news.wait_for(condition, DEADLINE), what

    def present(self, count):
        """The candidates, once there are this many."""
        self.wait(lambda: len(self.candidates) >= count, f"{count} candidates")
        return self.candidates[:count]

    def of(self, agent):
        """The program that the agent started last."""
        self.wait(lambda: any(c.agent == agent.pid for c in self.candidates), f"a program of {agent.name}")
        return [c for c in self.candidates if c.agent == agent.pid][-1]

    def name(self, leader, epoch):
        """Tells all who are there that this one leads."""
        for candidate in self.candidates:
            if candidate.last is None:
                candidate.say(json.dumps({"coordinator": leader.own, "epoch": epoch}))

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for candidate in self.candidates:
            candidate.connection.close()
