"""The Python package in a worker: errors, timers, heartbeat, the store; with torch's own parts as the peer."""

import json
import re
import subprocess
import sys
import textwrap

from able import need_own_name
from tree import MUSTER, ROOT, python_env
from waits import DEADLINE


def run_workers(tmp_path, source, *options, nproc=1, launcher=None):
    """Runs a script under a launcher, ours unless another is named."""
    script = tmp_path / "worker.py"
    script.write_text(textwrap.dedent(source))
    command = launcher or [MUSTER, "run"]
    return subprocess.run([*command, f"--nproc-per-node={nproc}", *options, str(script)], env=python_env(), cwd=tmp_path,
                          capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)


# -- loading --


def test_importing_loads_neither_torch_nor_the_library(python):
    loaded = python("""
        import sys
        before = set(sys.modules)
        import muster
        muster.record
        print(sorted(name for name in set(sys.modules) - before if name.split(".")[0] in ("torch", "ctypes", "numpy")))
        """).stdout
    assert loaded == "[]\n"


def test_everything_promised_is_there(python):
    python("""
        import muster
        assert sorted(muster.__all__) == sorted(["Kept", "Store", "__version__", "batch", "heartbeat", "keep", "launcher", "record",
                                                   "save_after", "saved", "section", "step", "stop_after", "timer"])
        assert all(getattr(muster, name) is not None for name in muster.__all__)
        from muster import Kept, Store, batch, heartbeat, keep, launcher, record, save_after, saved, section, step, stop_after, timer
        from muster.batch import CorePool, Runner, WorkerFailed, WorkOrder
        from muster.launcher import LaunchConfig, elastic_launch, launch_agent, ChildFailedError, SignalException
        try:
            muster.nothing
        except AttributeError as e:
            assert "nothing" in str(e)
        """)


def test_a_missing_library_is_named(python):
    done = python("import muster; muster.heartbeat()", env=python_env(MUSTER_LIBRARY="/nowhere.so"), check=False)
    assert "ImportError" in done.stderr and "MUSTER_LIBRARY" in done.stderr


def test_python_m_muster_is_the_program(tmp_path):
    done = subprocess.run([sys.executable, "-m", "muster", "run", "sh", "-c", "exit 7"], env=python_env(), cwd=tmp_path,
                          timeout=DEADLINE, capture_output=True)
    assert done.returncode == 7


# -- record --

FAILS = """
    from {module} import record

    @record
    def main():
        raise ValueError("boom \\u00e4")

    main()
"""
OURS, TORCHS = "muster", "torch.distributed.elastic.multiprocessing.errors"


def recorded(tmp_path):
    return [json.loads(path.read_text()) for path in (tmp_path / "logs").rglob("error.json")]


def test_our_record_writes_what_torchs_does(tmp_path):
    texts = []
    for module in (OURS, TORCHS):
        directory = tmp_path / module
        directory.mkdir()
        run_workers(directory, FAILS.format(module=module), "--log-dir=logs")
        [data] = recorded(directory)
        info = data["message"].pop("extraInfo")
        assert info.keys() == {"py_callstack", "timestamp"} and re.fullmatch(r"\d+", info["timestamp"])
        texts.append((data, info["py_callstack"].splitlines()[-4:]))
    assert texts[0][0] == texts[1][0] == {"message": {"message": "ValueError: boom \u00e4"}}
    assert texts[0][1][-1] == texts[1][1][-1]


def test_torchs_agent_reads_our_record(tmp_path):
    """The real torchrun, with workers that know only muster.record."""
    need_own_name()
    done = run_workers(tmp_path, FAILS.format(module=OURS), launcher=[sys.executable, "-m", "torch.distributed.run"])
    assert done.returncode == 1
    assert "ChildFailedError" in done.stderr and "ValueError: boom" in done.stderr and "in main" in done.stderr


