"""muster coordinator: correct agents, foreign peers of all kinds, tokens, and how it ends."""

import resource
import signal
import struct
import sys
import urllib.error
import urllib.request

import pytest

import link_peer
from tree import clean_env
from waits import DEADLINE, read_line, wait_for
from link_peer import Peer


class Coordinator:
    def __init__(self, start, tmp_path, *args, preexec_fn=None, **env):
        self.log = tmp_path / f"coordinator-{len(list(tmp_path.iterdir()))}.log"
        self.process = start("coordinator", "--listen", "127.0.0.1:0", *args, env=clean_env(**env),
                             stderr=open(self.log, "w"), preexec_fn=preexec_fn)
        self.port = int(read_line(self.process).rpartition(":")[2])

    def peer(self):
        return Peer(self.port)

    def said(self, words, timeout=DEADLINE):
        """Waits for a line of its log."""
        wait_for(lambda: words in self.log.read_text(), f"'{words}' in {self.log}", timeout)

    def ended(self):
        return self.process.wait(DEADLINE)


@pytest.fixture
def coordinator(start, tmp_path):
    return lambda *args, **env: Coordinator(start, tmp_path, *args, **env)


def joined(coordinator, count, nodes=None, **greeting):
    """Agents that have joined and got their FORMED: [(peer, ballot, rank)]."""
    peers = []
    for i in range(count):
        peer = coordinator.peer()
        assert peer.greet(**greeting) is None
        peer.join(i + 1, nodes or (count, count), name=f"host{i}")
        peers.append(peer)
    formed = [peer.formed() for peer in peers]
    assert sorted(rank for _, rank, *_ in formed) == list(range(count))
    return [(peer, number, rank) for peer, (number, rank, *_) in zip(peers, formed)]


def end_job(members):
    """All workers are done: the ruling, its acknowledgement, CLOSED, good-bye."""
    for peer, number, _ in members:
        peer.send(link_peer.frame(link_peer.DONE, link_peer.ballot(*number)))
    for i, (peer, number, _) in enumerate(members):
        peer.expect(link_peer.STOP)
        peer.join(i + 1, (len(members), len(members)), heard=number, name=f"host{i}",
                  past=link_peer.memory(number, len(members), work=1, ruling=1))
    for peer, number, _ in members:
        assert peer.expect(link_peer.CLOSED)[16] == 1
        peer.send(link_peer.frame(link_peer.LEAVE, link_peer.ballot(*number) + b"\x02\x01"))


def test_agents_form_a_round_and_the_coordinator_ends_with_the_job(coordinator):
    c = coordinator()
    members = joined(c, 3)
    c.said("host2 has joined: 3 of 3:3 nodes are here")
    c.said("formed round 1: 3 nodes, 6 workers")
    end_job(members)
    assert c.ended() == 0
    c.said("the job is over: all workers are done")


def test_ranks_are_contiguous_over_uneven_hosts(coordinator):
    c = coordinator()
    peers = []
    for i, nproc in enumerate((3, 1, 4)):
        peer = c.peer()
        assert peer.greet() is None
        peer.join(i + 1, (3, 3), nproc=nproc)
        peers.append((nproc, peer))
    ranks = sorted((base, nproc, world) for nproc, peer in peers for _, _, _, base, world in [peer.formed()])
    assert [world for _, _, world in ranks] == [8] * 3
    assert [base for base, _, _ in ranks] == [0, ranks[0][1], ranks[0][1] + ranks[1][1]]


def test_a_lost_agent_stops_the_others_at_once(coordinator):
    c = coordinator()
    members = joined(c, 2)
    members[1][0].close()
    members[0][0].expect(link_peer.STOP)
    c.said("host1 is lost")


