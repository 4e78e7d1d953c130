"""muster.launcher: every behaviour that PyTorch's own launcher is tested for, and what is ours.

Each job is launched by a process of its own, as a user's program would; the workers use the real torch
where the behaviour is about it.
"""

import json
import os
import re
import signal
import sys
import textwrap

import pytest
from launching import HEAD, launching_program
from proc import gone
from tree import python_env
from waits import DEADLINE, read_line

@pytest.fixture
def launch(python):
    """launch(entries, main) runs such a program and gives the last line it printed, read as JSON."""

    def call(entries, main, **kwargs):
        done = python(launching_program(entries, main), **kwargs)
        return json.loads(done.stdout.splitlines()[-1])

    return call


# -- scripts and programs --

TOUCH = """
import argparse, os, pathlib
p = argparse.ArgumentParser()
p.add_argument("--dir")
p.add_argument("--local-rank", type=int)
a = p.parse_args()
name = os.environ["RANK"] if a.local_rank is None else f"local{a.local_rank}"
pathlib.Path(a.dir, name).touch()
"""


def test_a_python_script_run_by_an_interpreter(launch, tmp_path):
    (tmp_path / "touch.py").write_text(TOUCH)
    (tmp_path / "out").mkdir()
    result = launch("", "show(elastic_launch(config(4), sys.executable)('-u', 'touch.py', '--dir=out'))")
    assert result == {str(rank): None for rank in range(4)}
    assert sorted(os.listdir(tmp_path / "out")) == ["0", "1", "2", "3"]


def test_a_python_script_by_its_name_alone(launch, tmp_path):
    (tmp_path / "touch.py").write_text(TOUCH)
    (tmp_path / "out").mkdir()
    launch("", "show(elastic_launch(config(2), 'touch.py')('--dir', 'out'))")
    assert sorted(os.listdir(tmp_path / "out")) == ["0", "1"]


def test_the_local_rank_is_put_into_arguments(launch, tmp_path):
    (tmp_path / "touch.py").write_text(TOUCH)
    (tmp_path / "out").mkdir()
    launch("", """show(elastic_launch(config(4), sys.executable)('-u', 'touch.py', '--dir=out',
                                                                 '--local-rank=${local_rank}'))""")
    assert sorted(os.listdir(tmp_path / "out")) == ["local0", "local1", "local2", "local3"]


def test_a_bash_script(launch, tmp_path):
    script = tmp_path / "touch.sh"
    script.write_text('#!/bin/bash\ntouch "$1/$RANK"\n')
    script.chmod(0o755)
    (tmp_path / "out").mkdir()
    launch("", "show(elastic_launch(config(4), './touch.sh')('out'))")
    assert sorted(os.listdir(tmp_path / "out")) == ["0", "1", "2", "3"]


def test_what_does_not_exist_or_cannot_be_executed(launch, tmp_path):
    (tmp_path / "broken").write_bytes(b"\x7fELF no program")
    (tmp_path / "broken").chmod(0o755)
    assert launch("""
        def error_of(entrypoint):
            try:
                elastic_launch(config(), entrypoint)()
            except Exception as e:
                return [type(e).__name__, str(e.filename) if isinstance(e, OSError) else ""]
        """, "show([error_of('./nowhere'), error_of('./broken'), error_of(None)])") == [
        ["FileNotFoundError", "./nowhere"], ["PermissionError", "./broken"], ["ValueError", ""]]


# -- functions --


def test_a_function_returns_a_value_by_rank(launch):
    assert launch("""
        def ten_plus_rank():
            return 10 + int(os.environ["RANK"])
        """, "show(elastic_launch(config(4), ten_plus_rank)())") == {"0": 10, "1": 11, "2": 12, "3": 13}


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_arguments_reach_a_function_whatever_the_start_method(launch, method):
    assert launch("""
        def join(a, b):
            return f"{a}{b['x']} {os.environ['ROLE_NAME']} {os.environ['TORCHELASTIC_RUN_ID']}"
        """, f"""show(elastic_launch(config(2, start_method={method!r}, role='trainer'), join)('n', {{'x': 1}}))
        """) == {"0": "n1 trainer job", "1": "n1 trainer job"}


def test_a_class_of_the_script_comes_back_as_itself(launch):
    assert launch("""
        class Point:
            def __init__(self, x): self.x = x
        def make():
            return Point(7)
        """, "r = elastic_launch(config(1), make)(); show(type(r[0]) is Point and r[0].x)") == 7


