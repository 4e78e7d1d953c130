"""muster run from the outside: what is run, with which environment, and what bad input gives."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import pytest

import able
from able import need_own_name
from ports import Port
from tree import MUSTER, MUSTER_SH, ROOT, clean_env
from waits import DEADLINE, wait_for


def one_line(result, code, *parts):
    """One clear line with all the parts, the right code, and nothing else."""
    assert result.returncode == code, result.stderr
    text = result.stderr.removesuffix("try 'muster run --help'\n")
    assert text.count("\n") == 1, result.stderr
    for part in parts:
        assert part in text, text


def by_rank(result):
    """The lines of the workers, sorted: they come in any order."""
    assert result.returncode == 0, result.stderr
    return sorted(result.stdout.splitlines())


# What is run

def test_a_script_is_run_by_python_unbuffered(muster, place):
    place("s.py", "import os, sys; "
          "os.write(1, f\"{os.environ['RANK']} {sys.argv} {sys.stdout.write_through}\\n\".encode())")
    assert by_rank(muster("run", "--nproc-per-node=2", "s.py", "--lr", "0.1")) == [
        "0 ['s.py', '--lr', '0.1'] True", "1 ['s.py', '--lr', '0.1'] True"]


def test_an_executable_script_that_ends_in_py_is_run_by_python(muster, place):
    place("s.py", "print('python')", 0o755)
    assert by_rank(muster("run", "s.py")) == ["python"]


def test_a_file_without_the_executable_bit_is_run_by_python(muster, place):
    place("script", "print('python')")
    assert by_rank(muster("run", "script")) == ["python"]


def test_a_program_is_run_itself(muster, place):
    place("prog", "#!/bin/sh\necho $0 $RANK \"$@\"\n", 0o755)
    assert by_rank(muster("run", "--nproc-per-node=2", "./prog", "a b")) == ["./prog 0 a b", "./prog 1 a b"]
    assert by_rank(muster("run", "bash", "-c", "echo hello $0", "x")) == ["hello x"]


def test_a_module_is_run_by_python(muster, place, tmp_path):
    (tmp_path / "pkg").mkdir()
    place("pkg/mod.py", "import os, sys; os.write(1, f'{__name__} {sys.argv[1:]}\\n'.encode())")
    assert by_rank(muster("run", "--standalone", "--nproc-per-node=2", "-m", "pkg.mod", "x")) == [
        "__main__ ['x']"] * 2


def test_no_python_runs_the_word_itself(muster, place):
    place("s.py", "#!/bin/sh\necho shell\n", 0o755)
    assert by_rank(muster("run", "--no-python", "./s.py")) == ["shell"]


def test_run_path_runs_the_script_as_main_and_records_its_error(muster, place, tmp_path):
    place("s.py", "import sys; print(__name__, sys.argv)")
    assert by_rank(muster("run", "--run-path", "s.py", "a")) == ["__main__ ['s.py', 'a']"]
    place("zero.py", "import sys; sys.exit(0)")
    assert muster("run", "--run-path", "zero.py").returncode == 0
    place("bad.py", "raise ValueError('boom')")
    result = muster("run", "--run-path", "--log-dir=logs", "bad.py")
    assert result.returncode == 1
    error, = (tmp_path / "logs").glob("*/attempt_0/0/error.json")
    assert json.loads(error.read_text())["message"]["message"] == "ValueError: boom"


def test_the_interpreter_is_the_one_named(muster, place, tmp_path):
    place("my", "#!/bin/sh\necho mine \"$@\"\n", 0o755)
    place("s.py", "")
    assert by_rank(muster("run", "s.py", env=clean_env(PYTHON_EXEC=tmp_path / "my"))) == ["mine -u s.py"]


def test_the_interpreter_beside_muster_needs_no_activation(place, tmp_path):
    """A link in a virtual environment: its python is taken, not the one on PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "muster").symlink_to(MUSTER)
    place("bin/python", "#!/bin/sh\necho beside\n", 0o755)
    place("s.py", "")
    out = subprocess.check_output([tmp_path / "bin" / "muster", "run", "s.py"], cwd=tmp_path, text=True,
                                  env=clean_env())
    assert out == "beside\n"


