"""Our client, through muster kv, against our server and both of PyTorch's."""

import socket
import subprocess
import threading

import pytest
from tree import MUSTER, clean_env
from store_server import our_server, torch_server

pytestmark = pytest.mark.xdist_group("kv")  # they share what a fixture starts or builds


@pytest.fixture(scope="module", params=["muster", "libuv", "legacy"])
def server(request):
    with our_server() if request.param == "muster" else torch_server(request.param) as running:
        yield request.param, running[1], running[2]


@pytest.fixture
def kv(server, request):
    """kv('get', 'k') -> (exit code, stdout); keys are the test's own."""

    def call(*args, timeout=30, options=(), **kwargs):
        result = subprocess.run([MUSTER, "kv", "--store", f"{server[1]}:{server[2]}", "--timeout", str(timeout),
                                 "--prefix", request.node.name, *options, *args], env=clean_env(), capture_output=True,
                                text=True, timeout=60, **kwargs)
        call.stderr = result.stderr
        return result.returncode, result.stdout

    call.kind = server[0]
    return call


def test_set_get_add_append_delete(kv):
    assert kv("set", "k", "v1") == (0, "")
    assert kv("get", "k") == (0, "v1\n")
    assert kv("get", "k", options=["--raw"]) == (0, "v1")
    assert kv("set", "k", "") == (0, "")
    assert kv("get", "k") == (0, "\n")
    assert kv("append", "k", "foo") == (0, "")
    assert kv("append", "k", "bar") == (0, "")
    assert kv("get", "k") == (0, "foobar\n")
    assert kv("add", "n") == (0, "1\n")
    assert kv("add", "n", "-5") == (0, "-4\n")
    assert kv("delete", "k") == (0, "")
    assert kv("delete", "k") == (1, "")
    assert kv("check", "n") == (0, "")
    assert kv("check", "n", "k") == (1, "")
    assert kv("get", "k", options=["--no-wait"]) == (1, "")
    assert kv("ping") == (0, "")


def test_several_at_once_and_listing(kv):
    assert kv("set", "a", "1", "b", "22", "c", "") == (0, "")
    assert kv("get", "b", "a", "c") == (0, "22\n1\n\n")
    code, keys = kv("keys")
    assert code == 0 and sorted(keys.split()) == ["a", "b", "c"]
    code, count = kv("len")
    assert code == 0 and int(count) >= 3


def test_compare_and_set(kv):
    assert kv("cas", "k", "", "new") == (0, "new\n")
    assert kv("cas", "k", "wrong", "x") == (1, "new\n")
    assert kv("cas", "k", "new", "newer") == (0, "newer\n")


def test_a_wait_times_out_with_124(kv):
    assert kv("wait", "nope", timeout=2) == (124, "")  # so long that even a busy store has greeted it
    assert "timed out" in kv.stderr
    assert kv("get", "nope", timeout=0.2)[0] == 124
    assert kv("barrier", "alone", "2", timeout=0.2)[0] == 124


def test_waits_and_barriers_end_when_the_others_come(kv):
    results = []
    threads = [threading.Thread(target=lambda: results.append(kv("barrier", "all", "3"))) for _ in range(2)]
    threads.append(threading.Thread(target=lambda: results.append(kv("get", "late"))))
    for thread in threads:
        thread.start()
    assert kv("barrier", "all", "3") == (0, "")
    assert kv("set", "late", "now") == (0, "")
    for thread in threads:
        thread.join(30)
    assert sorted(results) == [(0, ""), (0, ""), (0, "now\n")]


def test_queues(kv):
    if kv.kind == "legacy":
        assert kv("push", "q", "x")[0] == 125
        assert "closed the connection" in kv.stderr
        return
    assert kv("push", "q", "x1") == (0, "")
    assert kv("push", "q", "x2") == (0, "")
    assert kv("qlen", "q") == (0, "2\n")
    assert kv("pop", "q") == (0, "x1\n")
    assert kv("pop", "q", options=["--no-wait"]) == (0, "x2\n")
    assert kv("pop", "q", options=["--no-wait"]) == (1, "")
    assert kv("pop", "q", timeout=0.2)[0] == 124


def test_values_from_stdin_and_limits(kv, tmp_path):
    data = "x" * (8 << 20)
    (tmp_path / "value").write_text(data)
    with open(tmp_path / "value") as f:
        assert kv("set", "big", "-", stdin=f) == (0, "")
    assert kv("get", "big", options=["--raw"]) == (0, data)
    (tmp_path / "value").write_text(data + "x")
    with open(tmp_path / "value") as f:
        assert kv("set", "big", "-", stdin=f)[0] == 125
    assert "larger than 8388608 bytes" in kv.stderr
    assert kv("set", "k" * 8200, "v")[0] == 125
    assert "a store takes at most 8191" in kv.stderr


def test_adding_to_text_says_that_the_store_closed_the_connection(kv):
    kv("set", "t", "text")
    assert kv("add", "t")[0] == 125
    assert "the store closed the connection" in kv.stderr


def test_it_waits_for_a_store_that_is_not_up_yet(start, port):
    early = start("kv", "--store", port.endpoint, "set", "k", "v")
    with our_server(listen=port.endpoint):
        assert early.wait(30) == 0


def test_no_store_is_told_after_the_timeout(muster, port):
    result = muster("kv", "--store", port.endpoint, "--timeout", "1", "get", "k")
    assert result.returncode == 125
    assert f"no store at 127.0.0.1, port {port.number}" in result.stderr and "refused" in result.stderr


def test_a_frozen_server_cannot_outlast_the_timeout(muster):
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        result = muster("kv", "--store", "127.0.0.1:%d" % frozen.getsockname()[1], "--timeout", "0.3", "get", "k")
    assert result.returncode == 124


@pytest.mark.parametrize("args", [(), ("fly",), ("get",), ("set", "k"), ("set", "a", "1", "b"), ("add", "n", "x"),
                                  ("barrier", "b"), ("barrier", "b", "0"), ("len", "x")])
def test_usage_errors_are_2(muster, args):
    with our_server() as (_, host, port):
        assert muster("kv", "--store", f"{host}:{port}", *args).returncode == 2
    assert muster("kv", "get", "k").returncode == 2  # neither --store nor MASTER_ADDR


def test_the_environment_of_a_worker_is_enough(muster):
    with our_server() as (_, host, port):
        env = clean_env(MASTER_ADDR=host, MASTER_PORT=port, WORLD_SIZE=1)
        assert muster("kv", "set", "k", "v", env=env).returncode == 0
        assert muster("kv", "barrier", "b", env=env).returncode == 0
        assert muster("kv", "get", "k", env=env).stdout == "v\n"


def test_bash_workers_and_torch_share_keys(muster):
    from torch.distributed import TCPStore
    with our_server() as (_, host, port):
        store = TCPStore(host, port, is_master=False)
        store.set("from_torch", "hello")
        muster("kv", "--store", f"{host}:{port}", "set", "from_bash", "hi")
        assert store.get("from_bash") == b"hi"
        assert muster("kv", "--store", f"{host}:{port}", "get", "from_torch").stdout == "hello\n"