def test_a_launch_without_a_main_guard_is_refused_at_the_first_nesting(python):
    done = python("""
        import sys
        from muster.launcher import LaunchConfig, elastic_launch

        def train():
            return 1

        print("loaded", file=sys.stderr)
        elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, max_restarts=0), train)()
    """, check=False)
    assert done.returncode == 1 and done.stderr.splitlines().count("loaded") <= 3, "the script itself and its two workers, no more"
    assert 'put the launch under `if __name__ == "__main__":`' in done.stderr


def test_a_function_of_a_module_and_a_program_run_as_one(tmp_path, python):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "work.py").write_text("import os\ndef rank(): return int(os.environ['RANK'])\n")
    (package / "__main__.py").write_text(HEAD + textwrap.dedent("""
        from pack.work import rank
        def here(): return "here"
        if __name__ == "__main__":
            show([elastic_launch(config(2), rank)(), elastic_launch(config(1), here)()])
        """))
    done = python("import runpy, sys; import subprocess; sys.exit(subprocess.call([sys.executable, '-m', 'pack']))")
    assert json.loads(done.stdout) == [{"0": 0, "1": 1}, {"0": "here"}]


def test_closures_go_by_cloudpickle_and_say_so_without(python):
    pytest.importorskip("cloudpickle")
    source = launching_program("", """
        amount = 5
        def add(x): return x + amount
        def inner():
            amount = 6
            return lambda x: x + amount
        show([elastic_launch(config(1), inner())(1)])
        sys.modules["cloudpickle"] = None
        try:
            elastic_launch(config(1), inner())(1)
        except Exception as e:
            show([type(e).__name__, str(e)])
        """)
    lines = python(source).stdout.splitlines()
    assert json.loads(lines[0]) == [{"0": 7}]
    kind, text = json.loads(lines[1])
    assert kind == "PicklingError" and "cloudpickle" in text


def test_exit_0_is_a_return_and_not_a_failure(launch):
    assert launch("def leave(): sys.exit(0)", "show(elastic_launch(config(2), leave)())") == {"0": None, "1": None}


def test_a_restarted_function_returns_what_the_last_start_returned(launch):
    assert launch("""
        def twice():
            count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
            if count == 0 and os.environ["RANK"] == "1":
                os.kill(os.getpid(), 9)
            return count
        """, "show(elastic_launch(config(2, max_restarts=2), twice)())") == {"0": 1, "1": 1}


def test_a_sum_over_ranks_with_static_rendezvous_and_gloo(launch, port):
    assert launch("""
        def total():
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            value = torch.tensor([dist.get_rank()])
            dist.all_reduce(value)
            dist.destroy_process_group()
            return [value.item(), os.environ["MASTER_PORT"]]
        """, f"""
        c = config(4, rdzv_backend="static", rdzv_endpoint="{port.endpoint}", rdzv_configs={{"rank": 0}})
        r = elastic_launch(c, total)()
        show([sorted({{v[0] for v in r.values()}}), all(c.rdzv_endpoint.endswith(v[1]) for v in r.values()), len(r)])
        """) == [[6], True, 4]


# -- failures --


def test_a_worker_exception_is_a_child_failed_error(launch):
    failure = launch("""
        def fail():
            raise RuntimeError("injected")
        """, """
        try:
            elastic_launch(config(2), fail)()
        except ChildFailedError as e:
            rank, failure = e.get_first_failure()
            show({"name": e.name, "ranks": sorted(e.failures), "exitcode": failure.exitcode, "same": e.failures[rank] is failure,
                  "message": failure.message["message"], "file": failure.error_file, "text": str(e), "pid": failure.pid})
        """)
    assert failure["name"] == "fail" and failure["same"] and failure["exitcode"] == 1
    assert failure["ranks"] in ([0], [1], [0, 1])
    assert failure["message"] == "RuntimeError: injected"
    assert "fail FAILED" in failure["text"] and 'raise RuntimeError("injected")' in failure["text"]
    with open(failure["file"]) as file:
        assert json.load(file)["message"]["extraInfo"]["timestamp"].isdigit()


def test_a_worker_exception_is_one_event_of_the_agent(python):
    done = python(launching_program("def fail(): raise RuntimeError('injected')",
                          "elastic_launch(config(1, event_log_handler='console'), fail)()"), check=False)
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"')]
    ends = [e for e in events if e["source"] == "AGENT" and e["metadata"]["state"] in ("SUCCEEDED", "FAILED")]
    assert [e["metadata"]["state"] for e in ends] == ["FAILED"]
    assert done.returncode == 1 and "ChildFailedError" in done.stderr


def test_the_first_failure_is_the_one_that_came_first(launch):
    assert launch("""
        def fall():
            import time
            if os.environ["RANK"] == "1":
                os.kill(os.getpid(), 9)
            time.sleep(60)
        """, """
        try:
            elastic_launch(config(3), fall)()
        except ChildFailedError as e:
            rank, failure = e.get_first_failure()
            show([rank, failure.exitcode, failure.signal_name(), failure.error_file, sorted(f.exitcode for f in e.failures.values())])
        """) == [1, -9, "SIGKILL", "<N/A>", [-15, -15, -9]]


