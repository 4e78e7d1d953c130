"""The hosts of the many-host tests are what they claim to be: what is cut is silent, what is dead is
dead, and nothing is left of them."""

import pathlib
import re
import signal
import socket
import subprocess
import sys
import textwrap

from proc import alive, state
from tree import clean_env
from waits import read_line, wait_for
import netns

ECHO = textwrap.dedent("""
    import socket
    with socket.create_server(("::", 5000), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        print("listens", flush=True)
        while True:
            connection, _ = server.accept()
            while data := connection.recv(65536):
                connection.sendall(data)
    """)

# Prints how the peer answered, and how long 64 KiB took there and back.
ASK = textwrap.dedent("""
    import socket, sys, time
    try:
        with socket.create_connection((sys.argv[1], 5000), timeout=float(sys.argv[2])) as peer:
            start = time.monotonic()
            peer.sendall(b"x" * 65536)
            left = 65536
            while left:
                left -= len(peer.recv(65536)) or sys.exit("closed")
            print("answered", time.monotonic() - start)
    except ConnectionRefusedError:
        print("refused")
    except OSError:
        print("silent")
    """)
SOON, LATE = 0.3, 30


def echo_on(host):
    server = host.start(sys.executable, "-S", "-c", ECHO)
    wait_for(lambda: "listens" in server.text(), "the server to listen")
    return server


def ask(host, name, patience=LATE):
    return host.call(sys.executable, "-S", "-c", ASK, name, patience).split()


def test_hosts_reach_each_other_by_name_over_both_families_until_the_cable_is_cut(make_lab):
    one, two, three = make_lab(3).hosts
    echo_on(two)
    for name in ("node2", "node2-v4", "node2-v6"):
        assert ask(one, name)[0] == "answered"
    assert ask(three, "node1")[0] == "refused"
    assert one.call("hostname") == "node1\n"
    two.cut()
    assert ask(one, "node2-v4", SOON) == ask(one, "node2-v6", SOON) == ["silent"]
    two.plug()
    assert ask(one, "node2")[0] == "answered"


def test_a_muted_host_hears_but_is_not_heard_by_some(make_lab):
    one, two, three = make_lab(3).hosts
    echo_on(two)
    two.mute(one)
    assert ask(one, "node2-v4", SOON) == ask(one, "node2-v6", SOON) == ["silent"]
    assert ask(three, "node2")[0] == "answered"
    two.unmute(one)
    assert ask(one, "node2-v4")[0] == ask(one, "node2-v6")[0] == "answered"


def test_a_slow_cable_delays_everything_both_ways(make_lab):
    one, two = make_lab(2).hosts
    echo_on(two)
    two.delay(0.1)
    answer, seconds = ask(one, "node2")
    assert answer == "answered" and float(seconds) >= 0.2


def test_a_frozen_host_is_silent_and_goes_on_when_it_thaws(make_lab):
    one, two = make_lab(2).hosts
    server = echo_on(two)
    two.freeze()
    assert state(server.pid) == "T" and ask(one, "node2", SOON) == ["silent"]
    two.thaw()
    assert ask(one, "node2")[0] == "answered"
    two.freeze()  # and can be taken down like that


def test_a_killed_host_has_no_processes_and_can_be_booted_again(make_lab):
    lab = make_lab(2)
    one, two = lab.hosts
    server = echo_on(two)
    assert list(lab.left_behind(0)) == ["node2"]
    two.kill()
    assert server.wait() == -signal.SIGKILL and lab.left_behind() == {}
    # The kernel takes the cable away a moment after the last process.
    wait_for(lambda: ask(one, "node2", SOON) == ["silent"], "a host that does not answer")
    two.boot()
    assert ask(one, "node2")[0] == "refused"


def test_clocks_of_a_host_can_be_ahead(make_lab):
    one, two = make_lab(2, clocks={2: 1000}).hosts
    clock = [sys.executable, "-c", "import time; print(time.monotonic())"]
    assert float(two.call(*clock)) - float(one.call(*clock)) > 900


def test_a_killed_test_leaves_no_host_behind(tmp_path, make_lab):
    make_lab(1)  # skips where there are no namespaces
    script = tmp_path / "lab.py"
    script.write_text(textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(pathlib.Path(netns.__file__).parent)!r})
        from netns import Lab
        lab = Lab(2)
        lab.hosts[0].delay(0.1)
        lab.hosts[1].start("sleep", "1000")
        print(lab.switch.pid, lab.hosts[0].relay.pid, *[p for h in lab.hosts for p in [h.space.pid, *h.pids()]], flush=True)
        sys.stdin.read()
        """))
    test = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_env())
    pids = [int(word) for word in read_line(test).split()]
    assert len(pids) == 5 and all(map(alive, pids))
    test.kill()
    test.communicate()
    wait_for(lambda: not any(map(alive, pids)), "everything to end")
    assert not re.search(r"\bport[12]", "".join(name for _, name in socket.if_nameindex()))