def test_a_failure_without_budget_ends_the_job_with_its_code(coordinator):
    c = coordinator()
    [(peer, number, _)] = joined(c, 1)
    peer.send(link_peer.frame(link_peer.FAILED, link_peer.ballot(*number) + link_peer.cause(code=7, host="host0")))
    past = link_peer.memory(number, 1, work=2)
    peer.join(1, (1, 1), heard=number, past=past[:-len(link_peer.cause())] + link_peer.cause(code=7, host="host0"))
    peer.expect(link_peer.STOP)
    past = link_peer.memory(number, 1, work=2, ruling=2)
    peer.join(1, (1, 1), heard=number, past=past[:-len(link_peer.cause())] + link_peer.cause(code=7, host="host0"))
    assert peer.expect(link_peer.CLOSED)[16] == 2
    peer.send(link_peer.frame(link_peer.LEAVE, link_peer.ballot(*number) + b"\x02\x01"))
    assert c.ended() == 7
    c.said("exit code 7")


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGINT))
def test_a_signal_ends_it_and_the_agents_see_that(coordinator, sig):
    c = coordinator()
    members = joined(c, 2)
    c.process.send_signal(sig)
    assert c.ended() == 128 + sig
    for peer, *_ in members:
        with pytest.raises(link_peer.Closed):
            while True:
                peer.next_frame()


def test_the_greeting_and_a_join_may_come_byte_by_byte(coordinator):
    c = coordinator(MUSTER_TOKEN="secret")
    peer = c.peer()
    assert peer.greet(token="secret", send=peer.send_slowly) is None
    peer.join(1, (1, 1), send=peer.send_slowly)
    assert peer.formed()[1:3] == (0, 1)


def test_everything_may_come_in_one_piece(coordinator):
    """An agent that does not wait for its welcome: what follows the greeting is taken as well."""
    c = coordinator()
    peer = c.peer()
    said = []
    hello = link_peer.frame(link_peer.HELLO, bytes([0, 0]) + peer.nonce + link_peer.text("1") + link_peer.text("none"))
    peer.join(1, (1, 1), send=said.append)
    peer.send(link_peer.OPENING + hello + said[0])
    assert peer.receive(8) == link_peer.OPENING
    assert peer.next_frame()[0] == link_peer.WELCOME
    assert peer.formed()[1:3] == (0, 1)


# ---- who is not let in ----


def test_another_run_is_refused_by_name(coordinator):
    c = coordinator("--rdzv-id", "alpha")
    reason, words = c.peer().greet(run_id="beta")
    assert reason == "run id" and "'alpha'" in words and "'beta'" in words
    c.said("it belongs to the run 'beta', not to 'alpha'")
    assert c.peer().greet(run_id="alpha") is None


def test_another_version_is_refused_by_name(coordinator):
    c = coordinator()
    peer = c.peer()
    peer.send(b"MUSTER\x01\x05whatever")
    answer = peer.rest()
    assert answer.startswith(link_peer.OPENING)
    length, kind, reason, size = struct.unpack_from("<HBBB", answer, 8)
    assert (kind, link_peer.REASONS[reason]) == (link_peer.REFUSED, "version")
    assert b"version %d.%d of the protocol" % tuple(link_peer.OPENING[6:8]) in answer[13:13 + size]
    c.said("version 1.5")


def test_a_token_must_be_there_and_be_the_same(coordinator, tmp_path):
    secret = tmp_path / "token"
    secret.write_text("a long secret\n")
    c = coordinator("--token-file", secret)
    reason, words = c.peer().greet()
    assert reason == "token" and "token_file=FILE" in words and "MUSTER_TOKEN" in words
    c.said("it has no token")
    reason, words = c.peer().greet(token="another")
    assert reason == "token" and "mismatch" in words
    c.said("token mismatch")
    assert c.peer().greet(token="a long secret") is None


def test_a_token_that_is_not_expected_is_refused(coordinator):
    c = coordinator()
    reason, words = c.peer().greet(token="secret")
    assert reason == "token" and "it has no token" in words
    c.said("it has a token, and this side has none")


def test_a_proof_of_another_connection_is_worth_nothing(coordinator):
    c = coordinator(MUSTER_TOKEN="secret")
    first = c.peer()
    first.hello(token="secret")
    _, challenge = first.next_frame()
    proof = first.proof("secret", challenge, 0)
    second = c.peer()
    second.nonce = first.nonce
    second.hello(token="secret")
    second.next_frame()
    second.send(link_peer.frame(link_peer.PROOF, proof))
    assert second.next_frame()[0] == link_peer.REFUSED


def test_a_probe_is_answered_and_needs_the_token_too(coordinator):
    c = coordinator(MUSTER_TOKEN="secret")
    assert c.peer().greet(role=link_peer.PROBE)[0] == "token"
    probe = c.peer()
    assert probe.greet(role=link_peer.PROBE, token="secret") is None
    assert probe.next_frame() == (link_peer.STANDING, b"\x01" + link_peer.ballot())
    assert probe.rest() == b""
    [(_, number, _)] = joined(c, 1, token="secret")
    probe = c.peer()
    assert probe.greet(role=link_peer.PROBE, token="secret") is None
    assert probe.next_frame() == (link_peer.STANDING, b"\x01" + link_peer.ballot(*number))


