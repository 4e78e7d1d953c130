"""Servers for the store tests: ours, and PyTorch's two."""

import contextlib
import socket
import struct
import subprocess
import sys

from tree import MUSTER, clean_env
from waits import read_line

HELLO = b"\x00\xce\xf7\x85\x3c"


@contextlib.contextmanager
def our_server(*options, listen="127.0.0.1:0"):
    """Yields (process, host, port); the process must end with 143 and leave a clean stderr to read."""
    process = subprocess.Popen([MUSTER, "store", "--listen", listen, *options], env=clean_env(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = read_line(process)
        assert line.startswith("listening on "), (line, process.stderr.read())
        host, _, port = line.split()[-1].rpartition(":")
        yield process, host.strip("[]"), int(port)
        assert process.poll() is None, process.stderr.read()
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
        process.stderr.close()
    assert process.returncode == 143


TORCH_SERVER = """
import sys
from datetime import timedelta
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, is_master=True, use_libuv=sys.argv[1] == "libuv", timeout=timedelta(seconds=60))
print(store.port, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def torch_server(kind="libuv"):
    process = subprocess.Popen([sys.executable, "-c", TORCH_SERVER, kind], env=clean_env(), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process, "127.0.0.1", int(read_line(process))
    finally:
        process.communicate("", timeout=60)


def string(data):
    return struct.pack("<Q", len(data)) + data


def connect(host, port, hello=HELLO, timeout=60):
    """A raw connection after its handshake."""
    link = socket.create_connection((host, port), timeout)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(hello)
    return link


def receive(link, size):
    """Exactly `size` bytes, or what came before the end."""
    data = b""
    while len(data) < size:
        more = link.recv(size - len(data))
        if not more:
            break
        data += more
    return data


def is_closed(link):
    """Waits for the server to end the connection; whatever it still sends is dropped."""
    try:
        while link.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True


def ping(link, nonce=7):
    link.sendall(b"\x0d" + struct.pack("<I", nonce))
    return receive(link, 4) == struct.pack("<I", nonce)
