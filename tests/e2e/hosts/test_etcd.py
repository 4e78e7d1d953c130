"""muster-discover-etcd alone, against a real etcd: who leads, under which epoch, and what happens when
leaders, etcd or the network go away."""

import base64
import contextlib
import http.server
import itertools
import json
import os
import re
import subprocess
import threading

import pytest

from tree import BUILD, MUSTER, ROOT, clean_env
from waits import DEADLINE, wait_for
from etcd_cluster import Cluster, loopback_address, make_certificates

PROGRAM = BUILD / "libexec" / "muster-discover-etcd"
AGES = 600  # seconds; a lease that outlives every test
run_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One etcd for all tests that do not harm it."""
    with contextlib.closing(Cluster(tmp_path_factory.mktemp("etcd"))) as cluster:
        yield cluster


@pytest.fixture
def run_id():
    return f"job/{os.getpid()} {next(run_numbers)}"


class Candidate:
    """The program at work; what it prints is collected as it comes."""

    def __init__(self, args, env):
        self.process = subprocess.Popen([PROGRAM, *map(str, args)], env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.notes = [], []
        self.came = threading.Condition()
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.notes))]
        for reader in self.readers:
            reader.start()

    def read(self, stream, into):
        for line in stream:
            with self.came:
                into.append(json.loads(line) if into is self.lines else line)
                self.came.notify_all()

    def wait(self, condition, what):
        with self.came:
            assert self.came.wait_for(condition, DEADLINE), f"{what}; so far {self.lines} {self.notes}"

    def told(self, coordinator, above=0):
        """Waits until its last word is that; returns the epoch."""
        self.wait(lambda: self.lines and self.lines[-1]["coordinator"] == coordinator and
                  self.lines[-1]["epoch"] > above, f"no word that {coordinator} leads")
        return self.lines[-1]["epoch"]

    def noted(self, text):
        self.wait(lambda: any(text in note for note in self.notes), f"no note with '{text}'")

    def leave(self):
        """The contract's way: the end of its input."""
        self.process.stdin.close()
        return self.end()

    def end(self):
        code = self.process.wait(DEADLINE)
        for reader in self.readers:
            reader.join(DEADLINE)
        return code


@pytest.fixture
def candidate(run_id):
    started = []

    def start(cluster_or_endpoints, own, ttl=AGES, options=(), **env):
        endpoints = getattr(cluster_or_endpoints, "endpoints", cluster_or_endpoints)
        started.append(Candidate([f"--endpoints={endpoints}", f"--ttl={ttl}", *options, run_id, own],
                                 clean_env(**env)))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.end()


def key_of(run_id):
    return f"/muster/{run_id}/coordinator"


def test_the_first_leads_and_the_second_follows(shared, candidate, run_id):
    first = candidate(shared, "a:1")
    epoch = first.told("a:1")
    second = candidate(shared, "b:1")
    assert second.told("a:1") == epoch
    assert shared.members[0].key(key_of(run_id))["value"].startswith("a:1 ")


def test_a_leader_that_leaves_is_followed_at_once_and_leaves_nothing_behind(shared, candidate, run_id):
    first = candidate(shared, "a:1")
    epoch = first.told("a:1")
    second = candidate(shared, "b:1")
    second.told("a:1")
    assert first.leave() == 0
    assert second.told("b:1") > epoch  # long before the lease would have ended
    assert second.leave() == 0
    assert shared.members[0].key(key_of(run_id)) is None
    assert not first.notes and not second.notes


def test_sigterm_is_a_way_to_leave_too(shared, candidate, run_id):
    first = candidate(shared, "a:1")
    first.told("a:1")
    first.process.terminate()
    assert first.end() == 0
    assert shared.members[0].key(key_of(run_id)) is None


def test_a_leader_that_is_killed_loses_its_place_with_its_lease(shared, candidate):
    first = candidate(shared, "a:1", ttl=2)
    epoch = first.told("a:1")
    others = [candidate(shared, f"b:{i}", ttl=2) for i in range(1, 4)]
    for other in others:
        other.told("a:1")
    first.process.kill()
    for other in others:
        other.wait(lambda o=other: o.lines[-1]["epoch"] > epoch, "no new leader")
    # One of them, the same for all.
    assert len({(o.lines[-1]["coordinator"], o.lines[-1]["epoch"]) for o in others}) == 1
    assert [o for o in others if o.lines[-1]["coordinator"] == o.process.args[-1]]


def test_a_program_restarted_for_the_same_agent_keeps_its_place(shared, candidate):
    first = candidate(shared, "a:1", MUSTER_DISCOVERY_ID="agent1")
    epoch = first.told("a:1")
    first.process.kill()
    first.end()
    again = candidate(shared, "a:1", MUSTER_DISCOVERY_ID="agent1")
    assert again.told("a:1") == epoch
    other = candidate(shared, "b:1")
    other.told("a:1")
    assert again.leave() == 0
    assert other.told("b:1") > epoch


