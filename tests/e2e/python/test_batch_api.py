"""muster.batch and muster_batch_run(): what the runner of PyTorch's instruction counts does, row by row, from Python and
from C."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from proc import alive
from tree import BUILD, MUSTER, ROOT, SANITIZER, clean_env, python_env
from waits import DEADLINE, wait_for

CPUS = sorted(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="it takes two CPUs")

PRELUDE = """
import json, os, signal, subprocess, sys, time
from muster.batch import *

def raised(*args, **kwargs):
    runner = Runner(*args, **kwargs)
    try:
        return runner, runner.run()
    except BaseException as e:
        return runner, e
"""


@pytest.fixture
def api(python):
    """api(source) runs Python with everything of muster.batch at hand and gives what it printed."""
    return lambda source, **kwargs: python(PRELUDE + textwrap.dedent(source), **kwargs).stdout.splitlines()


@pytest.fixture(scope="module")
def batch_user(tmp_path_factory):
    """batch_user.c against the library of this tree."""
    folder = tmp_path_factory.mktemp("batch")
    (folder / "libmuster.so.0").symlink_to(BUILD / "libmuster.so")
    sanitize = [f"-fsanitize={SANITIZER}"] if SANITIZER else []
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *sanitize, f"-I{ROOT}/include", "-o",
                    folder / "user", ROOT / "tests/e2e/lib/batch_user.c", folder / "libmuster.so.0",
                    f"-Wl,-rpath,{folder}"], check=True)
    return folder / "user"


class Ended:
    """What batch_user printed, apart from what its orders printed."""

    def __init__(self, stdout, stderr):
        lines = stdout.splitlines()
        self.stdout, self.stderr = stdout, stderr
        self.attempts = [json.loads(line[5:]) for line in lines if line.startswith("line {")]
        pattern = r"order (-?\d+) ([\w-]+) exit (-?\d+) signal (\d+) attempt (\d+) run (\d+) timed (\d) json (\d)"
        self.results = [match.groups() for match in map(re.compile(pattern).fullmatch, lines) if match]
        self.code = int(re.search(r"(?m)^exit (-?\d+)$", stdout)[1]) if "\nexit " in f"\n{stdout}" else None

    def by_order(self):
        """The reasons of every order, in turn."""
        found = {}
        for order, reason, *_ in self.results:
            found.setdefault(int(order), []).append(reason)
        return found


def order_line(order):
    return "\t".join(f"{key}={value}" for key, value in order)


@pytest.fixture
def from_c(batch_user, tmp_path):
    """from_c([{...}, ...], options...) runs a batch through muster_batch_start() and its steps."""

    def call(orders, *options):
        text = "".join(order_line(order.items()) + "\n" for order in orders)
        done = subprocess.run([batch_user, *options], input=text, text=True, capture_output=True, cwd=tmp_path,
                              env=clean_env(MUSTER_PROGRAM=MUSTER), timeout=DEADLINE)
        return Ended(done.stdout, done.stderr)

    return call


# --- orders and cores ---


@two_cpus
def test_orders_get_their_cores_side_by_side(api, from_c):
    lines = api("""
        orders = [WorkOrder("grep Cpus_allowed_list /proc/self/status", num_threads=n) for n in (2, 1, 1)]
        for order, output in Runner(orders, options=["--reserve-cores=0"]).run().items():
            print(order.num_threads, output.last["cores"], output.stdout.split()[-1])
    """)
    assert [line.split()[0] for line in lines] == ["2", "1", "1"], "in the order of the list"
    for line in lines:
        width, cores, seen = line.split()
        first, _, last = cores.partition("-")
        assert cores == seen and int(last or first) - int(first) + 1 == int(width), "adjacent cores, as pinned"
    ended = from_c([{"shell": "true a", "cores": 2}, {"shell": "true b"}], "-q", "--reserve-cores=0")
    widths = {attempt["cmd"]: attempt.get("width", 1) for attempt in ended.attempts}
    assert ended.code == 0 and widths == {"true a": 2, "true b": 1}


def test_a_core_pool_is_a_range_that_exists(api):
    cpu = CPUS[0]
    lines = api(f"""
        outputs = Runner([WorkOrder("true"), WorkOrder("true")], CorePool({cpu}, {cpu})).run().values()
        print({{output.last["cores"] for output in outputs}})
        for bad in ((-1, 0), (1, 0), (0, 4096)):
            try:
                CorePool(*bad)
            except ValueError as e:
                print("refused", e)
    """)
    assert lines[0] == f"{{'{cpu}'}}" and [line.split()[0] for line in lines[1:]] == ["refused"] * 3


def test_cores_are_free_only_when_the_last_process_is_gone(api, from_c, tmp_path):
    """The second order sees nothing of what the first one left behind, on the same core."""
    marker = f"77{os.getpid()}"
    left = f"(setsid sleep {marker} &) ; true"
    count = f"pgrep -fc '^sleep {marker}' || true"
    cpu = CPUS[0]
    lines = api(f"""
        results = Runner([WorkOrder({left!r}), WorkOrder({count!r})], CorePool({cpu}, {cpu}), options=["--order=listed"]).run()
        print([output.stdout for output in results.values()][1])
    """)
    assert lines[0] == "0"
    ended = from_c([{"shell": left}, {"shell": count}], "-q", "-j1", "--order=listed")
    assert ended.code == 0 and "\n0\n" in f"\n{ended.stdout}"


def test_the_same_order_twice_is_refused_and_equal_orders_are_not(api, from_c):
    lines = api("""
        order = WorkOrder("echo x")
        try:
            Runner([order, order])
        except ValueError as e:
            print(e)
        print(len(Runner([WorkOrder("echo x"), WorkOrder("echo x")]).run()))
    """)
    assert lines == ["Duplicate work items.", "2"]
    assert from_c([{"shell": "true"}, {"shell": "true"}], "-q").by_order() == {0: ["ok"], 1: ["ok"]}
    assert "error EEXIST: order 1 has the id of another one: 'i'" in from_c([{"shell": "a", "id": "i"}] * 2).stdout


@two_cpus
def test_a_narrow_order_overtakes_a_wide_one(api, from_c, tmp_path):
    """The wide one needs the core on which the first order waits for the narrow one, which was listed last."""
    wait = "until [ -e go ]; do sleep 0.01; done"
    lines = api(f"""
        ended = []
        orders = [WorkOrder({wait!r}), WorkOrder("true", num_threads=2), WorkOrder("touch go")]
        Runner(orders, options=["--reserve-cores=0", "-j2", "--order=listed", "--allowed-cores={CPUS[0]},{CPUS[1]}"],
               on_result=lambda order, attempt: ended.append(orders.index(order))).run()
        print(ended[-1])
    """)
    assert lines == ["1"]
    (tmp_path / "go").unlink()
    ended = from_c([{"shell": wait}, {"shell": "true", "cores": 2}, {"shell": "touch go"}], "-q", "--reserve-cores=0", "-j2",
                   "--order=listed", f"--allowed-cores={CPUS[0]},{CPUS[1]}")
    assert ended.results[-1][0] == "1"


def test_an_order_that_is_too_wide_is_refused_before_anything_runs(api, from_c, tmp_path):
    lines = api("""
        print(repr(raised([WorkOrder("touch ran"), WorkOrder("true", num_threads=4000)])[1]))
    """)
    assert lines[0].startswith("BatchError('muster batch: an order wants 4000 cores; the most that works here is")
    ended = from_c([{"shell": "touch ran"}, {"shell": "true", "cores": 4000}])
    assert ended.code == 2 and "an order wants 4000 cores" in ended.stderr and not ended.results
    assert not (tmp_path / "ran").exists()


# --- canary ---


def test_the_canary_runs_once_for_each_source_command(api, from_c, tmp_path):
    (tmp_path / "a.sh").write_text("KIND=a\n")
    (tmp_path / "b.sh").write_text("KIND=b\n")
    lines = api("""
        orders = [WorkOrder("echo $KIND", source_cmd=f"source ./{kind}.sh") for kind in "abab"]
        results = Runner(orders, canary="echo $KIND >>canaries").run()
        print("".join(output.stdout.strip() for output in results.values()))
    """)
    assert lines == ["abab"]
    assert sorted((tmp_path / "canaries").read_text().split()) == ["a", "b"]
    (tmp_path / "canaries").unlink()
    from_c([{"shell": f"echo {i}", "source": f". ./{kind}.sh"} for i, kind in enumerate("abab")],
           "-q", "--canary=echo $KIND >>canaries")
    assert sorted((tmp_path / "canaries").read_text().split()) == ["a", "b"]


def test_a_canary_that_fails_or_hangs_stops_everything_and_says_why(api, from_c, tmp_path):
    lines = api("""
        runner, error = raised([WorkOrder("touch ran")], canary="echo no such module; exit 4")
        print(isinstance(error, ImportError), str(error).splitlines(), len(runner.results))
        runner, error = raised([WorkOrder("touch ran")], canary="sleep 100", options=["--timeout=0.2"])
        print(type(error).__name__, error)
    """)
    assert lines[0] == ("True ['the canary failed: echo no such module; exit 4 (exit 4)', 'no such module'] 0")
    assert lines[1] == "CanaryFailed the canary failed: sleep 100 (the canary timed out)"
    ended = from_c([{"shell": "touch ran"}], "--canary=exit 4")
    assert ended.code == 1 and ended.by_order() == {-1: ["canary"]} and "the canary failed: exit code 4" in ended.stderr
    assert not (tmp_path / "ran").exists()


# --- time-outs, retries, failures ---


def test_only_time_outs_are_retried_and_the_last_one_raises(api, from_c, tmp_path):
    lines = api("""
        first = WorkOrder("[ -e again ] || { touch again; sleep 100; }", timeout=1, retries=2)
        output = Runner([first]).run()[first]
        print([attempt["reason"] for attempt in output.attempts], output.ok)
        runner, error = raised([WorkOrder(["sleep", "100"], timeout=0.2, retries=2)])
        print(isinstance(error, subprocess.TimeoutExpired), error.cmd, error.timeout)
        runner, error = raised([WorkOrder("echo . >>tries; exit 1", retries=2)])
        print(type(error).__name__)
    """)
    assert lines == ["['timeout', 'ok'] True", "True sleep 100 0.2", "WorkerFailed"]
    assert (tmp_path / "tries").read_text() == ".\n"
    ended = from_c([{"shell": "sleep 100", "timeout": 0.2, "retries": 2}, {"shell": "exit 1", "retries": 2}], "-q",
                   "--retry-on=timeout", "--retry-delay=1ms")
    assert ended.by_order() == {0: ["timeout"] * 3, 1: ["exit"]}


def test_an_attempt_starts_when_the_one_before_is_gone(api, from_c, tmp_path):
    marker = f"78{os.getpid()}"
    # The first attempt leaves a process that ignores SIGTERM, the second one counts what is left of both. It has 5 seconds, too, in
    # which a busy machine may not look through all its processes.
    script = (f"[ ! -e again ] || {{ for pid in $(cat again); do tr '\\0' ' ' </proc/$pid/cmdline; echo; done 2>/dev/null | "
              f"grep -c '^sleep {marker}' >>seen; rm again; exit 0; }}; "
              f"(trap '' TERM; exec setsid sleep {marker}) & echo $! $$ >again; exec sleep {marker}")
    api(f"""
        Runner([WorkOrder({script!r}, timeout=5, retries=1)], options=["--term-seq=TERM,100,KILL"]).run()
    """)
    assert (tmp_path / "seen").read_text() == "0\n"
    from_c([{"shell": script, "timeout": 5, "retries": 1}], "-q", "--term-seq=TERM,100,KILL", "--retry-delay=1ms")
    assert (tmp_path / "seen").read_text() == "0\n0\n"


def test_a_failure_has_label_command_and_trace_and_ends_the_others(api, from_c, tmp_path):
    lines = api("""
        good = WorkOrder("echo fine")
        bad = WorkOrder("until [ -e fine ]; do sleep 0.01; done; echo line 7: oops >&2; exit 3", label=("pointwise", "add"),
                        autolabels={"language": "C++"})
        stuck = WorkOrder("echo $$ >pid; touch fine; sleep 100")
        # Two at a time: the bad one starts when the good one has ended.
        runner, error = raised([good, stuck, bad], options=["-j2", "--place=none", "--order=listed"])
        print(type(error).__name__, error.order is bad, error.cmd == bad.cmd, repr(error.wrapped_trace))
        print(str(error).splitlines()[0].split(":")[0])
        print([order is good or order is bad for order in runner.results], runner.results[good].stdout)
    """)
    assert lines[0] == "WorkerFailed True True 'line 7: oops\\n'"
    assert lines[1] == "the worker failed [pointwise, add, C++]"
    assert lines[2] == "[True, True] fine", "what was finished is kept"
    assert not alive(int((tmp_path / "pid").read_text()))
    ended = from_c([{"shell": "exit 3", "label": "op=add"}, {"shell": "sleep 100"}], "--halt=now,fail=1", "-j2", "--place=none")
    assert ended.code == 1 and ended.by_order()[0] == ["exit"] and ended.by_order().get(1, ["killed"]) == ["killed"]
    assert "[op=add] failed: exit code 3" in ended.stderr


def test_an_order_that_cannot_start_or_says_nothing_has_a_trace(api):
    lines = api("""
        print(raised([WorkOrder(["./nosuchprogram"])])[1].wrapped_trace)
        print(raised([WorkOrder("kill -SEGV $$")])[1].wrapped_trace)
        print(raised([WorkOrder("exit 5")])[1].wrapped_trace)
    """)
    assert "No such file" in lines[0] and lines[1:] == ["signal SIGSEGV", "None"]


def test_others_go_on_if_the_caller_wants_it(api):
    lines = api("""
        orders = [WorkOrder("exit 3"), WorkOrder("true"), WorkOrder(["sleep", "100"], timeout=0.2)]
        print([output.reason for output in Runner(orders, on_failure="continue").run().values()])
    """)
    assert lines == ["['exit', 'ok', 'timeout']"]


def test_an_order_that_prints_much_does_not_block(api, from_c):
    lines = api("""
        (output,) = Runner([WorkOrder("head -c 5000000 /dev/zero | tr '\\\\0' x")]).run().values()
        print(len(output.stdout))
    """)
    assert lines == ["5000000"]


# --- the end ---


CTRL_C = PRELUDE + """
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run with it ignored, in the background
marker = sys.argv[1]
orders = [WorkOrder("echo done"), WorkOrder(f"trap 'echo stopped >>said' INT; touch ready; sleep {marker} & wait; wait")]
runner = Runner(orders, options=["-j1", "--place=none", "--order=listed"])  # one after the other
try:
    runner.run()
