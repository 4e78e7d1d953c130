"""A discovery program that prints what the test sends (oracle.py), until its
standard input ends.

usage: oracle_program.py SOCKET RUN-ID HOST:PORT"""

import json
import os
import select
import socket
import sys

desk = socket.socket(socket.AF_UNIX)
desk.connect(sys.argv[1])
hello = {"args": sys.argv[2:], "id": os.environ.get("MUSTER_DISCOVERY_ID"), "pid": os.getpid(), "agent": os.getppid()}
desk.sendall(json.dumps(hello).encode() + b"\n")
while True:
    ready = select.select([desk, 0], [], [])[0]
    if 0 in ready:
        desk.sendall(b"left\n")
        sys.exit(0)
    data = desk.recv(65536)
    if not data:
        sys.exit(1)
    os.write(1, data)
