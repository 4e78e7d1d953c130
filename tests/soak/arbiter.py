"""An arbiter for --rdzv-backend=exec: one server for the lab, and the discovery program that asks it.

usage: arbiter.py serve HOST PORT
       arbiter.py PROGRAM-ARGUMENTS...   (muster-discovery(7)); MUSTER_RDZV_ENDPOINT is where the server is

A client says who it is and then sends a line every BEAT_S. The client that coordinates loses its place when its connection
ends or when it was silent for LEASE_S; then the one that has been there longest gets it. Every client is told of every change.
Epochs are times, so a server that was started again goes on with higher ones."""

import contextlib
import os
import selectors
import socket
import sys
import time

BEAT_S = 0.5
LEASE_S = 3
RETRY_S = 0.5


# ---- the server ----

class Client:
    def __init__(self, connection):
        self.connection, self.rest, self.place, self.run, self.heard = connection, b"", None, None, time.monotonic()


class Server:
    def __init__(self, host, port):
        self.waiting = selectors.DefaultSelector()
        self.listener = socket.create_server((host, int(port)), backlog=64)
        self.waiting.register(self.listener, selectors.EVENT_READ)
        self.clients, self.leaders = [], {}  # of each run: (client, line)

    def serve(self):
        while True:
            for key, _ in self.waiting.select(BEAT_S):
                if key.fileobj is self.listener:
                    self.accept()
                else:
                    self.read(key.data)
            for client in [c for c in self.clients if time.monotonic() - c.heard > LEASE_S]:
                self.drop(client)

    def accept(self):
        connection, _ = self.listener.accept()
        connection.settimeout(1)
        client = Client(connection)
        self.clients.append(client)
        self.waiting.register(connection, selectors.EVENT_READ, client)

    def read(self, client):
        data = b""
        with contextlib.suppress(OSError):
            data = client.connection.recv(4096)
        if not data:
            return self.drop(client)
        client.heard = time.monotonic()
        *lines, client.rest = (client.rest + data).split(b"\n")
        for line in filter(None, lines):  # an empty one is a beat
            client.run, client.place = line.decode().split()
            self.elect(client.run)
            if self.leaders[client.run][0] is not client:
                self.tell(client)

    def elect(self, run):
        if run in self.leaders:
            return
        client = next((c for c in self.clients if c.run == run), None)
        if client:
            epoch = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
            self.leaders[run] = client, f'{{"coordinator":"{client.place}","epoch":{epoch}}}\n'.encode()
            for other in [c for c in self.clients if c.run == run]:
                self.tell(other)

    def tell(self, client):
        with contextlib.suppress(OSError):  # its end will be read
            client.connection.sendall(self.leaders[client.run][1])

    def drop(self, client):
        if client not in self.clients:
            return
        self.clients.remove(client)
        self.waiting.unregister(client.connection)
        client.connection.close()
        if client.run in self.leaders and self.leaders[client.run][0] is client:
            del self.leaders[client.run]
            self.elect(client.run)


# ---- the discovery program ----

def follow(run, place):
    """Prints what the server says, until the connection ends or standard input does."""
    host, _, port = os.environ["MUSTER_RDZV_ENDPOINT"].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=LEASE_S) as server, selectors.DefaultSelector() as waiting:
        server.sendall(f"{run} {place}\n".encode())
        waiting.register(server, selectors.EVENT_READ)
        waiting.register(sys.stdin, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select(BEAT_S):
                if key.fileobj is sys.stdin:
                    sys.exit()
                data = server.recv(4096)
                if not data:
                    return
                sys.stdout.write(data.decode())
                sys.stdout.flush()
            server.sendall(b"\n")


def main():
    if sys.argv[1] == "serve":
        Server(*sys.argv[2:]).serve()
    while True:
        with contextlib.suppress(OSError):
            follow(*sys.argv[1:])
        with selectors.DefaultSelector() as waiting:
            waiting.register(sys.stdin, selectors.EVENT_READ)
            if waiting.select(RETRY_S):
                sys.exit()


if __name__ == "__main__":
    main()