except KeyboardInterrupt:
    print("interrupted", [output.stdout for output in runner.results.values()])
"""


def test_ctrl_c_stops_the_orders_and_keeps_what_is_finished(start, place, tmp_path):
    marker = f"79{os.getpid()}"
    process = start(place("main.py", CTRL_C), marker, program=sys.executable, env=python_env())
    wait_for(lambda: (tmp_path / "ready").exists(), "the order has begun")
    process.send_signal(signal.SIGINT)
    wait_for(lambda: (tmp_path / "said").exists(), "the order has been told to stop")
    process.send_signal(signal.SIGINT)  # the order ignores the first one; the second kills
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0 and out == "interrupted ['done\\n']\n", err
    assert subprocess.run(["pgrep", "-f", f"^sleep {marker}"], capture_output=True).stdout == b""


STRUCK = PRELUDE + """
signal.signal(signal.SIGINT, signal.default_int_handler)
def strike(frame, event, _):
    if event == "call" and frame.f_code.co_name == sys.argv[1] and frame.f_code.co_filename.endswith("_batch.py"):
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)
runner = Runner([WorkOrder("echo done"), WorkOrder("sleep 1000")], options=["-j1", "--place=none", "--order=listed"])
sys.setprofile(strike)
try:
    runner.run()
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("moment", ["follow", "_take"])  # before anything has started, and in a call from C
def test_ctrl_c_is_not_lost_at_any_moment(start, place, moment):
    process = start(place("main.py", STRUCK), moment, program=sys.executable, env=python_env())
    out, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out) == (0, "interrupted\n"), err