def test_under_the_name_torchrun_it_is_muster_run(tmp_path):
    (tmp_path / "torchrun").symlink_to(MUSTER)
    run = [tmp_path / "torchrun"]
    out = subprocess.check_output([*run, "--nproc_per_node", "2", "bash", "-c", "echo $RANK"], text=True,
                                  cwd=tmp_path, env=clean_env())
    assert sorted(out.split()) == ["0", "1"]
    bad = subprocess.run([*run, "--nope"], text=True, capture_output=True, env=clean_env())
    assert bad.returncode == 2 and bad.stderr.startswith("torchrun: unknown option '--nope'")


def test_double_dash(muster):
    echo = ["bash", "-c", "echo \"$@\"", "x"]
    assert by_rank(muster("run", "--", "echo", "--", "a")) == ["-- a"]
    assert by_rank(muster("run", "echo", "--", "-a")) == ["-a"]
    assert by_rank(muster("run", *echo, "y", "--", "z")) == ["y -- z"]


def test_macros_and_other_dollars(muster):
    script = "echo $0 $1 $2 $3"
    assert by_rank(muster("run", "--nproc-per-node=2", "bash", "-c", script, "$local_rank", "${local_rank}x",
                          "$$", "$local_rankx")) == ["0 0x $$ $local_rankx", "1 1x $$ $local_rankx"]


# The workers' environment

def test_environment_of_the_workers(muster, tmp_path):
    result = muster("run", "--nproc-per-node=2", "--max-restarts=3", "--role=trainer", "--rdzv-id=job7",
                    "--log-dir=logs", sys.executable, "-c",
                    "import json, os; json.dump(dict(os.environ), open(os.environ['RANK'], 'w'))")
    assert result.returncode == 0, result.stderr
    workers = [json.loads((tmp_path / rank).read_text()) for rank in "01"]
    mine = clean_env()
    for rank, env in enumerate(workers):
        error_file = env.pop("TORCHELASTIC_ERROR_FILE")
        assert re.fullmatch(rf"logs/job7_[a-z0-9_]{{8}}/attempt_0/{rank}/error\.json",
                            os.path.relpath(tmp_path / error_file, tmp_path))
        assert 1024 < int(env.pop("MASTER_PORT")) < 65536
        added = {k: v for k, v in env.items() if mine.get(k) != v and k not in ("_", "PWD", "SHLVL")}
        assert added.pop("TORCHELASTIC_USE_AGENT_STORE") in ("True", "False")
        added.pop("MUSTER_WATCHDOG", None)
        assert added == {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0", "ROLE_RANK": str(rank),
            "ROLE_NAME": "trainer", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1",
            "ROLE_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RUN_ID": "job7",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "OMP_NUM_THREADS": "1",
            "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT"}


def test_environment_is_that_of_the_real_torchrun(tmp_path):
    """The same variables with the same values, but for what is random or said in docs/differences.md."""
    need_own_name()
    script = "import json, os; json.dump(dict(os.environ), open('out.' + os.environ['RANK'], 'w'))"
    args = ["--nproc-per-node=2", "--max-restarts=2", "--role=r", "--no-python", sys.executable, "-c", script]
    seen = {}
    for name, program in (("peer", [sys.executable, "-m", "torch.distributed.run"]), ("ours", [MUSTER, "run"])):
        (tmp_path / name).mkdir()
        subprocess.run([*program, *args], cwd=tmp_path / name, env=clean_env(), check=True, capture_output=True)
        seen[name] = json.loads((tmp_path / name / "out.1").read_text())
    differs = {k for k in seen["peer"].keys() | seen["ours"].keys()
               if seen["peer"].get(k) != seen["ours"].get(k) and not k.startswith("MUSTER_")}
    assert differs <= {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE",
                       "TORCHELASTIC_USE_AGENT_STORE", "PWD", "_"}
    assert all(k in seen["ours"] for k in differs - {"PWD", "_"})


def test_variables_are_defaults(muster):
    env = clean_env(PET_NPROC_PER_NODE=3, PET_ROLE="r", PET_MAX_RESTARTS="z")
    assert by_rank(muster("run", "--max-restarts=0", "bash", "-c", "echo $ROLE_NAME $RANK", env=env)) == [
        "r 0", "r 1", "r 2"]
    one_line(muster("run", "true", env=env), 2, "PET_MAX_RESTARTS", "'z'")


