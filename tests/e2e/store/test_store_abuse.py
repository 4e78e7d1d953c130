"""Clients that stall, lie, flood or never read: no other client waits, memory is bounded, and the log names those that are dropped."""

import contextlib
import os
import resource
import socket
import struct
import time
from datetime import timedelta

import pytest
from proc import cpu_share
from store_server import HELLO, connect, is_closed, our_server, ping, receive, string
from torch.distributed import TCPStore
from tree import MUSTER, SANITIZER
from waits import read_line

MIB = 1 << 20
STALL = "2s"  # longer than a busy machine keeps this process from sending its next bytes


def rss(process):
    with open(f"/proc/{process.pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS:"))


def complaint(process):
    return read_line(process, "stderr")


def test_a_handshake_in_pieces_is_accepted():
    with our_server() as (_, host, port):
        link = connect(host, port, b"")
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        other = connect(host, port)
        for byte in HELLO + b"\x0d\x01\x02\x03\x04":
            link.sendall(bytes([byte]))
            assert ping(other)  # has gone through the server after the byte
        assert receive(link, 4) == b"\x01\x02\x03\x04"


@pytest.mark.parametrize("sent, why", [
    (b"GET / HTTP/1.0\r\n\r\n", "not a store client: it began with 0x47"),
    (b"\x00\xce\xf7\x85\x3d", "VALIDATE with the wrong number"),
    (b"\x07", "not a store client: it began with 0x07"),
    (HELLO + HELLO, "a second VALIDATE"),
    (HELLO + b"\x13", "unknown query 19"),
    (HELLO + b"\xff" * 100, "unknown query 255"),
    (HELLO + b"\x03" + struct.pack("<Q", 1 << 63), "a key of 9223372036854775808 bytes; the limit is 8192"),
    (HELLO + b"\x01" + string(b"k") + struct.pack("<Q", 8 * MIB + 1), "a value of 8388609 bytes"),
    (HELLO + b"\x06" + struct.pack("<Q", 131073), "a list of 131073"),
    (HELLO + b"\x06" + struct.pack("<Q", 1) + string(b"a") + b"\x12" + string(b"b") + struct.pack("<q", 2),
     "BARRIER while another wait is unanswered"),
])
def test_what_breaks_the_protocol_is_dropped_by_name(sent, why):
    with our_server() as (process, host, port):
        bystander = connect(host, port)
        offender = connect(host, port, sent)
        address = "%s:%d" % offender.getsockname()
        assert is_closed(offender)
        line = complaint(process)
        assert address in line and why in line
        assert ping(bystander)


def test_replies_before_the_bad_request_still_arrive():
    with our_server() as (_, host, port):
        link = connect(host, port, HELLO + b"\x0d\x01\x00\x00\x00" + b"\x77")
        assert receive(link, 100) == b"\x01\x00\x00\x00"


@pytest.mark.parametrize("sent, why", [
    (b"\x00\xce", "no handshake within 2.0 s"),
    (b"", "no handshake within 2.0 s"),
    (HELLO + b"\x01" + string(b"k") + struct.pack("<Q", MIB) + b"x" * 1000, "half a request (1018 of at least 1048594"),
])
def test_a_client_that_stalls_delays_no_other_and_is_dropped(sent, why):
    with our_server("--stall-timeout", STALL) as (process, host, port):
        bystander = connect(host, port)
        waiting = connect(host, port, HELLO + b"\x06" + struct.pack("<Q", 1) + string(b"never"))
        offender = connect(host, port, sent)
        assert ping(bystander)
        assert is_closed(offender)
        assert why in complaint(process)
        assert ping(bystander) and ping(waiting)  # neither silence between requests nor waiting is a stall


def test_half_requests_cost_what_they_sent_not_what_they_promise():
    with our_server() as (process, host, port):
        before = rss(process)
        half = HELLO + b"\x01" + string(b"k") + struct.pack("<Q", 8 * MIB) + b"x" * 1000
        offenders = [connect(host, port, half) for _ in range(500)]
        assert ping(connect(host, port))
        assert rss(process) - before < 16 * MIB
        assert len(offenders) == 500


def drips_until_dropped(link, deadline):
    """Sends a byte every 20 ms; whether the server ends the connection before the deadline."""
    link.settimeout(0.02)
    while time.monotonic() < deadline:
        try:
            link.sendall(b"x")
            if not link.recv(1):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_a_byte_now_and_then_does_not_defeat_the_stall_timeout():
    with our_server("--stall-timeout", STALL) as (process, host, port):
        offender = connect(host, port, HELLO + b"\x01" + string(b"k") + struct.pack("<Q", MIB))
        assert drips_until_dropped(offender, time.monotonic() + 20)
        assert "half a request" in complaint(process)
        assert ping(connect(host, port))


def test_a_thousand_half_requests_do_not_cost_an_honest_client_its_large_value():
    with our_server() as (_, host, port):
        half = HELLO + b"\x01" + string(b"k") + struct.pack("<Q", 8 * MIB)
        crowd = [connect(host, port, half) for _ in range(1023)]
        assert ping(connect(host, port))  # all of these have been read
        for link in crowd:
            link.sendall(b"x" * 20)  # the rest is read where there is half a request already
        store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=60))
        value = os.urandom(4 * MIB)
        for i in range(5):
            store.set(f"large{i}", value)
            assert store.get(f"large{i}") == value
        assert len(crowd) == 1023


