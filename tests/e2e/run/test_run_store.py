"""The store that muster run serves to its workers: fresh in every round, only where it must be, and good enough
for everything that torch.distributed does with it."""

import re
import resource
import signal
import socket
import subprocess

import pytest

import able
from tree import MUSTER, MUSTER_SH, clean_env
from waits import read_line, wait_for
from store_server import connect, ping

KV = f"{MUSTER_SH} kv --timeout 60s"


def test_bash_workers_meet_at_a_barrier(muster):
    result = muster("run", "--nproc-per-node", 4, "bash", "-c", f"""
        {KV} set started/$RANK yes && {KV} barrier all && {KV} get started/0 started/1 started/2 started/3 >/dev/null &&
        {KV} add met""")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.split()) == 4


def test_the_agent_serves_it_on_loopback_alone(start):
    process = start("run", "bash", "-c", "echo $TORCHELASTIC_USE_AGENT_STORE $MASTER_ADDR $MASTER_PORT; read x",
                    stdin=subprocess.PIPE)
    used, host, port = read_line(process).split()
    assert (used, host) == ("True", "127.0.0.1")
    assert ping(connect(host, int(port)))
    with open("/proc/net/tcp") as table:
        listeners = [line.split()[1] for line in table if line.split()[3] == "0A"]
    assert [a for a in listeners if int(a.partition(":")[2], 16) == int(port)] == ["0100007F:%04X" % int(port)]
    process.communicate("\n", timeout=60)
    assert process.returncode == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_fifty_restarts_never_see_an_old_key_or_port(muster):
    """Each attempt counts under the same key and port variable; a stale store would show more than the workers."""
    result = muster("run", "--nproc-per-node", 2, "--max-restarts", 50, "bash", "-c", f"""
        {KV} add arrivals >/dev/null; {KV} barrier all || exit 99
        [ $RANK = 0 ] && echo "$TORCHELASTIC_RESTART_COUNT $({KV} get arrivals) $MASTER_PORT"
        {KV} barrier shown || exit 99
        [ $TORCHELASTIC_RESTART_COUNT = 50 ] || exit 7""", timeout=170)
    assert result.returncode == 0, result.stderr
    rounds = [line.split() for line in result.stdout.splitlines()]
    assert [int(r[0]) for r in rounds] == list(range(51))
    assert {r[1] for r in rounds} == {"2"}
    assert all(a[2] != b[2] for a, b in zip(rounds, rounds[1:]))


def test_connections_of_a_dead_round_are_gone_before_the_next_begins(muster, tmp_path):
    """A process that outlives nothing: the store of round 0 is unreachable for the workers of round 1."""
    note = tmp_path / "port"
    result = muster("run", "--max-restarts", 1, "bash", "-c", f"""
        if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then echo $MASTER_PORT >{note}; {KV} set k old; exit 1; fi
        {KV} --no-wait get k; echo fresh $?
        {MUSTER_SH} kv --store 127.0.0.1:$(cat {note}) --timeout 0.2s ping; echo old $?""")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n")[:2] == ["fresh 1", "old 125"]