def test_our_report_shows_both(tmp_path):
    for module in (OURS, TORCHS):
        done = run_workers(tmp_path, FAILS.format(module=module))
        assert done.returncode == 1 and "ValueError: boom" in done.stderr and "in main" in done.stderr


def test_record_leaves_exits_and_results_alone(python, tmp_path):
    python("""
        import os, sys, muster
        assert muster.record(lambda x, y=1: x + y)(2, y=3) == 5
        assert muster.record(lambda: sys.exit(0))() is None
        for code in (3, "text", None):
            try:
                muster.record(lambda: sys.exit(code))()
            except SystemExit as e:
                assert e.code == code
        assert not os.path.exists("error.json")

        @muster.record
        def named():
            "Its text."
        assert named.__name__ == "named" and named.__doc__ == "Its text."
        """, env=python_env(TORCHELASTIC_ERROR_FILE=tmp_path / "error.json"))


def test_an_error_that_cannot_be_recorded_is_still_raised(python):
    done = python("""
        import muster
        @muster.record
        def main(): raise ValueError("boom")
        main()
        """, env=python_env(TORCHELASTIC_ERROR_FILE="/nowhere/error.json"), check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "ValueError: boom"


def test_a_broken_error_file_is_as_good_as_none(python, tmp_path):
    python("""
        from muster.errors import ProcessFailure
        for text in ("", "{", "[]", '{"message": {}}', '{"message": {"extraInfo": {"timestamp": "x"}}}', "7"):
            open("bad.json", "w").write(text)
            failure = ProcessFailure(0, 1, -11, "bad.json")
            assert failure.message == "Signal 11 (SIGSEGV) received by PID 1", failure
        open("good.json", "w").write('{"message": "plain", "timestamp": 7}')
        failure = ProcessFailure(0, 1, 1, "good.json")
        assert (failure.message, failure.timestamp) == ("plain", 7)
        """)


# -- timers and heartbeat --


def test_a_block_that_takes_too_long_ends_the_worker(tmp_path):
    done = run_workers(tmp_path, """
        import signal, muster
        with muster.timer.expires(after=0.2, scope="too long"):
            signal.pause()
        """)
    assert done.returncode == 137 and "too long" in done.stderr


def test_a_block_that_is_done_in_time_is_released(tmp_path):
    """Nested ones too: if a timer were left, its expiry would be reported."""
    done = run_workers(tmp_path, """
        import muster, signal
        muster.timer.configure(signal=0)
        for _ in range(3):
            with muster.timer.expires(after=60, scope="outer"):
                with muster.timer.expires(after=60, scope="outer"):
                    pass
        from muster._native import library
        print(library().muster_timer_release(b"outer"))    # harmless
        """)
    assert done.returncode == 0 and done.stdout == "0\n", done.stderr


def test_a_timer_names_its_place_in_the_source(tmp_path):
    done = run_workers(tmp_path, """
        import signal, muster
        muster.timer.configure(signal=signal.SIGUSR1)
        with muster.timer.expires(after=0.1):
            signal.pause()
        """)
    assert "worker.py#4" in done.stderr and done.returncode == 128 + 10


def test_another_client_can_be_chosen(python):
    python("""
        import muster.timer as timer
        calls = []
        class Client:
            def acquire(self, scope_id, expiration_time): calls.append(("acquire", scope_id))
            def release(self, scope_id): calls.append(("release", scope_id))
        timer.configure(Client())
        try:
            with timer.expires(after=1, scope="a"):
                raise KeyError
        except KeyError:
            pass
        with timer.expires(1, "b", Client()):
            pass
        assert calls == [("acquire", "a"), ("release", "a"), ("acquire", "b"), ("release", "b")]
        timer.configure()
        with timer.expires(after=1):
            pass
        """)


def test_outside_a_job_nothing_happens(python):
    python("""
        import muster
        with muster.timer.expires(after=0.01):
            pass
        muster.heartbeat()
        with muster.section("data"):
            muster.step(1, total=10)
        muster.saved(1)
        """)


def test_a_heartbeat_reaches_the_launcher(tmp_path):
    done = run_workers(tmp_path, """
        import muster
        from muster._native import library
        for _ in range(1000):
            muster.heartbeat()
        print(library().muster_heartbeat())
        """, "--hang-timeout=60")
    assert done.stdout == "0\n" and done.returncode == 0, done.stderr


# -- the store --


def test_the_store_between_workers(tmp_path):
    done = run_workers(tmp_path, """
        import os, muster
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        with muster.Store() as store:
            store.set(f"from {rank}", bytes([0, 255, rank]))
            got = [store.get(f"from {other}") for other in range(world)]
            assert got == [bytes([0, 255, other]) for other in range(world)], got
            store.add("sum", 10 + rank)
            store.barrier("added", world)
            os.write(1, b"%d\\n" % store.add("sum", 0))  # in one piece: three share the pipe
        """, nproc=3)
    assert done.stdout == "33\n" * 3, done.stderr


def test_every_operation_of_the_store(tmp_path):
    done = run_workers(tmp_path, """
        import datetime, threading, time, muster
        store = muster.Store(timeout=20)
        assert store.delete_key("a") is False
        store.set("a", "1"); store.append("a", b"2")
        assert store.get("a") == b"12" and store.delete_key("a") is True
        assert store.add("n") == 1 and store.add("n", -5) == -4 and store.get("n") == b"-4"
        assert store.compare_set("c", "", "x") == b"x" and store.compare_set("c", "y", "z") == b"x"
        assert store.compare_set("c", "x", "") == b"" and store.get("c") == b""
        assert store.check(["n", "c"]) is True and store.check(["n", "nope"]) is False and store.check([]) is True
        store.wait(["n", "c"])
        inside = muster.Store(prefix="p/q")
        inside.set("k", "v")
        assert store.get("p/q/k") == b"v" and inside.keys() == ["k"]
        assert set(store.keys()) == {"n", "c", "p/q/k"} and store.num_keys() >= 3
        assert store.queue_pop("q") is None
        store.queue_push("q", "1"); store.queue_push("q", "")
        assert store.queue_len("q") == 2 and store.queue_pop("q") == b"1" and store.queue_pop("q") == b""
        for patience in (0.05, datetime.timedelta(milliseconds=50)):
            try:
                store.get("never", timeout=patience)
                raise AssertionError
            except TimeoutError:
                pass
        assert store.get("n") == b"-4", "the connection goes on"
        threads = [threading.Thread(target=store.add, args=("t",)) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert store.get("t") == b"8"
        late = threading.Timer(0.05, lambda: inside.set("late", "x"))
        late.start()
        assert store.get("p/q/late") == b"x"
        try:
            store.set("nul\\0", "x")
            raise AssertionError
        except ValueError:
            pass
        store.close(); store.close()
        try:
            store.get("n")
            raise AssertionError
        except ValueError:
            pass
        print("all")
        """)
    assert done.stdout == "all\n", done.stderr


def test_torchs_store_sees_the_same_keys(tmp_path):
    done = run_workers(tmp_path, """
        import os, muster
        from torch.distributed import TCPStore, PrefixStore
        theirs = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
        ours = muster.Store(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
        theirs.set("a", "1")
        ours.set("b", "2")
        PrefixStore("p", theirs).set("c", "3")
        assert (ours.get("a"), theirs.get("b"), muster.Store(prefix="p").get("c")) == (b"1", b"2", b"3")
        print("same")
        """)
    assert done.stdout == "same\n", done.stderr


def test_a_store_that_is_not_there(python):
    python("""
        import muster
        for address in ("127.0.0.1:1", None):
            try:
                muster.Store(address, timeout=0.1)
                raise AssertionError
            except OSError as e:
                assert str(e)
        """, env={k: v for k, v in python_env().items() if k not in ("MASTER_ADDR", "MASTER_PORT")})


def test_the_package_is_typed():
    assert (ROOT / "python/muster/py.typed").exists()