def test_virtual_local_rank(muster):
    script = "echo $RANK $LOCAL_RANK $CUDA_VISIBLE_DEVICES $0"
    assert by_rank(muster("run", "--virtual-local-rank", "--nproc-per-node=2", "bash", "-c", script, "$local_rank",
                          env=clean_env(CUDA_VISIBLE_DEVICES="5, 6"))) == ["0 0 5 0", "1 0 6 1"]
    one_line(muster("run", "--virtual-local-rank", "--nproc-per-node=2", "true",
                    env=clean_env(CUDA_VISIBLE_DEVICES="5")), 2, "local rank 1", "CUDA_VISIBLE_DEVICES=5")


def test_a_variable_that_torchrun_does_not_read_never_ends_a_job(muster, port):
    unread = clean_env(PET_NODE_RANK=7, PET_MASTER_PORT=700000, PET_MASTER_ADDR="nowhere.invalid")
    for meeting in ("--standalone",), ("--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port.number}"):
        done = muster("run", *meeting, "true", env=unread)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    typed = muster("run", "--rdzv-backend=c10d", "--node-rank=7", "true", env=unread)
    assert typed.returncode == 2 and "--node-rank" in typed.stderr
    odd = muster("run", "true", env=clean_env(PET_START_METHOD="thread"))
    assert odd.returncode == 0 and "PET_START_METHOD" in odd.stderr and "'thread'" in odd.stderr


def test_odd_bytes_in_the_environment_reach_the_workers(tmp_path):
    env = {os.fsencode(k): os.fsencode(v) for k, v in clean_env().items()}
    env[b"ODD\xff\x01"] = b"\x80\xfe\n="
    out = subprocess.check_output([MUSTER, "run", "env", "-0"], env=env, cwd=tmp_path)
    assert b"ODD\xff\x01=\x80\xfe\n=" in out.split(b"\0")


# Bad input

@pytest.mark.parametrize("args, code, parts", [
    (["missing.py"], 127, ["'missing.py'", "no such script or program"]),
    (["./missing"], 127, ["'./missing'"]),
    (["no-such-program-anywhere"], 127, ["'no-such-program-anywhere'", "PATH"]),
    (["--no-python", "./plain"], 126, ["'./plain'", "chmod +x"]),
    (["directory"], 126, ["'directory' is a directory", "-m"]),
    (["./no-format"], 126, ["no-format", "#!"]),
    (["start.sh"], 126, ["'start.sh' is not executable", "'bash start.sh'", "#!/bin/sh"]),
    (["sh start.sh"], 127, ["'sh start.sh'", "leave the quotes out"]),
    (["nosuch start.sh"], 127, ["'nosuch start.sh'", "check the name"]),
    (["./no-interpreter"], 127, ["no-interpreter", "'/no/such/interpreter'"]),
    (["--nproc-per-node=0", "true"], 2, ["--nproc-per-node", "'0'", "at least 1"]),
    (["--nproc-per-node", "-1", "true"], 2, ["--nproc-per-node", "'-1'", "at least 1"]),
    (["--nproc-per-node=1e9", "true"], 2, ["--nproc-per-node", "'1e9'"]),
    (["--nproc-per-node=1000000000", "true"], 2, ["--nproc-per-node", "'1000000000'", "65536"]),
    (["--nproc-per-node=abc", "true"], 2, ["--nproc-per-node", "'abc'"]),
    (["--nnodes=4:2", "true"], 2, ["--nnodes", "'4:2'"]),
    (["--nnodes=1:2:3", "true"], 2, ["--nnodes", "'1:2:3'"]),
    (["--max-restarts=-1", "true"], 2, ["--max-restarts"]),
    (["--monitor-interval=0", "true"], 2, ["--monitor-interval"]),
    (["--max-restart=x", "true"], 2, ["'--max-restarts'", "'x'"]),
    (["--no-restart-on=900", "true"], 2, ["--no-restart-on", "'900'"]),
    (["--signals-to-handle=SIGKILL", "true"], 2, ["'SIGKILL'"]),
    (["--maxx-restarts=1", "true"], 2, ["'--maxx-restarts'", "did you mean '--max-restarts'"]),
    (["-m", "--no-python", "x"], 2, ["--no-python", "--module"]),
    (["--start-method=bad", "x"], 2, ["'bad'", "spawn, fork, forkserver"]),
    (["--standalone=1", "x"], 2, ["'--standalone' takes no value"]),
    ([], 2, ["no command given"]),
])
def test_bad_input_gives_one_clear_line(muster, place, tmp_path, args, code, parts):
    (tmp_path / "directory").mkdir()
    place("plain", "")
    place("start.sh", "echo started\n")
    place("no-format", "\x7f\x01\x02", 0o755)
    place("no-interpreter", "#!/no/such/interpreter\n", 0o755)
    one_line(muster("run", *args), code, *parts)