def test_a_fixed_port_that_is_taken_names_its_holder_and_starts_nothing(muster, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for option in ("--master-port", "--store-port"):
            result = muster("run", option, port, "touch", tmp_path / "ran")
            assert result.returncode == 125
            assert re.search(rf"127\.0\.0\.1:{port}: the port is taken by \S+.* \(pid \d+\)", result.stderr)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("option", ["--master-port", "--store-port"])
def test_a_fixed_port_serves_restart_after_restart(muster, port, option):
    result = muster("run", option, port.number, "--max-restarts", 3, "bash", "-c", f"""
        {KV} add n; echo $MASTER_PORT; [ $TORCHELASTIC_RESTART_COUNT = 3 ]""")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["1", str(port.number)] * 4


def own_address():
    """An address of this host that is not loopback, or none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return None


def test_local_addr_is_where_it_listens_and_what_workers_get(muster):
    address = own_address()
    if not address:
        pytest.skip("this host has no address but loopback")
    result = muster("run", "--local-addr", address, "bash", "-c", f"echo $MASTER_ADDR; {KV} set k v && {KV} get k")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [address, "v"]


def test_ipv6(muster):
    result = muster("run", "--local-addr", "::1", "bash", "-c", f"echo $MASTER_ADDR; {KV} set k v && {KV} get k")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["::1", "v"]


def test_a_name_that_does_not_resolve_is_an_error_at_once(muster):
    result = muster("run", "--local-addr", "no-such-host.invalid", "true")
    assert result.returncode == 125
    assert "look-up of 'no-such-host.invalid'" in result.stderr


def test_workers_get_the_original_descriptor_limit(muster):
    result = muster("run", "bash", "-c", "ulimit -Sn; ulimit -Hn",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (333, 4444)))
    assert result.stdout.split() == ["333", "4444"]


GLOO = """
    import datetime, os, sys
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    rank, world = dist.get_rank(), dist.get_world_size()
    ones = torch.ones(1)
    dist.all_reduce(ones)
    assert ones.item() == world
    dist.barrier()
    dist.monitored_barrier()
    even = dist.new_group(list(range(0, world, 2)))
    if rank % 2 == 0:
        part = torch.ones(1)
        dist.all_reduce(part, group=even)
        assert part.item() == (world + 1) // 2
    objects = [{"from": rank, "n": 7}] if rank == 0 else [None]
    dist.broadcast_object_list(objects, src=0)
    assert objects == [{"from": 0, "n": 7}]
    store = dist.PrefixStore("mine", dist.distributed_c10d._get_default_store())
    store.add("count", 1)
    dist.barrier()
    assert store.get("count") == str(world).encode()
    if os.environ.get("FAIL_UNTIL", "0") > os.environ["TORCHELASTIC_RESTART_COUNT"]:
        sys.exit(3 if rank == world - 1 else 0)
    dist.destroy_process_group()
    os.write(1, b"ok" + bytes([10]))  # in one piece, whatever the other ranks write
"""


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_gloo_with_all_that_uses_the_store(muster, place, ranks):
    result = muster("run", "--nproc-per-node", ranks, place("worker.py", GLOO), timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split() == ["ok"] * ranks


def test_gloo_forms_again_after_restarts(muster, place):
    result = muster("run", "--nproc-per-node", 2, "--max-restarts", 3, place("worker.py", GLOO),
                    env=clean_env(FAIL_UNTIL=3), timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split() == ["ok"] * 2


def test_other_hosts_are_refused_and_logged_now_and_then(make_lab):
    """On an address that others can reach; the job's own host may come, another may not."""
    own, stranger = make_lab(2).hosts
    job = own.start(MUSTER, "run", f"--local-addr={own.ipv4}", "bash", "-c",
                    f"{KV} set here yes && echo port $MASTER_PORT; exec sleep 1000")
    port = wait_for(lambda: (found := re.search(r"^port (\d+)$", job.text(), re.M)) and found[1], "the worker")
    stranger.call("bash", "-ec", f"for i in {{1..40}}; do exec 3<>/dev/tcp/{own.ipv4}/{port}; [ -z \"$(cat <&3)\" ]; done")
    assert own.call(MUSTER, "kv", "--store", f"{own.ipv4}:{port}", "get", "here") == "yes\n"
    told = lambda: job.text().count(f"refused {stranger.ipv4}")
    wait_for(told, "a word of it")
    job.signal(signal.SIGTERM)
    assert job.wait() == 143
    assert told() < 10  # one in ten seconds, however many came


def binds(tmp_path, port):
    """How often a job binds a socket until the store of a second round would be opened."""
    subprocess.run(["strace", "-e", "trace=bind", "-o", tmp_path / "binds", MUSTER, "run", f"--master-port={port.number}", "false"],
                   env=clean_env(ASAN_OPTIONS="detect_leaks=0"), capture_output=True, timeout=60)
    return (tmp_path / "binds").read_text().count("bind(")


@pytest.mark.parametrize("when, code, told", [("", 0, 0), ("+", 125, 2)])
def test_a_pinned_port_that_is_taken_later(tmp_path, port, when, code, told):
    """Taken for a moment: tried again. Taken for good: no worker is started without its store."""
    able.need("strace", "-o", "/dev/null", "true")
    inject = f"inject=bind:error=EADDRINUSE:when={binds(tmp_path, port)}{when}"
    done = subprocess.run(["strace", "-e", "trace=bind", "-e", inject, "-o", tmp_path / "trace", MUSTER, "run",
                           f"--master-port={port.number}", "--max-restarts=2", "sh", "-c",
                           "echo $MASTER_PORT; exec test $TORCHELASTIC_RESTART_COUNT = 1"],
                          env=clean_env(ASAN_OPTIONS="detect_leaks=0"), capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert set(done.stdout.split()) == {str(port.number)}
    assert done.stderr.count(f"listen on {port.endpoint}") == told
