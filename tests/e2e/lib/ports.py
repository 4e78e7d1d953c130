"""Ports that no other process can be given."""

import socket


class Port:
    """A port that the kernel chose and that stays ours: bound, but not listened on, so that programs
    of the test, which set SO_REUSEADDR, can listen there and no other process gets it."""

    def __init__(self, host="127.0.0.1"):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((host, 0))
        self.number = self.socket.getsockname()[1]
        self.endpoint = f"{host}:{self.number}"

    def close(self):
        self.socket.close()
