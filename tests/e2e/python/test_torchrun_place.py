"""In torchrun's place: one switch, and whatever starts or calls torch's launcher has muster, in an environment as pip leaves it."""

import json
import os
import shutil
import signal
import subprocess
import textwrap

import pytest

import able
from python_site import Site
from tree import BUILD, MUSTER, clean_env
from waits import DEADLINE, read_line

pytestmark = pytest.mark.xdist_group("torchrun_place")  # they share an environment

WORKER = """
import json, os, sys
line = [int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "muster" if "MUSTER_WATCHDOG" in os.environ else "torch", sys.argv[1:]]
os.write(1, (json.dumps(line) + "\\n").encode())
sys.exit(int(os.environ.get("CODE", 0)))
"""

PLUGIN_LOGS = """
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
class Plugin(DefaultLogsSpecs):
    def reify(self, envs):
        print("the plug-in decides", flush=True)
        return super().reify(envs)
"""
PLUGIN_RENDEZVOUS = """
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous
class Meeting(StaticTCPRendezvous):
    def get_backend(self): return "meeting"
def Plugin(): return meet
def meet(params):
    print("the plug-in meets", flush=True)
    host, port = params.endpoint.split(":")
    return Meeting(host, int(port), 0, 1, params.run_id, 60)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site") / "env")
    made.add_plugin("torchrun.logs_specs", "elsewhere", "plugin_logs", PLUGIN_LOGS)
    return made


def env_of(**extra):
    return clean_env(**{"MUSTER_PROGRAM": MUSTER, "MUSTER_LIBRARY": BUILD / "libmuster.so", **extra})


ON = {"MUSTER_TORCHRUN": "1"}


@pytest.fixture
def call(site, tmp_path):
    """call(words, CODE=7, ...) runs a command line of the environment with the switch on; the first word is `python`, or `torchrun`."""
    (tmp_path / "w.py").write_text(WORKER)

    def run(words, **env):
        program = {"python": site.python, "torchrun": site.torchrun}[words[0]]
        return subprocess.run([program, *words[1:]], env=env_of(**{**ON, **env}), cwd=tmp_path, text=True, capture_output=True,
                              timeout=DEADLINE, stdin=subprocess.DEVNULL)

    return run


@pytest.fixture
def script(call, place):
    """script(source) runs a program that calls the launcher; what it prints with show() comes back."""

    def run(source, words=("python",), **env):
        place("main.py", HEAD + textwrap.dedent(source))
        done = call([*words, "main.py"], **env)
        assert done.returncode == 0, done.stderr
        shown = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("show ")]
        return (*shown, lines(done), done.stderr)

    return run


HEAD = """
import json, os, sys
def show(value): print("show", json.dumps(value), flush=True)
"""


def lines(done):
    """What the workers said, by rank."""
    return sorted(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def by_muster(*args, world=2):
    return [[rank, world, "muster", list(args)] for rank in range(world)]


# -- the switch --


def test_off_is_off(site, call):
    """Nothing is imported or patched, whatever the variable says that is not "on"."""
    source = "import sys; print([m for m in sys.modules if 'muster' in m], [f for f in sys.meta_path if 'muster' in str(f)])"
    for value in ({"MUSTER_TORCHRUN": ""}, {"MUSTER_TORCHRUN": "0"}):
        assert call(["python", "-c", source], **value).stdout == "[] []\n"
    assert "muster._switch" in call(["python", "-c", source]).stdout


def test_off_costs_no_system_call(site, tmp_path):
    """The start of Python makes as many with the line for the switch in muster.pth as without it, and few more with it on."""
    able.need("strace", "-o", "/dev/null", "true")
    pth = site.packages / "muster.pth"
    whole = pth.read_text()

    def count(**env):
        calls = tmp_path / "calls"
        subprocess.run(["strace", "-o", calls, site.python, "-c", "pass"], env=env_of(**env), check=True, timeout=DEADLINE)
        return len(calls.read_text().splitlines()), calls.read_text()

    try:
        count(), count(**ON)  # what is compiled once is compiled now
        (with_line, text), (on, _) = count(), count(**ON)
        pth.write_text("".join(line + "\n" for line in whole.splitlines() if "_switch" not in line))
        without_line, _ = count()
    finally:
        pth.write_text(whole)
    assert "_switch" not in text and with_line == without_line < on


def test_the_switch_for_an_environment(site, call):
    """`enable` writes one file, which `disable` takes away; the variable is stronger than the file."""
    off = {"MUSTER_TORCHRUN": ""}
    words = ["python", "-m", "torch.distributed.run", "w.py"]
    status = ["python", "-m", "muster.torchrun", "status"]
    before = sorted(os.listdir(site.packages))
    done = call(status, **off)
    assert (done.returncode, done.stdout) == (1, "off: neither MUSTER_TORCHRUN nor muster_torchrun.pth is there\n")
    done = call(status)
    assert (done.returncode, done.stdout) == (0, f"on: MUSTER_TORCHRUN=1; the program is {MUSTER}\n")
    try:
        assert call(["python", "-m", "muster.torchrun", "enable"], **off).returncode == 0
        assert set(os.listdir(site.packages)) - set(before) == {"muster_torchrun.pth"}
        assert call(status, **off).returncode == 0 and call(status, MUSTER_TORCHRUN="0").returncode == 1
        assert lines(call(words, **off)) == by_muster(world=1)
        assert lines(call(words, MUSTER_TORCHRUN="0")) == [[0, 1, "torch", []]]
    finally:
        done = call(["python", "-m", "muster.torchrun", "disable"], **off)
    assert (done.returncode, done.stdout) == (0, "off\n")
    assert sorted(os.listdir(site.packages)) == before


def test_the_switch_says_what_is_missing(site, call, tmp_path):
    pth, away = site.packages / "muster.pth", tmp_path / "away"
    pth.rename(away)
    try:
        done = call(["python", "-m", "muster.torchrun", "enable"])
        assert done.returncode == 1 and "muster is not installed" in done.stderr
        done = call(["python", "-m", "muster.torchrun", "status"])
        assert done.returncode == 1 and "off: MUSTER_TORCHRUN=1, but muster is not installed" in done.stdout
    finally:
        away.rename(pth)
    for words in ([], ["on"], ["enable", "disable"]):
        done = call(["python", "-m", "muster.torchrun", *words])
        assert done.returncode == 2 and "enable|disable|status" in done.stderr


# -- programs that run the launcher --


@pytest.mark.parametrize("words", [
    ["python", "-m", "torch.distributed.run"],
    ["python", "-u", "-W", "ignore", "-Xutf8", "-mtorch.distributed.run"],
    ["python", "-um", "torch.distributed.launch", "--use-env"],
    ["torchrun"],
], ids=" ".join)
def test_a_command_line_becomes_muster_without_importing_torch(call, tmp_path, words):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('torch was imported')\n")
    done = call([*words, "--nproc_per_node=1", "w.py", "--lr", "-m"], CODE="7", PYTHONPATH=tmp_path)
    assert lines(done) == by_muster("--lr", "-m", world=1) and done.returncode == 7, done.stderr
    assert "muster: job failed" in done.stderr


def test_the_old_launcher_passes_the_local_rank(call):
    done = call(["python", "-m", "torch.distributed.launch", "--nproc_per_node=2", "w.py", "x"])
    assert lines(done) == [[rank, 2, "muster", [f"--local-rank={rank}", "x"]] for rank in range(2)]


def test_it_is_the_same_process_and_the_same_interpreter(site, start, tmp_path):
    script = tmp_path / "w.py"
    script.write_text("import os, signal, sys; print(sys.prefix, 'MUSTER_IN_PLACE_OF' in os.environ, flush=True); signal.pause()")
    process = start("-m", "torch.distributed.run", script, program=site.python, env=env_of(**ON))
    assert read_line(process) == f"{site.python.parents[1]} False\n"
    assert os.path.samefile(f"/proc/{process.pid}/exe", MUSTER)
    process.terminate()
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 143


def test_other_programs_stay_what_they_are(call, place):
    place("torchrun", "print('not torch')")
    for words, said in ((["torchrun"], "not torch\n"), (["-c", "print('c')", "-m", "torch.distributed.run"], "c\n"),
                        (["w.py", "-m", "torch.distributed.run"], '[0, 1, "torch", ["-m", "torch.distributed.run"]]\n')):
        assert call(["python", *words], RANK="0", WORLD_SIZE="1").stdout == said


def test_without_the_program_torchs_launcher_runs_and_says_so(call, tmp_path):
    able.need_own_name()
    if shutil.which("muster", path="/usr/bin:/bin"):
        pytest.skip("muster is installed on this host")
    for words in (["-m", "torch.distributed.run"], ["-c", "import torch.distributed.run as r; r.main()"]):
        done = call(["python", *words, "w.py"], MUSTER_PROGRAM=tmp_path / "none", PATH="/usr/bin:/bin")
        assert lines(done) == [[0, 1, "torch", []]]
        said = [line for line in done.stderr.splitlines() if line.startswith("muster: ")]
        assert len(said) == 1 and said[0].startswith("muster: warning: the muster program is not installed") and said[0].endswith("runs this job")


@pytest.mark.parametrize("words", [["--logs-sp", "elsewhere"], ["--logs_specs=elsewhere", "--nproc_per_node", "1"]], ids=" ".join)
def test_a_plugin_for_logs_has_torchs_launcher(call, words):
    able.need_own_name()
    done = call(["python", "-m", "torch.distributed.run", *words, "w.py"])
    assert done.returncode == 0 and "the plug-in decides" in done.stdout, done.stderr
    assert lines(done) == [[0, 1, "torch", []]]
    assert done.stderr.splitlines()[0] == "muster: warning: --logs-specs names a Python plug-in: torch's own launcher runs this job"


def test_a_plugin_for_rendezvous_has_torchs_launcher(call, site, port):
    site.add_plugin("torchrun.handlers", "meeting", "plugin_rendezvous", PLUGIN_RENDEZVOUS)
    done = call(["python", "-m", "torch.distributed.run", "--rdzv_backend=meeting", f"--rdzv_endpoint={port.endpoint}", "w.py"])
    assert done.returncode == 0 and "the plug-in meets" in done.stdout, done.stderr
    assert "--rdzv-backend names a Python plug-in: torch's own launcher runs this job" in done.stderr


def test_without_the_switch_a_plugin_is_refused_by_name(muster):
    done = muster("run", "--logs-specs=mine", "true")
    assert done.returncode == 2 and "--logs-specs: 'mine' is a Python plug-in" in done.stderr


# -- programs that call it --


def test_main_and_run_with_a_namespace(script):
    """As fabric (main), tune (run with the parser's actions under @record) and accelerate (run with numbers for texts) call them."""
    *_, said, _ = script("""
        import torch.distributed.run as torchrun
        from torch.distributed.run import get_args_parser, run
        from torch.distributed.elastic.multiprocessing.errors import record
        torchrun.main(["--nproc-per=2", "--max-r", "1", "w.py", "main", "--nnodes=9"])
        args = get_args_parser().parse_args(["--nproc-per-node", "2", "w.py", "tune"])
        args.standalone = True
        record(run)(args)
        args, _ = get_args_parser().parse_known_args(["w.py", "accelerate"])
        args.nproc_per_node, args.nnodes, args.node_rank, args.max_restarts, args.rdzv_conf = 2, "1", 0, 0, ""
        run(args)
        os.environ.update(PET_NPROC_PER_NODE="3", PET_STANDALONE="1")
        args = get_args_parser().parse_args(["--nproc-per-node=2", "w.py", "environment"])
        args.standalone = False
        run(args)
        import torch.distributed.launch as launch
        launch.main(["--nproc_per_node=1", "w.py", "launch"])
        """)
    assert said == sorted([*by_muster("main", "--nnodes=9"), *by_muster("tune"), *by_muster("accelerate"), *by_muster("environment"),
                           *by_muster("--local-rank=0", "launch", world=1)])


def test_failures_are_torchs_own(script):
    failed, stopped, timeout, *_ = script("""
        import signal, threading
        import torch.distributed.run as torchrun
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.elastic.rendezvous import RendezvousTimeoutError
        open("boom.py", "w").write("import os\\nif os.environ['RANK'] == '1': raise KeyError('boom')\\nimport signal; signal.pause()")
        open("kill.py", "w").write("import os, signal, time\\nos.kill(int(os.environ['LAUNCHER']), signal.SIGTERM); signal.pause()")
        try:
            torchrun.main(["--nproc-per-node=2", "boom.py"])
        except ChildFailedError as e:
            rank, failure = e.get_first_failure()
            show([e.name, rank, type(failure) is ProcessFailure, failure.exitcode, failure.message["message"], os.path.exists(failure.error_file)])
        os.environ["LAUNCHER"] = str(os.getpid())
        try:
            torchrun.main(["--nproc-per-node=1", "kill.py"])
        except SignalException as e:
            show([type(e).__module__.split(".")[0], e.sigval])
        try:
            torchrun.main(["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost",
                           "--rdzv-conf=join_timeout=1", "w.py"])
        except RendezvousTimeoutError as e:
            show(str(e))
        """)
    assert failed == ["boom.py", 1, True, 1, "KeyError: 'boom'", True]
    assert stopped == ["torch", signal.SIGTERM] and "124" in timeout


def test_what_is_refused_is_an_error_of_the_kind_that_torch_raises(script):
    """And devices are counted by the torch of the calling process, which may know more of them than muster."""
    refused, unknown, *_, said, _ = script("""
        import torch, torch.distributed.run as torchrun
        from unittest import mock
        try:
            torchrun.main(["--no_python", "--module", "w.py"])
        except ValueError as e:
            show([e.exit_code, isinstance(e, RuntimeError)])
        try:
            torchrun.main(["--nproc_per_node=unknown", "w.py"])
        except ValueError as e:
            show(str(e))
        with mock.patch("torch.cuda.is_available", return_value=True), mock.patch("torch.cuda.device_count", return_value=3):
            torchrun.main(["--nproc_per_node=gpu", "w.py"])
        """)
    assert refused == [2, True] and "unknown" in unknown and said == by_muster(world=3)


LAUNCH = """
from torch.distributed.launcher.api import LaunchConfig, elastic_launch, launch_agent
def config(nproc=2, **more):
    return LaunchConfig(**{**dict(min_nodes=1, max_nodes=1, nproc_per_node=nproc, run_id="job", rdzv_backend="c10d",
                                  rdzv_endpoint="localhost:0", max_restarts=0), **more})
def launcher(): return "muster" if "MUSTER_WATCHDOG" in os.environ else "torch"
def here(): return [int(os.environ["RANK"]), launcher()]
both = {0: [0, "muster"], 1: [1, "muster"]}
"""


def test_functions_with_torchs_own_configuration(script):
    pytest.importorskip("cloudpickle")
    shown, globals_, *_ = script(LAUNCH + textwrap.dedent("""
        class Point: pass
        setting = "the script's"
        def setting_of(): return setting
        def point(): return Point()
        if __name__ == "__main__":
            setting = "set at run time"
            word = "closure"
            static = config(rdzv_backend="static", rdzv_endpoint="localhost:29511", rdzv_configs={"rank": 0})
            c = config(run_id="")
            show([elastic_launch(config(), here)() == both, launch_agent(static, here, []) == both,
                  elastic_launch(config(1), lambda x: x + word)("a "), elastic_launch(config(start_method="fork"), here)() == both,
                  elastic_launch(c, here)() == both, len(c.run_id) > 20,
                  type(elastic_launch(config(1, start_method="fork"), point)()[0]) is Point, type(elastic_launch(config(1), point)()[0]) is Point])
            show([elastic_launch(config(1), setting_of)(), elastic_launch(config(1, start_method="fork"), setting_of)()])
        """))
    assert shown == [True, True, {"0": "a closure"}, True, True, True, True, True]
    assert globals_ == [{"0": "the script's"}, {"0": "set at run time"}], "spawn loads the script, fork copies what is there"


def test_a_static_rendezvous_of_one_node_at_port_0_takes_any_port(script):
    """accelerate's notebook_launcher asks for it so."""
    shown, *_ = script(LAUNCH + textwrap.dedent("""
        if __name__ == "__main__":
            show(elastic_launch(config(rdzv_backend="static", rdzv_endpoint="127.0.0.1:0", rdzv_configs={"rank": 0}), here)() == both)
        """))
    assert shown is True


def test_a_function_that_does_not_return_is_named(script):
    shown, *_ = script(LAUNCH + textwrap.dedent("""
        def leave(): os._exit(0)
        if __name__ == "__main__":
            try:
                elastic_launch(config(1), leave)()
            except RuntimeError as e:
                show(str(e))
        """))
    assert shown == "rank 0 ended with 0 before the function returned: os._exit() was called"


def test_what_was_typed_at_a_prompt_or_in_a_notebook(site, tmp_path):
    """Standard input is as little a script as a cell is."""
    pytest.importorskip("cloudpickle")
    source = HEAD + LAUNCH + textwrap.dedent("""
        cell = {"x": 5}
        def train(y): return [cell["x"] + y, launcher()]
        show(elastic_launch(config(start_method="fork"), train)(1))
        sys.modules["cloudpickle"] = None
        show(elastic_launch(config(1, start_method="fork"), train)(2))
        """)
    done = subprocess.run([site.python, "-"], input=source, env=env_of(**ON), cwd=tmp_path, text=True, capture_output=True, timeout=DEADLINE)
    assert [json.loads(line[5:]) for line in done.stdout.splitlines()] == [{"0": [6, "muster"], "1": [6, "muster"]}, {"0": [7, "torch"]}], done.stderr
    [why] = [line for line in done.stderr.splitlines() if line.startswith("muster: warning: ")]
    assert "train() cannot be sent to other processes" in why and "cloudpickle" in why and why.endswith("torch's own launcher runs this job")


def test_what_only_torch_can_do_it_does_and_says_why(script):
    able.need_own_name()
    shown, *_, said = script(LAUNCH + textwrap.dedent("""
        import threading, torch.distributed.run as torchrun
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
        from torch.distributed.elastic.events import handlers
        class Named(DefaultLogsSpecs): pass
        class Own(DefaultLogsSpecs):
            def reify(self, envs): return super().reify(envs)
        lock = threading.Lock()
        def locked(): return lock and None or launcher()
        if __name__ == "__main__":
            show([elastic_launch(config(1, **more), launcher)()[0] for more in (
                dict(logs_specs=Named()), dict(logs_specs=Own()))] +
                [elastic_launch(config(1, start_method="fork"), lambda: locked())()[0]])
            torchrun.main(["--logs-specs=elsewhere", "w.py"])
        """))
    assert shown == ["muster", "torch", "torch"]
    whys = [line for line in said.splitlines() if line.startswith("muster: warning: ")]
    assert len(whys) == 3 and all(why.endswith(": torch's own launcher runs this job") for why in whys)
    assert "Own decides where logs go" in whys[0] and "cannot be sent to other processes" in whys[1] and "plugin_logs.Plugin" in whys[2]
