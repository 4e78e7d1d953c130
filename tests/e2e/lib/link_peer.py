"""An agent or a stranger on a raw socket, written from docs/PROTOCOL.md alone: what the coordinator is told here is
what the document says, not what the C code happens to send."""

import ctypes
import ctypes.util
import hashlib
import os
import re
import socket
import struct

from tree import ROOT
from waits import DEADLINE

MINOR = int(re.search(r"minor version: (\d+)", (ROOT / "docs/PROTOCOL.md").read_text())[1])
OPENING = b"MUSTER\x02" + bytes([MINOR])
MINOR_0 = b"MUSTER\x02\x00"  # knows no questions
HELLO, CHALLENGE, PROOF, WELCOME, REFUSED, STANDING = range(1, 7)
JOIN, FAILED, DONE, LEAVE, PING, FORMED, STOP, CLOSED, REFUSED_JOIN, PONG, PEERS = range(16, 27)
ASK, TAKEN, ANSWER, QUESTION, GRANT, REPLY, MISSED, ENDED = range(27, 35)
REASONS = ["version", "run id", "token", "standby", "broken", "busy"]
AGENT, PROBE, ASKER = 0, 1, 2


def text(value):
    value = value.encode()
    return bytes([len(value)]) + value


def frame(kind, body):
    return struct.pack("<HB", len(body), kind) + body


def ballot(epoch=0, round=0):
    return struct.pack("<QQ", epoch, round)


def cause(code=0, rank=0, host=""):
    return struct.pack("<BBiBiiiiiBQ", 0, 1 if code else 0, code, 0, 0, 0, rank, 0, 0, 0, 0) + text(host)


def node(ident, nodes, nproc=2, name="host", node_rank=-1):
    low, high = nodes
    period_ns = 3600 * 10**9  # these agents do not ping
    return (struct.pack("<QQIIIiIQQQI", 1, ident, low, high, nproc, node_rank, 0, 0, 0, period_ns, 4) + text("default")
            + text(name) + text("127.0.0.1") + struct.pack("<HB", 29500, 0))


def memory(heard=(0, 0), nodes=0, work=0, ruling=0):
    """Of an agent that was a member of the last round it has heard of."""
    ref = ballot(*heard) + struct.pack("<I", nodes)
    rounds = ballot(*heard) + ballot() * 7
    return ref + ref + rounds + struct.pack("<BiQBiIBB", 0, -1, 0, 0, -1, 0, work, ruling) + cause()


class Seal:
    """One direction of a session with a token."""

    cipher = ctypes.CDLL(ctypes.util.find_library("sodium"))

    def __init__(self, key):
        self.key = key
        self.count = 0

    def nonce(self):
        self.count += 1
        return struct.pack("<QI", self.count - 1, 0)

    def seal(self, plain):
        """A whole frame to a sealed one."""
        length = struct.pack("<H", len(plain) - 3 + 16)
        out = ctypes.create_string_buffer(len(plain) - 2 + 16)
        self.cipher.crypto_aead_chacha20poly1305_ietf_encrypt(
            out, None, plain[2:], ctypes.c_ulonglong(len(plain) - 2), length, ctypes.c_ulonglong(2), None, self.nonce(),
            self.key)
        return length + out.raw

    def open(self, sealed):
        """A whole sealed frame to its type and body."""
        out = ctypes.create_string_buffer(len(sealed) - 2 - 16)
        assert self.cipher.crypto_aead_chacha20poly1305_ietf_decrypt(
            out, None, None, sealed[2:], ctypes.c_ulonglong(len(sealed) - 2), sealed[:2], ctypes.c_ulonglong(2),
            self.nonce(), self.key) == 0
        return out.raw[0], out.raw[1:]


class Closed(Exception):
    """The coordinator has ended the stream."""


class Peer:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.nonce = os.urandom(16)
        self.seal_out = self.seal_in = None  # until a greeting with a token

    def close(self):
        self.socket.close()

    def sealed(self, data):
        """Whole frames as they are sent: with a token, sealed."""
        if not self.seal_out:
            return data
        out = b""
        while data:
            size = 3 + struct.unpack_from("<H", data)[0]
            out += self.seal_out.seal(data[:size])
            data = data[size:]
        return out

    def send(self, data):
        self.socket.sendall(self.sealed(data))

    def send_slowly(self, data):
        for byte in self.sealed(data):
            self.socket.sendall(bytes([byte]))

    def receive(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise Closed(data)
            data += piece
        return data

    def rest(self):
        """Everything up to the end of the stream."""
        data = b""
        while piece := self.socket.recv(65536):
            data += piece
        return data

    def next_frame(self):
        header = self.receive(3)
        length, kind = struct.unpack("<HB", header)
        body = self.receive(length)
        return self.seal_in.open(header + body) if self.seal_in else (kind, body)

    def hello(self, run_id="none", role=AGENT, token=None, send=None, opening=OPENING):
        body = bytes([role, token is not None]) + self.nonce + text("0.0.test") + text(run_id)
        (send or self.send)(opening + frame(HELLO, body))
        assert self.receive(8) == OPENING

    def proof(self, token, challenge, direction, run_id="none", role=AGENT, purpose=b"muster proof 1"):
        key = hashlib.blake2b(b"muster token 1\0" + token.encode(), digest_size=32).digest()
        data = purpose + b"\0" + bytes([direction, role]) + self.nonce + challenge + run_id.encode()
        return hashlib.blake2b(data, key=key, digest_size=32).digest()

    def greet(self, run_id="none", role=AGENT, token=None, send=None, opening=OPENING):
        """The whole greeting; returns the reason and the text if it was refused, else None."""
        self.hello(run_id, role, token, send, opening)
        kind, body = self.next_frame()
        if kind == CHALLENGE:
            (send or self.send)(frame(PROOF, self.proof(token, body, 0, run_id, role)))
            kind, answer = self.next_frame()
            if kind == WELCOME:
                assert answer[:32] == self.proof(token, body, 1, run_id, role)
                self.seal_out, self.seal_in = (
                    Seal(self.proof(token, body, direction, run_id, role, b"muster session 1")) for direction in (0, 1))
                return None
            body = answer
        if kind == REFUSED:
            return REASONS[body[0]], body[2:2 + body[1]].decode()
        assert kind == WELCOME and body[:32] == bytes(32)
        return None

    def join(self, ident, nodes, attempt=1, heard=(0, 0), past=None, send=None, **about):
        body = ballot(*heard) + struct.pack("<I", attempt) + node(ident, nodes, **about) + (past or memory())
        (send or self.send)(frame(JOIN, body))

    def ask(self, ident, kind=0, timeout_s=30, host=""):
        inquiry = struct.pack("<BQBH", kind, timeout_s * 10**9, 0, 4) + b"args"
        self.send(frame(ASK, ballot() + struct.pack("<I", ident) + text(host) + inquiry))

    def expect(self, kind):
        """The next message of that kind; PONGs and PEERS before it do not count."""
        while True:
            got, body = self.next_frame()
            if got == kind:
                return body
            assert got in (PONG, PEERS), got

    def formed(self):
        """(ballot, group rank, nodes, rank base, world size) of the next FORMED."""
        body = self.expect(FORMED)
        fields = struct.unpack_from("<QQ QQI B i IIIIII", body)
        epoch, number, _, _, _, _, _, nodes, group_rank, rank_base, world_size, _, _ = fields
        return (epoch, number), group_rank, nodes, rank_base, world_size