@pytest.mark.parametrize("value", ["/proc/nothing", "/dev/full", "file/below"])
def test_unusable_log_directory(muster, place, value):
    place("file", "")
    one_line(muster("run", f"--log-dir={value}", "true"), 125, f"'{value}'", "/dev/null")


def test_full_disk(muster, tmp_path):
    """With a log directory on a full disk nothing starts; with only the temporary one full, the job runs."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,nr_inodes=2", "none", disk], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(mounted.stderr.strip())
    try:
        (disk / "x").touch()
        one_line(muster("run", f"--log-dir={disk}", "echo", "ran"), 125, f"'{disk}'", "No space left on device")
        result = muster("run", "echo", "ran", env=clean_env(TMPDIR=disk))
        assert result.returncode == 0 and result.stdout == "ran\n"
        one_line(result, 0, "no log directory", "No space left on device")
    finally:
        subprocess.run(["umount", disk], check=True)


def test_too_many_arguments(muster, tmp_path):
    """What fits for muster may not fit for a worker, whose environment is larger."""
    big = "x" * 100_000
    few = muster("run", "true", *[big] * 4)
    assert few.returncode == 0
    limit = os.sysconf("SC_ARG_MAX")
    room = limit - sum(len(f"{k}={v}") + 9 for k, v in clean_env().items())
    count, rest = divmod(room - 300, len(big) + 9)
    args = [big] * count + (["x" * (rest - 9)] if rest > 10 else [])
    try:
        result = muster("run", "true", *args)
    except OSError:
        pytest.skip("the system counts differently: muster itself could not be started")
    one_line(result, 126, "arguments and environment", "ulimit -s")


def test_few_descriptors(muster):
    """A job that sixteen are not enough for says so in one line; none is left half started."""
    def limit(count):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    for nproc, count in ((1, 16), (64, 16), (64, 40)):
        result = muster("run", f"--nproc-per-node={nproc}", "true", preexec_fn=limit(count))
        one_line(result, 125, f"at most {count} open files", "ulimit -n")
    assert muster("run", "echo", "ran", preexec_fn=limit(32)).stdout == "ran\n"


def test_no_process_left_to_start():
    """As a user with a limit of processes that is used up."""
    able.need_root("another user's limit is needed")
    able.need(*able.NOBODY, "true")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        program = shutil.copy(MUSTER, directory)
        user = 30000 + os.getpid() % 30000  # of whom no other process runs; a container may know 65,536 users
        script = f"ulimit -u 1; exec setpriv --reuid={user} --regid={user} --clear-groups {program} run /bin/true"
        result = subprocess.run(["bash", "-c", script], cwd="/", text=True, capture_output=True,
                                env=clean_env(TMPDIR="/tmp", ASAN_OPTIONS="detect_leaks=0"))
    one_line(result, 125, "ulimit -u")


# The report and the exit code

def test_exit_code_is_that_of_the_first_cause(muster):
    script = "[ $RANK = 1 ] && exit 3; sleep 60"
    result = muster("run", "--nproc-per-node=3", "bash", "-c", script)
    assert result.returncode == 3
    assert result.stderr.startswith("muster: job failed: rank 1 of 3 ended with exit code 3 after ")
    assert "2 ended with SIGTERM when the group was stopped (ranks 0, 2)" in result.stderr
    assert muster("run", "--exit-code=torchrun", "bash", "-c", "exit 3").returncode == 1
    assert muster("run", "bash", "-c", "kill -SEGV $$").returncode == 139


def test_report_has_the_end_of_stderr_and_a_hint(muster, tmp_path):
    result = muster("run", "--nproc-per-node=2", "--log-dir=logs", "bash", "-c",
                    "[ $RANK = 0 ] && exec sleep 60; echo last words >&2; kill -KILL $$")
    assert result.returncode == 137
    assert "ended with SIGKILL" in result.stderr and "out-of-memory killer" in result.stderr
    assert re.search(r"the end of its stderr\n +last words\n", result.stderr)
    report = json.loads(next((tmp_path / "logs").glob("*/report.json")).read_text())
    assert report["outcome"] == "failed" and report["exit_code"] == 137
    attempt, = report["attempts"]
    cause = attempt["failures"][attempt["first_cause"]]
    assert (cause["rank"], cause["signal"], cause["stderr_tail"]) == (1, 9, "last words\n")


def test_report_knows_how_gloo_aborts_at_the_end(muster):
    result = muster("run", "bash", "-c", "echo terminate called without an active exception >&2; kill -ABRT $$")
    assert result.returncode == 134 and "end with os._exit(0) after destroy_process_group()" in result.stderr


def test_report_counts_attempts(muster, tmp_path):
    result = muster("run", "--max-restarts=2", "--log-dir=logs", "bash", "-c", "exit $((TORCHELASTIC_RESTART_COUNT + 5))")
    assert result.returncode == 7
    for number, code in ((1, 5), (2, 6), (3, 7)):
        assert re.search(rf"{number}: .*rank 0 ended with exit code {code}\n", result.stderr)
    assert sorted(p.name for p in (tmp_path / "logs").glob("*/attempt_*")) == ["attempt_0", "attempt_1", "attempt_2"]


def test_no_restart_on(muster, tmp_path):
    result = muster("run", "--max-restarts=5", "--no-restart-on=7,SIGSEGV", "bash", "-c", "exit 7")
    assert result.returncode == 7
    assert "--no-restart-on lists exit code 7" in result.stderr
    assert "attempts" not in result.stderr


RECORDED = """
import json, os, sys
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("boom")
    import time
    time.sleep(60)