def test_a_client_that_never_reads_is_bounded_and_dropped():
    with our_server("--stall-timeout", STALL) as (process, host, port):
        bystander = connect(host, port, HELLO + b"\x01" + string(b"big") + string(b"x" * 4 * MIB))
        assert ping(bystander)
        before = rss(process)
        offender = connect(host, port)
        offender.setblocking(False)
        get = b"\x03" + string(b"big")
        sent = 0
        try:
            while sent < 256 * MIB:  # twenty million replies of 4 MiB
                sent += offender.send(get * 4096)
        except BlockingIOError:
            pass
        assert sent < 64 * MIB  # requests behind unread replies are not even read
        assert ping(bystander)
        assert rss(process) - before < 24 * MIB
        line = complaint(process)
        assert "it has not read its replies for 2.0 s" in line
        assert ping(bystander)


def test_a_slow_reader_gets_all_of_it():
    with our_server() as (_, host, port):
        value = os.urandom(3 * MIB)
        link = connect(host, port, HELLO + b"\x01" + string(b"big") + string(value))
        link.sendall((b"\x03" + string(b"big")) * 20 + b"\x0d\x01\x00\x00\x00")
        other = connect(host, port)
        for _ in range(20):
            assert receive(link, 8) == struct.pack("<Q", len(value))
            assert ping(other)
            assert receive(link, len(value)) == value
        assert receive(link, 4) == b"\x01\x00\x00\x00"


def test_a_flood_of_small_requests_for_much_is_answered_in_turns():
    with our_server() as (_, host, port):
        fill = connect(host, port)
        for i in range(2000):
            fill.sendall(b"\x01" + string(b"key%06d" % i) + string(b""))
        assert ping(fill)
        flood = connect(host, port, HELLO + b"\x11" * 200)
        other = connect(host, port)
        size = 8 + 2000 * (8 + 9)
        for _ in range(200):
            assert len(receive(flood, size)) == size
            assert ping(other)


def test_the_store_keeps_within_its_memory():
    with our_server("--max-memory", "4M") as (process, host, port):
        bystander = connect(host, port, HELLO + b"\x01" + string(b"kept") + string(b"x" * MIB))
        offender = connect(host, port)
        with contextlib.suppress(ConnectionError):  # it may be closed before all is sent
            offender.sendall(b"".join(b"\x01" + string(b"%d" % i) + string(b"x" * MIB) for i in range(5)))
        assert is_closed(offender)
        assert "the store holds" in complaint(process)
        assert ping(bystander)
        assert SANITIZER or rss(process) < 32 * MIB  # a sanitizer has memory of its own


def test_ten_thousand_connections_take_less_than_50_mb():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 10200:
        pytest.skip(f"the hard limit of open files is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    links = []
    try:
        with our_server() as (process, host, port):
            address = (host, port)
            for i in range(10000):
                link = socket.socket()
                link.connect(address)
                link.sendall(HELLO + b"\x06" + struct.pack("<Q", 1) + string(b"go"))
                links.append(link)
            other = connect(host, port)
            assert ping(other)
            used = rss(process)
            other.sendall(b"\x01" + string(b"go") + string(b""))
            assert all(receive(link, 1) == b"\x00" for link in links)
            print(f"10,000 connections: {used / 1e6:.1f} MB")
            assert used < 50e6
            for link in links:
                link.close()
            links.clear()
            assert ping(other)
    finally:
        for link in links:
            link.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_newcomers_are_turned_away_and_the_loop_rests(start):
    process = start("-c", 'ulimit -n 40; exec "$0" store --listen 127.0.0.1:0', MUSTER, program="bash")
    port = int(read_line(process).rpartition(":")[2])
    links = [connect("127.0.0.1", port) for _ in range(20)]
    assert all(ping(link) for link in links)
    crowd = [connect("127.0.0.1", port, b"") for _ in range(30)]
    assert "no descriptor is left" in complaint(process)
    assert all(ping(link) for link in links)
    assert cpu_share(process.pid) < 1 / 3
    assert len(crowd) == 30


def test_a_taken_port_names_its_holder(muster):
    with our_server() as (process, _, port):
        second = muster("store", "--listen", f"127.0.0.1:{port}")
        assert second.returncode == 125
        assert f"the port is taken by muster (pid {process.pid})" in second.stderr


@pytest.mark.parametrize("listen, host", [("[::1]:0", "::1"), ("localhost:0", "127.0.0.1"), (":0", "127.0.0.1")])
def test_it_listens_where_it_is_told(listen, host):
    with our_server(listen=listen) as (_, _, port):
        assert ping(connect(host, port))


@pytest.mark.skipif(bool(SANITIZER), reason="the sanitizer keeps freed memory on purpose")
def test_memory_comes_back_when_values_go():
    with our_server() as (process, host, port):
        link = connect(host, port)
        before = rss(process)
        for i in range(30):
            link.sendall(b"\x01" + string(b"%d" % i) + string(b"x" * 4 * MIB))
        assert ping(link)
        assert rss(process) - before > 100 * MIB
        for i in range(30):
            link.sendall(b"\x08" + string(b"%d" % i))
        assert receive(link, 8 * 30) == struct.pack("<q", 1) * 30
        assert ping(link)
        assert rss(process) - before < 48 * MIB