def test_an_asker_with_the_token_gets_the_answers_of_agents_and_the_names_of_old_ones(coordinator):
    c = coordinator(MUSTER_TOKEN="secret")
    assert c.peer().greet(role=link_peer.ASKER)[0] == "token"
    agents = [c.peer(), c.peer()]
    for i, (agent, opening) in enumerate(zip(agents, [link_peer.OPENING, link_peer.MINOR_0])):
        assert agent.greet(token="secret", opening=opening) is None
        agent.join(i + 1, (2, 2), name=f"host{i}")
    ranks = [agent.formed()[1] for agent in agents]
    asker = c.peer()
    assert asker.greet(role=link_peer.ASKER, token="secret") is None
    asker.ask(7)
    missed = asker.expect(link_peer.MISSED)[16:]
    assert struct.unpack_from("<IBi", missed) == (7, 3, ranks[1]) and missed[9:] == link_peer.text("host1")
    question = agents[0].expect(link_peer.QUESTION)[16:]
    number, slot, pieces, kind = struct.unpack_from("<IHBB", question)
    assert pieces > 0 and kind == 0 and question.endswith(b"\x04\x00args")
    agents[0].send(link_peer.frame(link_peer.ANSWER, link_peer.ballot() + struct.pack("<IHBBH", number, slot, 1, 0, 4) + b"fine"))
    reply = asker.expect(link_peer.REPLY)[16:]
    assert struct.unpack_from("<IHBBi", reply) == (7, slot, 1, 0, ranks[0])
    assert reply[12:] == link_peer.text("host0") + b"\x04\x00fine"
    asker.send(link_peer.frame(link_peer.TAKEN, link_peer.ballot() + struct.pack("<IHB", 7, slot, 1)))
    assert struct.unpack("<IBII", asker.expect(link_peer.ENDED)[16:]) == (7, 0, 2, 1)
    agents[1].send(link_peer.frame(link_peer.PING, link_peer.ballot() + bytes(16)))
    assert agents[1].next_frame()[0] == link_peer.PONG  # it was sent nothing that it does not know


def test_an_asker_cannot_take_part(coordinator):
    c = coordinator()
    asker = c.peer()
    assert asker.greet(role=link_peer.ASKER) is None
    asker.join(1, (1, 1))
    assert asker.rest() == b""


def test_an_http_client_is_told_what_this_is(coordinator):
    c = coordinator()
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"http://127.0.0.1:{c.port}/healthz", timeout=DEADLINE)
    assert error.value.code == 400
    assert "muster coordinator" in error.value.read().decode()
    c.said("an HTTP client")


TCPSTORE = """
import sys
from torch.distributed import TCPStore
TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False)
"""


def test_a_real_tcpstore_client_is_turned_away_and_named(coordinator, start):
    c = coordinator()
    start("-c", TCPSTORE, c.port, program=sys.executable)  # it would try again for minutes
    c.said("a PyTorch TCPStore client", timeout=3 * DEADLINE)  # imports torch first
    joined(c, 1)


def test_invalid_bytes_end_a_link_and_nothing_else(coordinator):
    c = coordinator()
    members = joined(c, 2)
    stranger = c.peer()
    assert stranger.greet() is None
    stranger.send(link_peer.frame(link_peer.JOIN, b"too short"))
    assert stranger.rest() == b""
    stranger = c.peer()
    stranger.hello()
    stranger.next_frame()
    stranger.send(b"\xff\xff\x10")
    assert stranger.rest() == b""
    end_job(members)
    assert c.ended() == 0


def allow_files(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"{count} open files are not allowed here")
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def test_a_thousand_stalled_connections_delay_no_agent(coordinator):
    allow_files(1200)
    c = coordinator(MUSTER_TOKEN="secret")
    strangers = []
    said = link_peer.OPENING + link_peer.frame(link_peer.HELLO, bytes([0, 1]) + bytes(16) + link_peer.text("1")
                                               + link_peer.text("none")) + link_peer.frame(link_peer.PROOF, bytes(32))
    for i in range(1000):
        strangers.append(c.peer())
        strangers[-1].send(said[:i % (len(said) - 1)])
    members = joined(c, 4, token="secret")
    end_job(members)
    assert c.ended() == 0
    assert len(c.log.read_text().splitlines()) < 1000  # the log stays small, too