main()
"""


def torch_table(title, text):
    """The same table made by torch itself, from the values in ours."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
    blocks = re.findall(r"\[(\d+)\]:\n  time      : (\S+)\n  host      : (\S*)\n  rank      : (\d+) \(local_rank: (\d+)\)\n"
                        r"  exitcode  : (-?\d+) \(pid: (\d+)\)[^\n]*\n  error_file: ([^\n]*)\n", text)
    failures = {}
    for index, time, host, rank, local_rank, code, pid, error_file in sorted(blocks):
        failure = ProcessFailure(int(local_rank), int(pid), int(code), "/nowhere" if error_file == "<N/A>" else error_file)
        failures[int(rank)] = failure
        if error_file == "<N/A>":
            import datetime
            failure.timestamp = int(datetime.datetime.strptime(time, "%Y-%m-%d_%H:%M:%S").timestamp())
    return str(ChildFailedError(title, failures))


def test_torchrun_table_is_what_torch_prints(muster, place, tmp_path, monkeypatch):
    import socket
    monkeypatch.setattr(socket, "getfqdn", socket.gethostname)
    place("train.py", RECORDED)
    passed_up = tmp_path / "up.json"
    result = muster("run", "--nproc-per-node=2", "--report=torchrun", f"--log-dir={tmp_path}/logs", "train.py",
                    env=clean_env(TORCHELASTIC_ERROR_FILE=passed_up))
    assert result.returncode == 1
    table = result.stderr[result.stderr.index("torch.distributed.elastic"):]
    head, _, block = table.partition("\n")
    assert head == "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    assert block.rstrip("\n") == torch_table("train.py", block).strip("\n")
    message = json.loads(passed_up.read_text())["message"]
    assert (message["message"], message["errorCode"]) == ("ValueError: boom", 1)


# Named, because pytest hands the name of a test on in the environment.
@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in {
    "empty": "", "cut": '{"message": {"mess', "text": "not json", "array": "[]", "open": "{" * 5000, "large": "x" * 5_000_000,
    "arrays": "[" * 5000 + "]" * 5000, "objects": '{"message":' * 5000 + "1" + "}" * 5000}.items()])
def test_any_error_file_leaves_a_report(muster, content, tmp_path):
    result = muster("run", f"--log-dir={tmp_path}", sys.executable, "-c",
                    "import os, sys; open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write(sys.stdin.read());"
                    "print('words', file=sys.stderr); sys.exit(4)", input=content, stdin=None)
    assert result.returncode == 4
    assert re.search(r"error\.json (is|has) ", result.stderr) and "words" in result.stderr
    report, = tmp_path.glob("**/report.json")
    failure = json.loads(report.read_text())["attempts"][0]["failures"][0]
    assert failure["exit_code"] == 4 and re.match("(is|has) ", failure["error_file_problem"])


