"""Hosts for the tests of many-host jobs: namespaces on a switch, with cables that can be cut.

    with Lab(count=4) as lab:
        node1, node2, *_ = lab.hosts
        agent = node1.start(MUSTER, "run", "--nnodes=2", ...)
        node2.cut()

Every host has its own network, process ids, host name, /etc/hosts, /run, /dev/shm and, if asked for, clocks.
Nothing of it has a name outside: a host is its first process, which reads a pipe of ours. When the
pipe ends, because the test is over or was killed, the kernel ends every process of the host and
takes its network away. Without root all of it happens inside a user namespace."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from proc import alive, children, state, words
from process import Process
from tree import admin_env, clean_env
from waits import DEADLINE, wait_for

RELAY = str(pathlib.Path(__file__).with_name("netns_relay.py"))
NOBODY = "02:00:00:00:00:ff"  # a hardware address that no host has


class Unavailable(Exception):
    """Namespaces cannot be made here, and why."""


class Space:
    """Namespaces of their own, for as long as the first process in them lives."""

    def __init__(self, setup, *flags, inside=None):
        self.enters = ["--net", "--uts", "--ipc", "--mount", "--root", "--pid", *(["--time"] if "--time" in flags else [])]
        enter = []
        if inside and os.geteuid() != 0:
            enter = ["nsenter", f"--target={inside.pid}", "--user", "--preserve-credentials"]
        elif os.geteuid() != 0:
            flags = [*flags, "--user", "--map-root-user"]
        # A shell for init: it reaps what is orphaned.
        self.process = subprocess.Popen(
            [*enter, "unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *flags,
             "bash", "-euc", f"ip link set lo up\n{setup}\necho ready\nread _ || true"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=admin_env())
        if self.process.stdout.readline() != "ready\n":
            self.process.kill()
            raise Unavailable(self.process.communicate()[1].strip())
        self.pid = self.find_init()

    def find_init(self):
        """The shell: under unshare, which is under nsenter where that forked."""
        pid = self.process.pid
        while pathlib.Path(f"/proc/{pid}/comm").read_text() != "bash\n":
            (pid,) = children(pid)
        return pid

    def command(self, *argv):
        user = ["--user", "--preserve-credentials"] if os.geteuid() != 0 else []
        return ["nsenter", f"--target={self.pid}", *user, *self.enters, "--", *map(str, argv)]

    def call(self, *argv, **kwargs):
        """Runs a command there to its end; the standard output."""
        done = subprocess.run(self.command(*argv), text=True, capture_output=True, timeout=DEADLINE,
                              **{"env": admin_env(), **kwargs})
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return done.stdout

    def kill(self):
        """All processes at one stroke, as the kernel does it when the first one dies."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        self.process.communicate(timeout=DEADLINE)


class Guest(Process):
    """A program on a host; `pid` is what it is called outside."""

    def __init__(self, host, popen, log):
        self.host = host
        found = wait_for(lambda: children(popen.pid) or popen.poll() is not None, "a process to start")
        super().__init__(host.name, popen, log, found[0] if found is not True else None)

    def signal(self, number):
        if self.running():
            os.kill(self.pid, number)