def test_ctrl_c_from_c(start, batch_user, tmp_path):
    process = start("-q", "-j2", "--place=none", program=batch_user, stdin=subprocess.PIPE,
                    env=clean_env(MUSTER_PROGRAM=MUSTER))
    process.stdin.write(order_line([("shell", "touch ready; exec sleep 1000")]) + "\n")
    process.stdin.close()
    process.stdin = None
    wait_for(lambda: (tmp_path / "ready").exists(), "the order has begun")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE)
    ended = Ended(out, err)
    assert ended.code == 130 and ended.by_order() == {0: ["killed"]}


def test_nothing_survives_the_caller(start, batch_user, tmp_path):
    process = start("-q", program=batch_user, stdin=subprocess.PIPE, env=clean_env(MUSTER_PROGRAM=MUSTER))
    process.stdin.write(order_line([("shell", "echo $$ >pid; mv pid ready; exec sleep 1000")]) + "\n")
    process.stdin.close()
    process.stdin = None
    wait_for(lambda: (tmp_path / "ready").exists(), "the order has begun")
    pid = int((tmp_path / "ready").read_text())
    process.kill()
    wait_for(lambda: not alive(pid), "the order is gone")


def test_a_resumed_batch_runs_only_what_is_left(api, from_c, tmp_path):
    lines = api("""
        orders = [WorkOrder(f"echo {i} >>ran; [ -e good ] || [ {i} != 1 ]") for i in range(3)]
        raised(orders, output="r.jsonl", on_failure="continue")
        open("good", "w").close()
        results = Runner(orders, output="r.jsonl", resume=True).run()
        print([[attempt["reason"] for attempt in output.attempts] for output in results.values()])
    """)
    assert lines == ["[['ok'], ['exit', 'ok'], ['ok']]"]
    assert sorted((tmp_path / "ran").read_text().split()) == ["0", "1", "1", "2"]
    orders = [{"shell": f"echo {i} >>ran2; [ {i} = 0 ] || [ -e good2 ]"} for i in range(2)]
    assert from_c(orders, "output=c.jsonl", "-q").code == 1
    (tmp_path / "good2").touch()
    ended = from_c(orders, "output=c.jsonl", "resume", "-q")
    assert ended.code == 0 and ended.by_order() == {0: ["ok"], 1: ["exit", "ok"]}
    assert sorted((tmp_path / "ran2").read_text().split()) == ["0", "1", "1"]


