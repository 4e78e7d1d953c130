"""PyTorch's own client against our server: every method, both settings of use_libuv."""

import os
import threading
from datetime import timedelta

import pytest
from store_server import our_server
from torch.distributed import DistError, DistNetworkError, DistStoreError, PrefixStore, QueueEmptyError, TCPStore

pytestmark = pytest.mark.xdist_group("store_torch")  # they share what a fixture starts or builds

KEY_MAX = 8192
VALUE_MAX = 8 << 20


@pytest.fixture(scope="module")
def server():
    with our_server() as running:
        yield running


@pytest.fixture(params=[True, False], ids=["libuv", "legacy"])
def connect(request, server):
    """Clients of one kind; every test has its own keys through a prefix in their names."""

    def call(timeout=30, **kwargs):
        return TCPStore(server[1], server[2], is_master=False, use_libuv=request.param,
                        timeout=timedelta(seconds=timeout), **kwargs)

    call.libuv = request.param
    call.name = f"{request.node.name}/"
    return call


@pytest.fixture
def k(connect):
    return lambda name: connect.name + name


SHORT = timedelta(milliseconds=100)


def test_set_get_append_and_delete(connect, k):
    store = connect()
    store.set(k("a"), "v1")
    assert store.get(k("a")) == b"v1"
    store.set(k("a"), "")
    assert store.get(k("a")) == b""
    store.append(k("a"), "foo")
    store.append(k("a"), "bar")
    assert store.get(k("a")) == b"foobar"
    assert store.delete_key(k("a")) is True
    assert store.delete_key(k("a")) is False
    assert store.check([k("a")]) is False


def test_add_counts_in_text(connect, k):
    store = connect()
    assert [store.add(k("n"), d) for d in (5, -7, 0)] == [5, -2, -2]
    assert store.get(k("n")) == b"-2"


def test_compare_set_has_all_its_outcomes(connect, k):
    store = connect()
    assert store.compare_set(k("c"), "old", "new") == b"old"
    assert store.check([k("c")]) is False
    assert store.compare_set(k("c"), "", "new") == b"new"
    assert store.compare_set(k("c"), "wrong", "x") == b"new"
    assert store.compare_set(k("c"), "new", "newer") == b"newer"


def test_multi_set_and_multi_get(connect, k):
    store = connect()
    names = [k(f"m{i}") for i in range(100)]
    store.multi_set(names, [str(i) * 50 for i in range(100)])
    assert store.multi_get(names) == [(str(i) * 50).encode() for i in range(100)]


def test_check_list_and_count_keys(connect, k):
    store = connect()
    before = store.num_keys()
    store.set(k("x"), "1")
    store.set(k("y"), "2")
    assert store.check([]) is True
    assert store.check([k("x"), k("y")]) is True
    assert store.check([k("x"), k("nope")]) is False
    assert store.num_keys() == before + 2
    assert {k("x"), k("y")} <= set(store.list_keys())


def test_wait_times_out_and_the_connection_goes_on(connect, k):
    store = connect()
    store.set(k("there"), "1")
    store.wait([k("there")], SHORT)
    with pytest.raises(DistStoreError, match="wait timeout after 100ms"):
        store.wait([k("there"), k("nope")], SHORT)
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    with pytest.raises(DistStoreError, match="wait timeout"):
        store.get(k("nope"))
    assert store.get(k("there")) == b"1"


@pytest.mark.parametrize("how", ["set", "add", "append", "multi_set", "compare_set"])
def test_a_waiter_is_woken_by(connect, k, how):
    waiter, other = connect(), connect()
    done = threading.Thread(target=waiter.wait, args=([k(how)], timedelta(seconds=30)))
    done.start()
    {"set": lambda: other.set(k(how), "1"), "add": lambda: other.add(k(how), 1),
     "append": lambda: other.append(k(how), "1"), "multi_set": lambda: other.multi_set([k(how)], ["1"]),
     "compare_set": lambda: other.compare_set(k(how), "", "1")}[how]()
    done.join(20)
    assert not done.is_alive()


def test_barrier_releases_all_clients(connect, k):
    stores = [connect() for _ in range(4)]
    threads = [threading.Thread(target=s.barrier, args=(k("bar"), 4, timedelta(seconds=30))) for s in stores[:3]]
    for t in threads:
        t.start()
    stores[3].barrier(k("bar"), 4, timedelta(seconds=30))
    for t in threads:
        t.join(20)
        assert not t.is_alive()
    with pytest.raises(DistStoreError, match="barrier timeout"):
        stores[0].barrier(k("alone"), 2, SHORT)


def test_queues(connect, k):
    store = connect()
    if not connect.libuv:
        with pytest.raises(NotImplementedError):
            store.queue_push(k("q"), "x")
        return
    store.queue_push(k("q"), "x1")
    store.queue_push(k("q"), "x2")
    assert store.queue_len(k("q")) == 2
    assert store.check([k("q")]) is True
    assert store.queue_pop(k("q")) == b"x1"
    assert store.queue_pop(k("q"), False) == b"x2"
    with pytest.raises(QueueEmptyError):
        store.queue_pop(k("q"), False)
    store.set_timeout(SHORT)
    with pytest.raises(DistStoreError, match="wait timeout"):
        store.queue_pop(k("q"))
    assert store.queue_len(k("absent")) == 0


def test_clone_prefix_and_the_rest(connect, k, server):
    store = connect()
    assert store.has_extended_api() is True
    assert (store.host, store.port, store.libuvBackend) == (server[1], server[2], connect.libuv)
    prefixed = PrefixStore("outer", PrefixStore(k("inner"), store.clone()))
    prefixed.set("key", "z")
    assert store.get(k("inner/outer/key")) == b"z"
    assert prefixed.get("key") == b"z"
    assert prefixed.add("n", 2) == 2
    prefixed.barrier("pb", 1)
    assert sorted(prefixed.list_keys()) == ["key", "n", "pb/last_member", "pb/num_members"]
    assert prefixed.num_keys() == store.num_keys()


def test_a_world_size_counts_its_clients(connect):
    store = connect()
    counted = int(store.get("init/", ) if store.check(["init/"]) else 0)  # "/init/" is not "init/"
    assert counted == 0
    connect(world_size=3)
    connect(world_size=3)
    assert store.num_keys() >= 1


@pytest.mark.parametrize("size", [0, 1, 1439, 1440, 65536, VALUE_MAX])
def test_values_of_any_size(connect, k, size):
    store = connect()
    value = os.urandom(size)
    store.set(k("v"), value)
    assert store.get(k("v")) == value


def test_one_byte_above_the_limits_ends_the_connection(connect, k):
    store = connect()
    at_limit = "k" * (KEY_MAX - 1)  # the client adds a "/"
    store.set(at_limit, "1")
    assert store.get(at_limit) == b"1"
    with pytest.raises(DistError):
        store.set(at_limit + "k", "1")
        store.get(k("x"))
    store = connect()
    with pytest.raises(DistError):
        store.set(k("v"), b"x" * (VALUE_MAX + 1))
        store.get(k("x"))


def test_adding_to_a_value_that_is_not_a_number_ends_the_connection(connect, k):
    store = connect()
    store.set(k("t"), "text")
    with pytest.raises(DistNetworkError):
        store.add(k("t"), 1)
