"""The page of a job, as a program reads it: its address, its streams of events, its wishes."""

import contextlib
import http.client
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from tree import MUSTER
from waits import DEADLINE


class Board:
    """What a page knows after what it was told (proto/dash/board.h)."""

    def __init__(self):
        self.n, self.columns, self.hosts = 0, {}, {}
        self.job, self.attempts, self.about, self.progress = {}, [], {}, {}

    def take(self, told):
        if told.get("all"):
            self.__init__()
            self.n = told["n"]
        for name, values in told.get("c", {}).items():
            if not name.startswith("~"):
                self.columns[name] = values
                continue
            at = 0
            for skip, value in zip(values[::2], values[1::2]):
                at += skip
                self.columns[name[1:]][at] = value
                at += 1
        self.hosts.update(told.get("hosts", []))
        for part in "job", "attempts", "about", "progress":
            setattr(self, part, told.get(part, getattr(self, part)))
        return self

    def running(self, count):
        return self.columns.get("state") == [2] * count


def board_of(events, until):
    """Reads events until the board is as it should be."""
    board = Board()
    return next(board for name, told in events if name == "board" and until(board.take(told)))


def saved(path):
    """What a page holds that `muster report` wrote."""
    return json.loads(re.search(r'<script type="application/json" id="saved">(.*?)</script>', path.read_text(), re.S)[1])


class Page:
    """What `muster dash` prints for a job, and what is behind it."""

    def __init__(self, job, env):
        done = subprocess.run([MUSTER, "dash", job], env=env, text=True, capture_output=True, timeout=DEADLINE)
        assert done.returncode == 0, done.stderr
        self._set(done.stdout.strip())

    def _set(self, address):
        self.address = address
        self.url, _, self.token = address.partition("/#token=")

    @classmethod
    def at(cls, address):
        """A page whose address is known, such as that of a batch."""
        page = cls.__new__(cls)
        page._set(address)
        return page

    def request(self, path, method="GET", token=None, body=None):
        """(code, headers, text)"""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.url + path, method=method, headers=headers, data=body)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def wish(self, **what):
        return self.request("/api/do", "POST", self.token, json.dumps(what).encode())

    @contextlib.contextmanager
    def opened(self, path="/api/stream"):
        """The answer that is a stream, of which nothing has been read."""
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.url).netloc, timeout=DEADLINE)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield answer
        finally:
            connection.close()

    @contextlib.contextmanager
    def stream(self, path="/api/stream"):
        """The events of a stream, one after the other: (name, what it says)."""
        with self.opened(path) as answer:
            yield self.events(answer)

    @staticmethod
    def events(answer):
        name = None
        while line := answer.readline():
            if line.startswith(b"event: "):
                name = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                yield name, json.loads(line[6:])