# --- what people and programs see ---


def test_progress_attempts_and_the_total_time_are_told(python):
    done = python(PRELUDE + textwrap.dedent("""
        Runner([WorkOrder("true"), WorkOrder("[ -e x ] || { touch x; sleep 100; }", timeout=0.5, retries=2, label=("slow",))],
               progress=True, options=["--progress=bar"]).run()
    """))
    assert re.search(r"\[slow\] failed: timed out after .*, attempt 1 of 3, again in", done.stderr)
    assert re.search(r"muster batch: 2 of 2 done, in ", done.stderr)
    assert re.search(r"\b[01]/2\b|\b[01] of 2\b", done.stderr), done.stderr


def test_results_are_grouped_and_take_other_forms(api):
    lines = api("""
        orders = [WorkOrder("true", label=("pointwise", op), autolabels={"language": language}, num_threads=1, runs=2)
                  for op in ("add", "mul") for language in ("Python", "C++")]
        results = Runner(orders).run()
        print(list(results) == orders, [len(output.wall_times) for output in results.values()])
        print({key: len(outputs) for key, outputs in results.group_by("2", "language", "threads").items()})
        print(orders[0])
        told = json.loads(results.to_json())
        print([len(each["times"]) for each in told.values()], [each["label"] for each in told.values()][0])
        print(sorted({row["label.language"] for row in results.records()}), len(results.records()))
    """)
    assert lines[0] == "True [2, 2, 2, 2]"
    assert lines[1] == ("{('add', 'Python', '1'): 1, ('add', 'C++', '1'): 1, ('mul', 'Python', '1'): 1, "
                        "('mul', 'C++', '1'): 1}")
    assert json.loads(lines[2]) == {"label": ["pointwise", "add"], "autolabels": {"language": "Python"}, "num_threads": 1}
    assert lines[3:] == ["[2, 2, 2, 2] ['pointwise', 'add']", "['C++', 'Python'] 8"]