class Host:
    """One machine of a lab: name, addresses, a cable to the switch."""

    def __init__(self, lab, number, clock_s):
        self.lab, self.number, self.clock_s = lab, number, clock_s
        self.name, self.ipv4, self.ipv6 = f"node{number}", f"10.77.0.{number}", f"fd77::{number}"
        self.port = f"port{number}"
        self.space = None
        self.started = []
        self.relay = None
        self.boot()

    def boot(self):
        # Addresses without duplicate detection: it takes a second.
        clock = ["--time", f"--monotonic={self.clock_s}", f"--boottime={self.clock_s}"] if self.clock_s else []
        self.space = Space(f"""
            hostname {self.name}
            mount --bind {self.lab.hosts_file} /etc/hosts
            mount -t tmpfs tmpfs /dev/shm
            mount -t tmpfs -o mode=755 tmpfs /run
            mkdir -m 700 /run/here""", *clock, inside=self.lab.switch)
        self.lab.switch.call("bash", "-c", f"ip link del {self.port} 2>/dev/null || true")  # its last cable may still hang there
        self.lab.switch.call("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self.space.pid)
        self.lab.switch.call("ip", "link", "set", self.port, "master", "switch", "up")
        self.space.call("bash", "-ec", f"""
            ip link set eth0 address {self.hardware_address()} up
            ip addr add {self.ipv4}/24 dev eth0
            ip addr add {self.ipv6}/64 dev eth0 nodad""")

    def hardware_address(self):
        return f"02:00:00:00:00:{self.number:02x}"

    def start(self, *argv, env=None, cwd=None, stdin=subprocess.DEVNULL):
        """Starts a program here; its output is collected."""
        log = self.lab.directory / f"{self.name}-{len(self.started)}.log"
        popen = subprocess.Popen(
            self.space.command("env", "-C", cwd or self.lab.directory, *argv), stdin=stdin,
            stdout=log.open("w"), stderr=subprocess.STDOUT,
            env=dict(env or clean_env(), TMPDIR="/run/here", XDG_RUNTIME_DIR="/run/here"))
        process = Guest(self, popen, log)
        self.started.append(process)
        return process

    def call(self, *argv, **kwargs):
        """Runs a program here to its end and returns what it printed."""
        return self.space.call("env", "TMPDIR=/run/here", "XDG_RUNTIME_DIR=/run/here", *argv, **kwargs)

    def is_up(self):
        return alive(self.space.pid)

    def pids(self):
        """All processes of the host but its first, by their names outside."""
        own = os.readlink(f"/proc/{self.space.pid}/ns/pid") if self.is_up() else None
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.readlink(entry / "ns/pid") == own and int(entry.name) != self.space.pid:
                    found.append(int(entry.name))
        return [pid for pid in found if alive(pid)]

    # ---- what can go wrong ----

    def cut(self):
        """Pulls the cable: no peer sees a connection end."""
        self.lab.switch.call("ip", "link", "set", self.port, "down")

    def plug(self):
        self.lab.switch.call("ip", "link", "set", self.port, "up")

    def mute(self, *others):
        """What this host sends to the others gets lost on the way; what they send arrives."""
        self.believe({other: NOBODY for other in others})

    def unmute(self, *others):
        self.believe({other: other.hardware_address() for other in others})

    def believe(self, hardware_addresses):
        """Sends to other hosts at these hardware addresses, whatever they say; all at once."""
        self.space.call("bash", "-ec", "\n".join(
            f"ip neigh replace {address} lladdr {hardware} dev eth0 nud permanent"
            for other, hardware in hardware_addresses.items() for address in (other.ipv4, other.ipv6)))

    def limit(self, mbit):
        """Lets no more than this many Mbit a second through to this host; with a relay where the kernel has no token bucket."""
        tbf = self.lab.switch.command("tc", "qdisc", "add", "dev", self.port, "root", "tbf", "rate", f"{mbit}mbit", "burst", "64kb",
                                      "latency", "50ms")
        if subprocess.run(tbf, capture_output=True, env=admin_env()).returncode != 0:
            self.delay(0, mbit * 1e6 / 8)

    def delay(self, seconds, *rate):
        """Delays every frame from and to this host by this much, with a relay in the cable."""
        inner, outer = f"{self.port}-in", f"{self.port}-out"
        self.lab.switch.call("bash", "-ec", f"""
            ip link set {self.port} nomaster
            ip link add {inner} type veth peer name {outer}
            ip link set {inner} up
            ip link set {outer} master switch up""")
        self.relay = subprocess.Popen(self.lab.switch.command(sys.executable, RELAY, self.port, inner, seconds, *rate),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.relay.stdout.readline() == "ready\n"

    def freeze(self):
        """Stops every process, as a host does that swaps, or whose hypervisor has other things to do."""
        def still():
            pids = self.pids()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            return all(state(pid) in "TtZX" for pid in pids)
        wait_for(still, f"{self.name} to freeze")

    def thaw(self):
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.wake_waiters()

    def wake_waiters(self):
        """nsenter, which stops along with what it waits for."""
        for process in self.started:
            if process.running():
                process.popen.send_signal(signal.SIGCONT)

    def kill(self):
        """All processes die at once; the others see their connections end."""
        self.space.kill()
        self.wake_waiters()
        self.space.wait()

    def power_off(self):
        """All processes die at once, and the others hear nothing of it."""
        self.cut()
        self.kill()


class Lab:
    """A switch and `count` hosts, named node1 and so on. `clocks` sets some ahead, in seconds:
    {2: 20} is node2's monotonic clock."""

    def __init__(self, count=4, clocks=None):
        self.made = tempfile.TemporaryDirectory(prefix="muster-lab-")
        self.directory = pathlib.Path(self.made.name)
        self.hosts_file = self.directory / "hosts"
        self.hosts_file.write_text("127.0.0.1 localhost\n::1 localhost\n" + "".join(
            f"10.77.0.{n} node{n} node{n}-v4\nfd77::{n} node{n} node{n}-v6\n" for n in range(1, count + 1)))
        self.hosts, self.switch = [], None
        try:
            self.switch = Space("""
                sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
                ip link add switch type bridge stp_state 0 forward_delay 0
                ip link set switch up""")
            self.switch.enters = ["--net"]  # cables are laid to process ids, as they are called outside
            for number in range(1, count + 1):
                self.hosts.append(Host(self, number, (clocks or {}).get(number, 0)))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for host in self.hosts:
            host.kill()
            for process in host.started:
                process.popen.wait(DEADLINE)
            if host.relay:
                host.relay.communicate(timeout=DEADLINE)
        if self.switch:
            self.switch.kill()
            self.switch.wait()
        self.made.cleanup()

    def left_behind(self, within=10):
        """What still runs on any host some time after the last agent has ended: must be empty."""
        def left():
            return {host.name: [b" ".join(words(pid)).decode() for pid in pids]
                    for host in self.hosts if (pids := host.pids())}
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not left(), "all processes to end", within)
        return left()
