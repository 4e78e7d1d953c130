"""A name server as a cluster has one: it remembers for 30 s that a name did not exist.

usage: name_server.py ADDRESS ZONE LOG

ZONE has lines "NAME ADDRESS [BUT-NOT-FOR]", and is read at every question; LOG gets a line for each question:
"CLIENT NAME found|cached|missing"."""

import pathlib
import socket
import struct
import sys
import time

NEGATIVE_S = 30
A = 1


def question(data):
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode())
        at += data[at] + 1
    return ".".join(labels), struct.unpack("!H", data[at + 1:at + 3])[0], data[12:at + 5]


def answer(data, asked, address):
    head = data[:2] + struct.pack("!HHHHH", 0x8580 if address is not None else 0x8583, 1, int(bool(address)), 0, 0)
    record = b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 0, 4) + socket.inet_aton(address) if address else b""
    return head + asked + record


def main():
    own, zone, log = sys.argv[1:]
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((own, 53))
    missing = {}
    with open(log, "a", buffering=1) as out:
        out.write("ready\n")
        while True:
            data, client = server.recvfrom(4096)
            name, kind, asked = question(data)
            known = {line.split()[0]: line.split()[1:] for line in pathlib.Path(zone).read_text().splitlines()}
            address, *hidden = known.get(name, [None])
            if client[0] in hidden:
                address = None
            cached = missing.get(name, 0) > time.monotonic() and not hidden
            if not address and not cached:
                missing[name] = time.monotonic() + NEGATIVE_S
            out.write(f"{client[0]} {name} {'cached' if cached else 'found' if address else 'missing'}\n")
            found = None if cached or not address else address
            server.sendto(answer(data, asked, found if kind == A else "" if found else None), client)


main()