def test_nothing_is_left_in_the_temporary_directory(muster, tmp_path):
    assert muster("run", "--nproc-per-node=3", "true", env=clean_env(TMPDIR=tmp_path)).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_options_of_torchs_older_launcher_and_quotes_are_taken(muster):
    done = muster("run", "--use-env", "--rdzv-conf='join_timeout=5,last_call_timeout=1,timeout=5'", "echo", "ran")
    assert done.returncode == 0 and done.stdout == "ran\n" and "unknown" not in done.stderr
    done = muster("run", "--use_env", '--rdzv-conf="join_timeout=x"', "echo", "ran")
    assert done.returncode == 2 and "'join_timeout=x'" in done.stderr


def test_help_and_version(muster):
    assert muster("--version").stdout == f"muster {(ROOT / 'VERSION').read_text()}"
    assert muster("version").stdout == muster("-V").stdout == muster("--version").stdout
    assert muster("run", "--help").stdout == muster("help", "run").stdout
    assert muster("run", "-h").returncode == 0
    assert muster("rum").returncode == 2
    assert "did you mean 'run'" in muster("rum").stderr
    assert muster("-v").stderr == "muster: unknown option '-v'; 'muster --help' explains\n"


@pytest.mark.parametrize("args, next_step", [
    ([], "muster run --nproc-per-node=4 train.py"),
    (["run"], "'muster run --nproc-per-node=4 train.py'"),
    (["run", "--lr", "0.1", "train.py"], "options of your own program go behind its name"),
    (["--nproc-per-node=2", "train.py"], "'muster run --nproc-per-node=2 ...'"),
    (["train.py"], "'muster run train.py'"),
    (["./a.out"], "'muster run ./a.out'"),
    (["run", "--nnodes=2", "train.py"], "--rdzv-endpoint=HOST"),
    (["run", "-n", "2", "train.py"], "did you mean '--nproc-per-node'?"),
    (["run", "-np", "2", "train.py"], "did you mean '--nproc-per-node'?"),
    (["run", "--nnodes", "2", "--rdzv-endpoint", "train.py"], "'train.py' is the value of --rdzv-endpoint"),
    (["stop"], "'muster status' lists"),
    (["kv"], "no operation given: get, set, "),
    (["kv", "put"], "unknown operation 'put'; there are get, set, "),
    (["k8s", "train.py"], "--image=registry/train:1 -- --nnodes=4 train.py"),
    (["batch"], "name a file"),
    (["compare"], "'muster batch -o FILE'"),
    (["trend"], "'muster batch --history-dir=DIR'"),
    (["bisect"], "a commit that is fast"),
])
def test_the_first_mistakes_are_told_the_next_step(muster, args, next_step):
    done = muster(*args)
    assert done.returncode == 2 and done.stdout == "" and next_step in done.stderr


def test_a_misspelled_key_of_the_rendezvous_is_told_the_right_one(muster):
    done = muster("run", "--rdzv-conf=jointimeout=3,xyzzy=1", "true")
    assert "'jointimeout' is unknown and has no effect; did you mean 'join_timeout'?" in done.stderr
    assert "'xyzzy' is unknown and has no effect\n" in done.stderr


def test_a_history_that_is_empty_is_told_how_it_is_filled(muster, tmp_path):
    done = muster("trend", str(tmp_path))
    assert done.returncode == 125 and f"'muster batch --history-dir={tmp_path}' files them" in done.stderr


def test_torchrun_without_a_script_names_itself(place, muster, tmp_path):
    (tmp_path / "torchrun").symlink_to(MUSTER)
    done = subprocess.run([tmp_path / "torchrun"], capture_output=True, text=True, env=clean_env(), timeout=DEADLINE)
    assert done.returncode == 2 and "'torchrun --nproc-per-node=4 train.py'" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["run --nproc-per-node=2", "batch -q :::"])