def test_another_agent_at_the_same_address_does_not_inherit_the_epoch(shared, candidate):
    first = candidate(shared, "a:1", ttl=2, MUSTER_DISCOVERY_ID="agent1")
    epoch = first.told("a:1")
    first.process.kill()
    first.end()
    again = candidate(shared, "a:1", ttl=2, MUSTER_DISCOVERY_ID="agent2")
    again.told("a:1")
    assert again.lines[0]["epoch"] > epoch


def test_a_deleted_key_is_a_new_election(shared, candidate, run_id):
    first = candidate(shared, "a:1")
    epoch = first.told("a:1")
    shared.members[0].delete(key_of(run_id))
    first.wait(lambda: first.lines[-1]["epoch"] > epoch, "no new epoch")
    assert first.lines[-1]["coordinator"] == "a:1"


def test_jobs_do_not_see_each_other(shared, candidate, run_id):
    first = candidate(shared, "a:1")
    first.told("a:1")
    other = candidate(shared, "b:1", options=["--prefix=/elsewhere/"])
    other.told("b:1")
    assert shared.members[0].key(f"/elsewhere/{run_id}/coordinator")


def test_a_foreign_value_is_waited_out(shared, candidate, run_id):
    encode = lambda text: base64.b64encode(text.encode()).decode()
    shared.members[0].ask("kv/put", key=encode(key_of(run_id)), value=encode("\x1b[2J\n"))
    first = candidate(shared, "a:1")
    first.noted("does not hold a coordinator")
    assert not first.lines
    shared.members[0].delete(key_of(run_id))
    first.told("a:1")


def test_an_endpoint_that_is_dead_is_passed_over(shared, candidate):
    first = candidate(f"127.0.0.1:1,{shared.endpoints}", "a:1")
    first.told("a:1")
    assert not first.notes


def kept_alive(member, lease):
    """Waits until the lease has been kept alive once more: its time to live has grown."""
    left = lambda: int(member.ask("lease/timetolive", ID=lease).get("TTL", 0))
    lowest = [left()]

    def grown():
        now = left()
        lowest[0] = min(lowest[0], now)
        return now > lowest[0]

    wait_for(grown, "the lease to be kept alive")


def test_the_loss_of_the_member_that_all_use_goes_unnoticed(make_cluster, candidate, run_id):
    cluster = make_cluster(size=3)
    first = candidate(cluster, "a:1", ttl=6)
    epoch = first.told("a:1")
    second = candidate(cluster, "b:1", ttl=6)
    second.told("a:1")
    cluster.members[0].kill()
    left = cluster.members[1]
    wait_for(left.answers, "the members that are left")
    kept_alive(left, left.key(key_of(run_id))["lease"])
    assert [l["epoch"] for l in first.lines + second.lines] == [epoch, epoch]
    first.leave()
    assert second.told("b:1") > epoch


def test_the_loss_of_etcd_is_reported_and_survived(make_cluster, candidate):
    cluster = make_cluster()
    first = candidate(cluster, "a:1", ttl=6)
    epoch = first.told("a:1")
    second = candidate(cluster, "b:1", ttl=6)
    second.told("a:1")
    cluster.members[0].kill()
    for one in (first, second):
        one.noted("no etcd endpoint answers, still trying: ")
        assert one.process.poll() is None
    cluster.members[0].start()
    for one in (first, second):
        one.noted("etcd answers again")
    assert [l["epoch"] for l in first.lines + second.lines] == [epoch, epoch]
    first.leave()
    assert second.told("b:1") > epoch


def test_it_may_leave_while_etcd_is_away(make_cluster, candidate):
    cluster = make_cluster()
    first = candidate(cluster, "a:1")
    first.told("a:1")
    cluster.members[0].kill()
    assert first.leave() == 0


def test_etcd_may_come_later(candidate, make_cluster):
    cluster = make_cluster()
    cluster.members[0].kill()
    first = candidate(cluster, "a:1")
    first.noted("no etcd endpoint answers")
    cluster.members[0].start()
    first.told("a:1")


@pytest.fixture
def tls(tmp_path):
    address = loopback_address()
    return make_certificates(tmp_path / "tls", address), address


def test_over_tls_with_the_right_authority(make_cluster, candidate, tls):
    place, address = tls
    cluster = make_cluster(tls=place, address=address)
    first = candidate(cluster, "a:1", options=[f"--ca-file={place}/ca.pem"])
    first.told("a:1")
    stranger = candidate(cluster, "b:1", options=[f"--ca-file={place}/other-ca.pem"])
    stranger.noted("no etcd endpoint answers, still trying: https://")
    assert not stranger.lines


def test_over_tls_with_a_certificate_of_our_own(make_cluster, candidate, tls):
    place, address = tls
    cluster = make_cluster(tls=place, address=address,
                           options=["--client-cert-auth", "--trusted-ca-file", place / "ca.pem"])
    known = candidate(cluster, "a:1", options=[f"--ca-file={place}/ca.pem", f"--cert-file={place}/client.pem",
                                               f"--key-file={place}/client.key"])
    known.told("a:1")
    stranger = candidate(cluster, "b:1", options=[f"--ca-file={place}/ca.pem"])
    stranger.noted("no etcd endpoint answers, still trying: https://")
    assert not stranger.lines