def test_workers_that_fail_together_are_all_among_the_failures_with_their_own_errors(launch, tmp_path):
    """Neither fails because of the other: both have begun to when the first ends, and are deaf to the stop."""
    assert launch(f"""
        def fail():
            import pathlib, signal, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            rank = os.environ["RANK"]
            pathlib.Path("{tmp_path}", "here." + rank).touch()
            while len(list(pathlib.Path("{tmp_path}").glob("here.*"))) < 2:
                time.sleep(0.01)
            raise RuntimeError("injected " + rank)
        """, """
        try:
            elastic_launch(config(2), fail)()
        except ChildFailedError as e:
            show([[rank, f.exitcode, f.message["message"]] for rank, f in sorted(e.failures.items())])
        """) == [[0, 1, "RuntimeError: injected 0"], [1, 1, "RuntimeError: injected 1"]]


def test_the_message_has_the_layout_of_torchs(launch):
    """Both classes are given the same failures; what they print must be the same bytes."""
    ours, theirs = launch("""
        def fail():
            if os.environ["RANK"] == "0":
                raise ValueError("multi\\nline")
            import time
            time.sleep(60)
        """, """
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError as Theirs, ProcessFailure as TheirFailure
        try:
            elastic_launch(config(2), fail)()
        except ChildFailedError as e:
            copies = {}
            for rank, failure in e.failures.items():
                copies[rank] = TheirFailure(failure.local_rank, failure.pid, failure.exitcode, failure.error_file)
                copies[rank].timestamp = failure.timestamp
            show([str(e), str(Theirs(e.name, copies))])
        """)
    assert ours == theirs


def test_an_exception_of_the_launcher_is_raised_as_it_is(launch):
    """An error of the launcher is not a failure of a worker."""
    assert launch("""
        def error_of(**more):
            try:
                elastic_launch(config(**more), "true")()
            except Exception as e:
                return type(e).__name__
        def raise_it(event):
            raise KeyError("mine")
        """, """
        show([error_of(run_options=["--no-such-option"]), error_of(on_event=raise_it), error_of(nproc=0),
              error_of(start_method="teleport"), error_of(rdzv_backend="static"), error_of(signals_to_handle="SIGNOT")])
        """) == ["LaunchError", "KeyError", "ValueError", "ValueError", "ValueError", "ValueError"]


def test_a_program_that_is_not_muster_is_an_error_of_the_launcher(launch):
    entries = """
        def error_of():
            try:
                elastic_launch(config(), "true")()
            except Exception as e:
                return [type(e).__name__, getattr(e, "exit_code", None)]
        """
    assert launch(entries, "show(error_of())", env=python_env(MUSTER_PROGRAM="/bin/false")) == ["LaunchError", 1]


def test_the_error_is_handed_up_by_record(python, tmp_path):
    file = tmp_path / "mine.json"
    source = launching_program("def fail(): raise RuntimeError('injected')", """
        import muster
        muster.record(lambda: elastic_launch(config(1), fail)())()
        """)
    done = python(source, env=python_env(TORCHELASTIC_ERROR_FILE=file), check=False)
    message = json.loads(file.read_text())["message"]
    assert done.returncode == 1
    assert message["message"] == "RuntimeError: injected" and message["errorCode"] == 1


# -- the configuration --


def test_the_configuration_is_torchs(launch):
    """Field by field: names, order and defaults; then what __post_init__ makes of them."""
    ours, theirs, made = launch("", """
        import dataclasses
        from torch.distributed.launcher.api import LaunchConfig as Theirs
        def fields(kind):
            return [[f.name, repr(f.default) if f.default is not dataclasses.MISSING else repr(f.default_factory)]
                    for f in dataclasses.fields(kind)]
        a, b = LaunchConfig(1, 2, 3), Theirs(1, 2, 3)
        c, d = LaunchConfig(1, 2, 3, rdzv_timeout=7), Theirs(1, 2, 3, rdzv_timeout=7)
        made = [a.rdzv_configs == b.rdzv_configs, a.shutdown_timeout == b.shutdown_timeout, c.rdzv_configs == d.rdzv_configs]
        show([fields(LaunchConfig), fields(Theirs), made])
        """)
    assert ours[:len(theirs)] == theirs
    assert made == [True, True, True]