def test_standard_descriptors_that_are_closed_are_opened_on_dev_null(tmp_path, closed, command):
    """Else the next thing that muster opens, a socket to its warden, becomes the workers' input or output."""
    script = tmp_path / "show"
    script.write_text("#!/bin/bash\nexec 3>>seen\nfor fd in 0 1 2; do readlink /proc/$$/fd/$fd >&3; done\n")
    script.chmod(0o755)
    done = subprocess.run(["bash", "-c", f"exec {closed}; exec {MUSTER_SH} {command} ./show"], cwd=tmp_path,
                          env=clean_env(), timeout=DEADLINE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    assert done.returncode == 0
    seen = (tmp_path / "seen").read_text().split()
    assert seen and not [name for name in seen if name.startswith("socket")]


@pytest.mark.parametrize("command", ["store", "coordinator"])
def test_a_server_opens_standard_descriptors_that_are_closed_on_dev_null(start, port, command):
    server = start("-c", f"exec <&- >&- 2>&-; exec {MUSTER_SH} {command} --listen={port.endpoint}", program="bash")
    wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", port.number)) == 0, "the server")
    assert [os.readlink(f"/proc/{server.pid}/fd/{fd}") for fd in range(3)] == ["/dev/null"] * 3


def test_a_shell_script_that_is_not_executable_is_not_given_to_python(muster, tmp_path):
    (tmp_path / "start").write_text("#!/bin/bash\nfor i in 1; do echo $i; done\n")
    one_line(muster("run", "start"), 126, "'start' is a script for /bin/bash", "chmod +x")


@pytest.mark.parametrize("command", ["run", "batch", "compare", "status", "store", "kv", "coordinator", "sim", "timer"])
@pytest.mark.parametrize("columns", ["", "80"])
def test_help_fits_a_terminal_of_80_columns(muster, command, columns):
    lines = muster("help", command, env=clean_env(COLUMNS=columns)).stdout.splitlines()
    assert lines and not [line for line in lines if len(line) > 80]


def test_a_name_that_is_not_there_is_told_on_stderr_with_the_same_code(muster):
    done = muster("status", "nosuch")
    assert (done.returncode, done.stdout) == (1, "") and "nosuch" in done.stderr
    assert muster("compare", "nosuch").returncode == muster("batch", "nosuch").returncode == 2
    done = muster("batch", "echo {}")
    assert done.returncode == 2 and ":::" in done.stderr


def test_a_store_that_does_not_answer_is_told(muster):
    done = muster("kv", "--store=127.0.0.1:1", "--timeout=3s", "get", "key")
    assert done.returncode != 0 and "Connection refused; trying for another 2.0 s" in done.stderr, done.stderr


@pytest.mark.parametrize("command", ["store", "coordinator"])
def test_a_server_can_be_stopped_as_soon_as_it_tells_its_address(tmp_path, command):
    """The order of system calls decides: who reads the line may send the signal before the server's next one."""
    able.need("strace", "-o", "/dev/null", "true")
    calls = tmp_path / "calls"
    with subprocess.Popen(["strace", "-f", "-e", "trace=rt_sigaction,write", "-o", calls, MUSTER, command, "--listen=127.0.0.1:0"],
                          stdout=subprocess.PIPE, text=True, env=clean_env()) as tracer:
        assert tracer.stdout.readline().startswith("listening on ")
        wait_for(lambda: "listening on" in calls.read_text(), "the call in the trace")
        os.kill(int(calls.read_text().split()[0]), signal.SIGTERM)
        assert tracer.wait(DEADLINE) in (143, -15)
    before = calls.read_text().partition("listening on")[0]
    assert re.search(r"rt_sigaction\(SIGTERM, \{sa_handler=0x", before)


def test_an_option_of_ours_behind_the_script_is_named_where_the_script_refuses_it(muster, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")
    said = muster("run", script, "--nproc-per-node=2").stderr
    assert re.search(r"try +--nproc-per-node is also an option of muster run: put it before .*train.py", said), said
    assert " try " not in muster("run", script, "--lr=2").stderr


def test_a_port_that_the_worker_itself_wants_is_not_ours(muster):
    def hint(*options):
        return muster("run", *options, "sh", "-c", "echo Address already in use >&2; exit 3").stderr
    with contextlib.closing(Port()) as port:
        assert "leave --master-port out" in hint(f"--master-port={port.number}")
    assert "a port that the worker itself asks for" in hint() and "--master-port" not in hint()


def test_a_module_is_reported_as_it_was_typed(muster):
    assert re.search(r"command +-m no_such_module_here 1\n", muster("run", "-m", "no_such_module_here", "1").stderr)


def test_an_option_with_the_beginning_of_another_is_understood(muster):
    assert "did you mean '--nproc-per-node'" in muster("run", "--nprocs=2", "true").stderr
    assert "did you mean" not in muster("run", "--normal=2", "true").stderr


def test_help_is_in_columns_whatever_the_letters(muster):
    """"…" is three bytes."""
    lines = [line for line in muster("compare", "--help").stdout.splitlines() if "…" in line[:28]]
    assert lines and all(line[29] == " " and line[30] != " " for line in lines), lines