def enable_auth(member, password):
    """A root, as etcd wants one, and a user who may use our keys and nothing else."""
    encode = lambda text: base64.b64encode(text.encode()).decode()
    for name in ("root", "muster"):
        member.ask("auth/user/add", name=name, password=password)
        member.ask("auth/role/add", name=name)
        member.ask("auth/user/grant", user=name, role=name)
    member.ask("auth/role/grant", name="muster", perm={
        "permType": "READWRITE", "key": encode("/muster/"), "range_end": encode("/muster0")})
    member.ask("auth/enable")


def test_with_a_user_and_a_password(make_cluster, candidate, tmp_path):
    cluster = make_cluster()
    password = 'pass "word" \\ é'
    enable_auth(cluster.members[0], password)
    (tmp_path / "good").write_text(password + "\n", encoding="utf-8")
    (tmp_path / "bad").write_text("guess\n")
    login = lambda file: ["--user=muster", f"--password-file={tmp_path / file}"]

    first = candidate(cluster, "a:1", options=login("good"))
    epoch = first.told("a:1")
    second = candidate(cluster, "b:1", options=login("good"))
    second.told("a:1")
    candidate(cluster, "c:1", options=login("bad")).noted("authentication failed")
    nobody = candidate(cluster, "d:1")
    nobody.noted("no etcd endpoint answers, still trying: ")
    assert not nobody.lines

    # A member that restarts has forgotten its log-ins.
    cluster.members[0].kill()
    cluster.members[0].start()
    wait_for(cluster.members[0].answers, "etcd")
    first.leave()
    assert second.told("b:1") > epoch


GARBAGE = [
    b"", b"hello", b"{}", b"[]", b"null", b"\xff\xfe\x00", b"{" * 5000, b"[" * 60000, b"x" * 10_000_000,
    b'{"header":{"revision":"-5"}}', b'{"header":{"revision":"99999999999999999999999"}}',
    b'{"header":{"revision":"7"},"kvs":"no"}', b'{"header":{"revision":"7"},"kvs":[{"create_revision":"x"}]}',
    b'{"header":{"revision":"7"},"kvs":[{"create_revision":"1","value":"' + b"QUFB" * 10000 + b'"}]}',
]


class Impostor(http.server.ThreadingHTTPServer):
    """Says `answer`, whatever it is asked."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.server.asked.release()
            self.send_response(self.server.status)
            self.send_header("Content-Length", str(len(self.server.answer)))
            self.end_headers()
            try:
                self.wfile.write(self.server.answer)
            except OSError:
                pass  # it did not want to hear all of it

        def log_message(self, *args):
            pass

    def __init__(self, answer, status):
        super().__init__(("127.0.0.1", 0), Impostor.Handler)
        self.answer, self.status = answer, status
        self.asked = threading.Semaphore(0)


@pytest.mark.parametrize("status", [200, 500])
def test_a_server_that_is_not_etcd_is_reported_as_no_answer(candidate, status):
    """All of it at once: one program and one server for each answer."""
    pairs = []
    for answer in GARBAGE:
        server = Impostor(answer, status)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        pairs.append((server, candidate(f"127.0.0.1:{server.server_port}", "a:1")))
    for server, one in pairs:
        for _ in range(2):
            assert server.asked.acquire(timeout=DEADLINE)
        assert one.process.poll() is None
        assert not one.lines
        assert one.leave() == 0
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("args, text", [
    (["job"], "usage:"),
    (["--nonsense", "job", "a:1"], "nonsense"),
    (["--ttl=0", "job", "a:1"], "--ttl: '0'"),
    (["--ttl=x", "job", "a:1"], "--ttl: 'x'"),
    (["--endpoints=", "job", "a:1"], "--endpoints: ''"),
    (["--endpoints=a,,b", "job", "a:1"], "--endpoints: ''"),
    (["--endpoints=http://", "job", "a:1"], "--endpoints: 'http://'"),
    (["--user=me", "job", "a:1"], "need each other"),
    (["--user=me", "--password-file=/nonexistent", "job", "a:1"], "/nonexistent"),
    (["job", "a b"], "'a b' is not HOST:PORT"),
])
def test_a_wrong_command_line_is_refused(args, text):
    result = subprocess.run([PROGRAM, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=DEADLINE, env=clean_env())
    assert result.returncode == 2
    assert text in result.stderr and not result.stdout


def test_help_and_manual_name_every_option():
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, timeout=DEADLINE).stdout
    manual = (ROOT / "man" / "muster-discover-etcd.1").read_text()
    options = re.findall(r"--([a-z-]+)", text)
    assert "endpoints" in options and "ttl" in options
    assert not [name for name in options if name != "rdzv-backend" and f"Fl -{name}" not in manual]


def test_muster_itself_does_not_load_libcurl():
    for program, expected in ((PROGRAM, True), (MUSTER, False)):
        libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        assert ("libcurl" in libraries) == expected