@pytest.fixture
def narrow_coordinator(start, tmp_path):
    """One with a limit of open files."""
    def call(files):
        return Coordinator(start, tmp_path,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))

    return call


def test_unauthenticated_connections_make_room_for_agents_when_descriptors_run_out(narrow_coordinator):
    c = narrow_coordinator(60)
    strangers = [c.peer() for _ in range(200)]
    members = joined(c, 4)
    c.said("too many unauthenticated connections")
    end_job(members)
    assert c.ended() == 0
    assert len(strangers) == 200


def test_without_a_descriptor_newcomers_are_told_so_and_members_stay(narrow_coordinator):
    c = narrow_coordinator(60)
    members = joined(c, 2)
    known = []
    for _ in range(100):
        peer = c.peer()
        known.append(peer)
        try:
            refused = peer.greet()
        except (link_peer.Closed, ConnectionError):
            break  # told, but the reset was faster
        if refused:
            assert refused[0] == "busy" and "open files" in refused[1]
            break
    else:
        raise AssertionError("a hundred agents on sixty descriptors")
    c.said("no descriptor is left for it")
    end_job(members)
    assert c.ended() == 0


def test_ten_thousand_bytes_of_an_unauthenticated_peer_are_not_kept(coordinator):
    """What a stranger sends behind half a frame is bounded by the frame."""
    c = coordinator()
    peer = c.peer()
    peer.send(link_peer.OPENING + b"\xff\xff\x01" + bytes(10000))
    try:
        peer.rest()
    except ConnectionResetError:
        pass
    c.said("sent an invalid frame")


# ---- its command line ----


def test_a_taken_port_is_named_with_its_holder(coordinator, muster):
    c = coordinator()
    result = muster("coordinator", "--listen", f"127.0.0.1:{c.port}")
    assert result.returncode == 125
    assert f"(pid {c.process.pid})" in result.stderr


@pytest.mark.parametrize("content", ("", "  \n\n", "x" * 5000))
def test_a_token_file_without_a_token_is_an_error(muster, tmp_path, content):
    secret = tmp_path / "token"
    secret.write_text(content)
    result = muster("coordinator", "--listen", "127.0.0.1:0", "--token-file", secret)
    assert result.returncode in (2, 125) and str(secret) in result.stderr


def test_a_missing_token_file_is_named(muster):
    result = muster("coordinator", "--listen", "127.0.0.1:0", "--token-file", "/no/such/file")
    assert result.returncode == 125 and "/no/such/file" in result.stderr


def test_listening_without_a_token_gives_a_warning(start):
    process = start("coordinator", "--listen", "0.0.0.0:0")
    read_line(process)
    assert "any process that can reach" in read_line(process, "stderr")


# ---- with real agents ----


@pytest.mark.parametrize("token, run_id, agent_says, coordinator_says", (
    ("another", "job", "token mismatch", "token mismatch"),
    ("", "job", "it requires a token: give --rdzv-conf token_file=FILE or set MUSTER_TOKEN", "it has no token"),
    ("secret", "other", "it belongs to the run 'job', this one is 'other'", "it belongs to the run 'other', not to 'job'"),
))
def test_muster_run_is_refused_in_clear_words_and_starts_nothing(coordinator, muster, tmp_path, token, run_id, agent_says,
                                                                 coordinator_says):
    c = coordinator("--rdzv-id", "job", MUSTER_TOKEN="secret")

    def run(token, run_id):
        return muster("run", "--nnodes=1", "--nproc-per-node=1", f"--rdzv-endpoint=127.0.0.1:{c.port}", "--rdzv-id", run_id,
                      "--no-python", "touch", tmp_path / "started", env=clean_env(MUSTER_TOKEN=token))

    result = run(token, run_id)
    assert result.returncode == 125
    assert agent_says in result.stderr
    c.said(coordinator_says)
    assert not (tmp_path / "started").exists()

    assert run("secret", "job").returncode == 0
    assert (tmp_path / "started").exists()
    assert c.ended() == 0