def test_results_are_a_data_frame_where_pandas_is_installed(api):
    pytest.importorskip("pandas")
    lines = api("""
        frame = Runner([WorkOrder("true", label=("a",), runs=3)]).run().to_pandas()
        print(len(frame), frame["label.1"].unique()[0], bool((frame["wall_ns"] > 0).all()))
    """)
    assert lines == ["3 a True"]


def test_what_cannot_be_is_refused_and_nothing_is_a_result(api, from_c):
    lines = api("""
        for kwargs in ({"cadence": 0}, {"on_failure": "shrug"}):
            try:
                Runner([], **kwargs)
            except ValueError as e:
                print(e)
        print(Runner([], cadence=30).run())
        print(repr(raised([WorkOrder("true")], options=["--jobs=x"])[1]).split(",")[0][:60])
    """)
    assert lines[:3] == ["cadence must be positive, got 0", "on_failure must be 'stop' or 'continue', got 'shrug'", "{}"]
    assert lines[3].startswith("BatchError(")
    assert "error EINVAL: the configuration has no orders" in from_c([]).stdout
    assert "error EINVAL: order 0 has no command" in from_c([{"id": "x"}]).stdout
    assert "error EINVAL: the configuration has no result file to go on with" in from_c([{"shell": "true"}], "resume").stdout


def test_the_package_is_typed():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "muster/batch.py",
                           "muster/_batch.py"], cwd=ROOT / "python", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