def test_torchs_own_log_specs_are_understood(launch, tmp_path):
    launch("def say(): print('to a file', flush=True)", """
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs as Theirs, Std as TheirStd
        specs = Theirs(log_dir="logs", redirects={0: TheirStd.OUT, 1: TheirStd.NONE}, tee=TheirStd.NONE)
        show(elastic_launch(config(2, logs_specs=specs), say)())
        """)
    files = [str(p.relative_to(tmp_path)) for p in (tmp_path / "logs").rglob("*.log")]
    assert [re.sub(r"job_\w+", "job", f) for f in files] == ["logs/job/attempt_0/0/stdout.log"]


def test_a_random_run_id_is_put_into_the_configuration(launch):
    assert launch("def run_id(): return os.environ['TORCHELASTIC_RUN_ID']", """
        c = config(1, run_id="")
        r = elastic_launch(c, run_id)()
        show(c.run_id.isdigit() and r[0] == c.run_id)
        """) is True


def test_entry_point_names(launch):
    """A function's name, a program's, or the first script among an interpreter's arguments."""
    assert launch("def simple(): pass", """
        from muster.launcher import _get_entrypoint_name as name
        show([name(simple, []), name("/bin/sh", ["-c", "x"]), name(sys.executable, []), name(sys.executable, ["-u"]),
              name(sys.executable, ["-u", "script.py"]), name(sys.executable, ["-u", "-m", "mod"]), name(None, [])])
        """) == ["simple", "/bin/sh", "", "", "script.py", "mod", ""]


def test_events_reach_the_caller_in_order(launch):
    names = launch("def nothing(): pass", """
        seen = []
        elastic_launch(config(2, on_event=lambda e: seen.append([e["event"], e.get("rank")])), nothing)()
        show(seen)
        """)
    assert names[0] == ["job.started", None] and names[-1] == ["job.ended", None]
    assert [n for n in names if n[0] == "worker.started"] == [["worker.started", 0], ["worker.started", 1]]
    assert sorted(n for n in names if n[0] == "worker.exited") == [["worker.exited", 0], ["worker.exited", 1]]


# -- signals --

SLEEPER = launching_program("""
    def sleep():
        import signal
        print("ready", os.getpid(), flush=True)
        signal.pause()
    """, """
    import signal
    mine = lambda *_: None
    signal.signal(signal.SIGTERM, mine)
    try:
        elastic_launch(config(1, on_event=lambda e: print(e["event"], file=sys.stderr)), sleep)()
    except SignalException as e:
        show([e.sigval, int(e.sigval), str(e) == f"Process {os.getpid()} got signal: {int(e.sigval)}",
              signal.getsignal(signal.SIGTERM) is mine])
    """)


def start_sleeper(start, tmp_path, **kwargs):
    (tmp_path / "main.py").write_text(SLEEPER)
    process = start(tmp_path / "main.py", program=sys.executable, env=python_env(), **kwargs)
    word, pid = read_line(process).split()
    assert word == "ready"
    return process, int(pid)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_workers_and_is_raised(start, tmp_path, sig):
    process, worker = start_sleeper(start, tmp_path)
    process.send_signal(sig)
    out, _ = process.communicate(timeout=DEADLINE)
    assert json.loads(out.splitlines()[-1]) == [int(sig), int(sig), True, True]
    assert not gone([worker])


def test_a_stop_from_outside_is_the_same(start, tmp_path):
    """`muster stop`, or a signal to the program rather than to us."""
    process, worker = start_sleeper(start, tmp_path)
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        os.kill(int(file.read().split()[0]), signal.SIGTERM)
    out, _ = process.communicate(timeout=DEADLINE)
    assert json.loads(out.splitlines()[-1])[1] == signal.SIGTERM
    assert not gone([worker])


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGABRT])
def test_a_launching_program_that_dies_takes_the_job_along(start, tmp_path, sig):
    process, worker = start_sleeper(start, tmp_path)
    process.send_signal(sig)
    process.wait(timeout=DEADLINE)
    assert not gone([worker], within=DEADLINE)


def test_launching_leaves_the_process_as_it_was(launch):
    """No handlers, no children, no descriptors, no variables, also in another thread."""
    assert launch("def nothing(): pass", """
        import signal, threading
        def state():
            kinds = [s for s in signal.valid_signals()]
            return [[str(signal.getsignal(s)) for s in kinds], dict(os.environ), sorted(os.listdir("/proc/self/fd")), os.getcwd()]
        elastic_launch(config(1), nothing)()   # what is loaded once is loaded now
        before = state()
        elastic_launch(config(1), nothing)()
        thread = threading.Thread(target=lambda: elastic_launch(config(1), nothing)())
        thread.start()
        thread.join()
        try:
            os.waitpid(-1, os.WNOHANG)
            children = True
        except ChildProcessError:
            children = False
        show([state() == before, children])
        """) == [True, False]
