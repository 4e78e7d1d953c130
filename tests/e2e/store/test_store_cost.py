"""What a request costs the server in system calls: a count, so it may decide."""

import re
import signal
import struct
import subprocess

import pytest
import able
from store_server import connect, our_server, receive, string

CONNECTIONS = 64
ROUNDS = 50


@pytest.mark.parametrize("what, request_bytes, reply", [
    ("add", b"\x04" + string(b"/n") + struct.pack("<q", 1), 8),
    ("get", b"\x03" + string(b"/v"), 8 + 64),
    ("set and ping", b"\x01" + string(b"/v") + string(b"x" * 64) + b"\x0d\x01\x00\x00\x00", 4),
])
def test_a_request_costs_one_read_one_write_and_a_share_of_one_wait(tmp_path, what, request_bytes, reply):
    able.need("strace", "-o", "/dev/null", "true")
    log = tmp_path / "calls"
    with our_server() as (process, host, port):
        links = [connect(host, port) for _ in range(CONNECTIONS)]
        links[0].sendall(b"\x01" + string(b"/v") + string(b"x" * 64) + b"\x0d\x01\x00\x00\x00")
        receive(links[0], 4)
        tracer = subprocess.Popen(["strace", "-c", "-f", "-o", log, "-p", str(process.pid)], stderr=subprocess.PIPE,
                                  text=True)
        assert "attached" in tracer.stderr.readline()
        for _ in range(ROUNDS):
            process.send_signal(signal.SIGSTOP)  # so that the requests of a round are there at once, as under load
            for link in links:
                link.sendall(request_bytes)
            process.send_signal(signal.SIGCONT)
            for link in links:
                assert len(receive(link, reply)) == reply
        tracer.terminate()
        tracer.communicate(timeout=60)
    calls = {m[2]: int(m[1]) for m in re.finditer(r"^ *\d+\.\d+ +\S+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", log.read_text(), re.M)}
    calls.pop("total", None)
    requests = CONNECTIONS * ROUNDS
    assert calls["recvfrom"] == pytest.approx(requests, abs=CONNECTIONS)
    assert requests - calls["sendto"] in (0, 1)  # the last one may not have returned when strace ends
    assert sum(calls.values()) / requests <= 2.1, calls
