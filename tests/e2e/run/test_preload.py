"""Warm workers (--preload): forked from a template that has imported the modules, and otherwise not to
be told from workers that were started in the usual way.

Most tests preload a module that is light; the promise does not depend on its weight."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import zipfile

import ddp
import pytest

from able import cores, need_cores
from proc import gone, parent, read
from tree import MUSTER, ROOT, clean_env, python_env
from waits import DEADLINE, read_line, wait_for

TORCH_TIMEOUT = 300

# What a program can find out about itself, as JSON in the file of its rank.
SELF = '''
import gc, json, os, resource, signal, stat, sys, threading, warnings

def stream(s):
    raw = getattr(s.buffer, "raw", s.buffer)
    return [type(s).__name__, s.encoding, s.errors, s.line_buffering, s.write_through, s.mode, s.name, s.newlines,
            s.fileno(), type(s.buffer).__name__, raw.name, raw.mode, s.isatty(), s.seekable(), s.closed]

def status(name):
    return next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1:]

def descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = stat.S_IFMT(os.fstat(int(name)).st_mode), os.get_inheritable(int(name))
        except OSError:
            pass  # of the listing itself
    return found

volatile = ("MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "MUSTER_", "_")
main = sys.modules["__main__"]
view = {
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": list(sys.flags),
    "executable": sys.executable, "warnoptions": sys.warnoptions, "filters": [str(f) for f in warnings.filters],
    "globals": sorted(globals().keys() - {"here"}), "name": __name__, "file": globals().get("__file__"),
    "package": __package__, "loader": str(getattr(__loader__, "__name__", type(__loader__))), "doc": __doc__,
    "spec": __spec__ and [__spec__.name, __spec__.origin], "cached": globals().get("__cached__"),
    "builtins": str(__builtins__), "is main": main.__dict__ is globals(),
    "cwd": os.getcwd(), "umask": os.umask(0o22),
    "environment": {k: v for k, v in os.environ.items() if not k.startswith(volatile)},
    "descriptors": descriptors(), "streams": [stream(sys.stdin), stream(sys.stdout), stream(sys.stderr)],
    "same streams": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    "stdin": sys.stdin.read(),
    "handlers": {s: str(signal.getsignal(s)) for s in signal.valid_signals()},
    "signals": [status("SigBlk"), status("SigIgn"), status("SigCgt")],
    "session": os.getsid(0) == os.getpid(), "group": os.getpgid(0) == os.getpid(),
    "affinity": sorted(os.sched_getaffinity(0)), "nice": os.nice(0),
    "limits": [resource.getrlimit(l) for l in range(16)], "dumpable": status("NoNewPrivs"),
    "threads": [t.name for t in threading.enumerate()], "native": len(os.listdir("/proc/self/task")),
    "comm": open("/proc/self/comm").read(), "cmdline": open("/proc/self/cmdline").read().rstrip("\\0").split("\\0"),
    "gc": [gc.isenabled(), gc.get_threshold()], "recursion": sys.getrecursionlimit(),
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__],
    "parent": open(f"/proc/{os.getppid()}/comm").read(),
}
with os.popen("env | grep ^RANK=") as env:  # as C sees it
    view["inherited"] = env.read()
print(json.dumps(view))
'''


def run(*args, preload="json", timeout=DEADLINE, cwd, env=None, **kwargs):
    """Runs `muster run` to its end; preload=None: in the usual way."""
    warm = [f"--preload={preload}"] if preload else []
    return subprocess.run([MUSTER, "run", *warm, *map(str, args)], cwd=cwd, env=env or clean_env(), text=True,
                          capture_output=True, timeout=timeout, **{"stdin": subprocess.DEVNULL, **kwargs})


def succeed(*args, **kwargs):
    result = run(*args, **kwargs)
    assert result.returncode == 0, result.stderr
    assert "--preload" not in result.stderr, "not warm: " + result.stderr
    return result.stdout


def descendants(pid):
    """The pids of all processes below."""
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


PROGRAMS = {
    "script": ["self.py", "one", "--two=2"],
    "script by another way": ["./sub/../self.py"],
    "link to a script": ["sub/link.py"],
    "absolute": ["{dir}/self.py"],
    "compiled": ["self.pyc"],
    "directory": ["app", "x"],
    "zip file": ["app.zip"],
    "module": ["-m", "pkg.mod", "a", "b"],
    "package": ["-m", "pkg"],
    "run-path": ["--run-path", "self.py", "a"],
}


@pytest.mark.parametrize("words", PROGRAMS.values(), ids=PROGRAMS)
def test_a_warm_worker_sees_what_a_fresh_interpreter_sees(place, tmp_path, words):
    import py_compile
    script = place("self.py", SELF)
    for name in ("app/__main__.py", "pkg/mod.py", "pkg/__main__.py"):
        place(name, SELF)
    place("pkg/__init__.py", "")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link.py").symlink_to(script)
    py_compile.compile(str(script), cfile=str(tmp_path / "self.pyc"))
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.write(script, "__main__.py")

    words = [word.replace("{dir}", str(tmp_path)) for word in words]
    env = clean_env(WEIRD="\udcff\n=x", PYTHONDONTWRITEBYTECODE=1)
    views = [json.loads(succeed("--rdzv-id=me", "--stdin=first", *words, cwd=tmp_path, env=env, preload=preload,
                                stdin=None, input="typed\nlines")) for preload in (None, "json")]
    assert views[0].keys() == views[1].keys()
    for key, cold in views[0].items():
        assert views[1][key] == cold, key


def test_streams_fit_what_they_lead_to(place, tmp_path):
    """A file that can be sought in, a pipe that cannot; with --capture=never the worker has those of muster."""
    place("where.py", """
        import sys
        print(sys.stdout.seekable(), sys.stderr.seekable(), file=sys.stderr)
        """)
    with open(tmp_path / "out", "w") as out:
        result = subprocess.run([MUSTER, "run", "--preload=json", "--capture=never", "where.py"], cwd=tmp_path, env=clean_env(),
                                stdout=out, stderr=subprocess.PIPE, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert result.stderr == "True False\n"


def test_several_ranks_and_restarts_are_all_forked_from_one_template(place, tmp_path):
    place("preloaded.py", """
        import os
        template = os.getpid()
        """)
    place("train.py", """
        import os, sys, preloaded
        assert preloaded.template != os.getpid()
        count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        os.write(1, f"{preloaded.template} {os.environ['RANK']} {count}\\n".encode())
        sys.exit(3 if count < 2 and os.environ["RANK"] == "1" else 0)
        """)
    result = run("--nproc-per-node=3", "--max-restarts=2", "train.py", preload="preloaded", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    said = [line.split() for line in result.stdout.splitlines()]
    assert len({words[0] for words in said}) == 1
    assert {(rank, count) for _, rank, count in said} >= {(r, "2") for r in "012"} | {("1", "0"), ("1", "1")}
    assert "--preload" not in result.stderr


# ---- how a worker ends ----


@pytest.mark.parametrize("end, code", [
    ("sys.exit(7)", 7),
    ("sys.exit()", 0),
    ("sys.exit('said')", 1),
    ("raise SystemExit(9)", 9),
    ("os._exit(11)", 11),
    ("1 / 0", 1),
    ("os.kill(os.getpid(), signal.SIGSEGV)", 128 + signal.SIGSEGV),
    ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
    ("os.abort()", 128 + signal.SIGABRT),
    ("signal.raise_signal(signal.SIGINT)", 128 + signal.SIGINT),
    ("threading.Timer(0.01, lambda: print('late')).start()", 0),
])
def test_the_exit_status_is_seen_as_it_is(place, tmp_path, end, code):
    place("end.py", f"""
        import atexit, os, signal, sys, threading
        atexit.register(lambda: print("atexit"))
        {end}
        """)
    cold, warm = (run("end.py", cwd=tmp_path, preload=preload) for preload in (None, "json"))
    assert (cold.returncode, warm.returncode) == (code, code), warm.stderr
    assert "--preload" not in warm.stderr
    assert warm.stdout == cold.stdout


FAILING = {
    "script": (["boom.py"], 'def f():\n    raise ValueError("boom")\nf()\n'),
    "module": (["-m", "boom"], 'raise ValueError("boom")\n'),
    "syntax": (["boom.py"], "x = 1\nif x\n"),
    "cause": (["boom.py"], "try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError('boom') from e\n"),
    "hook": (["boom.py"], "import sys\nsys.excepthook = lambda *a: print('mine', a[0], a[2].tb_lineno, file=sys.stderr)\n"
             "raise ValueError('boom')\n"),
    "interrupt": (["boom.py"], "raise KeyboardInterrupt\n"),
    "last": (["boom.py"], "import atexit, sys\natexit.register(lambda: print(sys.last_value, sys.last_traceback.tb_lineno, "
             "sys.last_traceback.tb_frame.f_code.co_filename, file=sys.stderr))\nraise ValueError('boom')\n"),
}


@pytest.mark.parametrize("words, text", FAILING.values(), ids=FAILING)
def test_a_traceback_shows_the_script_and_nothing_else(place, tmp_path, words, text):
    (tmp_path / "boom.py").write_text(text)
    cold, warm = (run("--report=none", *words, cwd=tmp_path, preload=preload) for preload in (None, "json"))
    assert warm.stderr == cold.stderr != ""
    assert warm.returncode == cold.returncode


def test_a_signal_ends_a_warm_job_with_its_workers(place, start, tmp_path):
    place("wait.py", """
        import os, signal, time
        def stop(*_):
            os.write(1, b"stopped\\n")
            raise SystemExit(0)
        signal.signal(signal.SIGTERM, stop)
        os.write(1, b"up\\n")
        time.sleep(1000)
        """)
    job = start("run", "--preload=json", "--nproc-per-node=2", "wait.py")
    assert [read_line(job), read_line(job)] == ["up\n", "up\n"]
    job.send_signal(signal.SIGTERM)
    assert [read_line(job), read_line(job)] == ["stopped\n", "stopped\n"]
    assert job.wait(DEADLINE) == 128 + signal.SIGTERM


def test_a_stop_while_the_template_still_imports_is_quick_and_starts_no_worker(place, start, tmp_path):
    place("slow.py", """
        import os, time
        os.write(1, b"importing\\n")
        time.sleep(1000)
        """)
    place("never.py", "print('started')")
    job = start("run", "--preload=slow", "--shutdown-timeout=1000", "never.py")
    assert read_line(job) == "importing\n"
    template = descendants(job.pid)
    job.send_signal(signal.SIGTERM)
    out, _ = job.communicate(timeout=DEADLINE)
    assert job.returncode == 128 + signal.SIGTERM and out == ""
    assert gone(template) == []


# ---- nothing survives ----

# Escapes in every way it can, then says who is who.
ESCAPE = """
    import os, subprocess, sys, time
    subprocess.Popen(["setsid", "sleep", "1000"])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
    os.write(1, b"up\\n")
    time.sleep(1000)
    """


@pytest.fixture
def escaping_job(place, start):
    """A job of two workers that have started processes of their own, and all pids below muster."""
    place("escape.py", ESCAPE)
    job = start("run", "--preload=json", "--nproc-per-node=2", "--max-restarts=1", "--shutdown-timeout=0.3", "escape.py")
    assert [read_line(job), read_line(job)] == ["up\n", "up\n"]
    return job


def warden_of(job):
    (warden,) = [pid for pid in descendants(job.pid) if read(pid, "comm") == b"warden\n"]
    return warden


def wards_of(job, text):
    """The warden's children that have the text in their command line and lead a session."""
    children = [int(word) for word in read(warden_of(job), f"task/{warden_of(job)}/children").split()]
    return [pid for pid in children if text in read(pid, "cmdline")
            and read(pid, "stat").rpartition(b")")[2].split()[3:4] == [b"%d" % pid]]


def template_of(job):
    (template,) = wards_of(job, b"link.recv")
    return template


def workers_of(job):
    return [pid for pid in wards_of(job, b"escape.py") if b"link.recv" not in read(pid, "cmdline")]


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_nothing_is_left_when_muster_ends(escaping_job, sig):
    everybody = descendants(escaping_job.pid)
    escaping_job.send_signal(sig)
    escaping_job.wait(DEADLINE)
    assert gone(everybody) == []


def test_nothing_is_left_when_the_job_fails(escaping_job):
    everybody = descendants(escaping_job.pid)
    worker = workers_of(escaping_job)[0]
    os.kill(worker, signal.SIGKILL)
    assert [read_line(escaping_job), read_line(escaping_job)] == ["up\n", "up\n"]
    warden = warden_of(escaping_job)
    assert gone(set(everybody) - {parent(warden), warden, template_of(escaping_job)}) == []
    everybody = descendants(escaping_job.pid)
    os.kill(workers_of(escaping_job)[1], signal.SIGKILL)
    assert escaping_job.wait(DEADLINE) == 128 + signal.SIGKILL
    assert gone(everybody) == []
    assert "--preload" not in escaping_job.stderr.read()


def test_a_killed_template_is_told_once_and_the_next_workers_start_without_it(escaping_job):
    template = template_of(escaping_job)
    os.kill(template, signal.SIGKILL)
    assert "--preload: the template ended: SIGKILL" in read_line(escaping_job, "stderr")
    os.kill(workers_of(escaping_job)[0], signal.SIGKILL)
    assert [read_line(escaping_job), read_line(escaping_job)] == ["up\n", "up\n"]
    everybody = descendants(escaping_job.pid)
    escaping_job.send_signal(signal.SIGTERM)
    escaping_job.wait(DEADLINE)
    assert gone(everybody) == []
    assert "--preload" not in escaping_job.stderr.read()


def test_a_killed_warden_takes_all_workers_along_and_the_next_are_warm_again(escaping_job):
    everybody = descendants(escaping_job.pid)
    old = template_of(escaping_job)
    os.kill(warden_of(escaping_job), signal.SIGKILL)
    assert [read_line(escaping_job), read_line(escaping_job)] == ["up\n", "up\n"]
    assert gone(everybody) == []
    assert template_of(escaping_job) != old
    everybody = descendants(escaping_job.pid)
    escaping_job.send_signal(signal.SIGTERM)
    escaping_job.wait(DEADLINE)
    assert gone(everybody) == []
    assert "--preload" not in escaping_job.stderr.read()


def test_muster_killed_while_the_template_forks_leaves_nothing(place, start):
    """At any moment: no worker gets past its gate without a warden."""
    place("up.py", "import os, time\nos.write(1, b'up\\n')\ntime.sleep(1000)\n")
    for _ in range(10):
        job = start("run", "--preload=json", "--nproc-per-node=8", "up.py")
        seen = wait_for(lambda: len(found := descendants(job.pid)) > 3 and found, "more than heir, warden and template")
        seen += descendants(job.pid)
        job.kill()
        job.wait(DEADLINE)
        assert gone(set(seen)) == []


# ---- when it cannot be had ----


@pytest.mark.parametrize("module, why", [
    ("missing_module", "cannot import missing_module: ModuleNotFoundError"),
    ("broken", "cannot import broken: ZeroDivisionError: division by zero"),
    ("leaves", "cannot import leaves: SystemExit: 3"),
    ("dies", "the template ended: exit code 4"),
    ("killed", "the template ended: SIGKILL"),
    ("threaded", "a module has started the thread 'busy'"),
    ("json,cuda", "a module has initialised CUDA"),
])
def test_a_template_that_cannot_serve_is_told_once_and_workers_start_as_always(place, tmp_path, module, why):
    place("broken.py", "1 / 0")
    place("leaves.py", "raise SystemExit(3)")
    place("dies.py", "import os; os._exit(4)")
    place("killed.py", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    place("threaded.py", "import threading, time; threading.Thread(target=time.sleep, args=(1000,), name='busy', daemon=True).start()")
    place("cuda.py", """
        import sys, types
        torch = sys.modules["torch"] = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(is_initialized=lambda: True)
        """)
    place("end.py", "import os, sys; sys.exit(5 if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' else 0)")
    result = run("--nproc-per-node=2", "--max-restarts=1", "end.py", preload=module, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    warnings = [line for line in result.stderr.splitlines() if "--preload" in line]
    assert len(warnings) == 1 and why in warnings[0], result.stderr


@pytest.mark.parametrize("limit", ["--start-timeout=4", "--hang-timeout=4"])  # on a busy machine Python takes a second to get to the import
def test_a_module_whose_import_hangs_is_told_once_and_workers_start_as_always(place, tmp_path, limit):
    place("stuck.py", "import os, signal; os.write(1, b'%d\\n' % os.getpid()); signal.pause()")
    place("end.py", "print('done')")
    result = run(limit, "--hang-action=report", "end.py", preload="json,stuck", cwd=tmp_path)
    template, done = result.stdout.splitlines()
    assert result.returncode == 0 and done == "done" and gone([int(template)]) == [], result.stderr
    warnings = [line for line in result.stderr.splitlines() if "--preload" in line]
    assert len(warnings) == 1 and "json,stuck is not imported after" in warnings[0], result.stderr


def test_a_program_that_is_not_python_is_started_as_always(tmp_path):
    result = run("sh", "-c", "echo done", cwd=tmp_path)
    assert result.stdout == "done\n" and "'sh' is not run by Python" in result.stderr


@pytest.mark.parametrize("names", ["a,,b", " torch", "torch;os", "."])
def test_an_invalid_name_is_a_usage_error(tmp_path, names):
    result = run("x.py", preload=names, cwd=tmp_path)
    assert result.returncode == 2 and "is not the name of a module" in result.stderr


PLACED = """
    import os, preloaded
    warm = preloaded.template != os.getpid()
    threads, cpus = os.environ["OMP_NUM_THREADS"], sorted(os.sched_getaffinity(0))
    os.write(1, f"{os.environ['RANK']} {warm} {threads} {cpus}\\n".encode())
    """


def test_warm_workers_are_bound_to_their_cpus(place, tmp_path):
    place("preloaded.py", "import os\ntemplate = os.getpid()\n")
    place("placed.py", PLACED)
    cpus = sorted(os.sched_getaffinity(0))
    lists = [cpus[0], cpus[-1]]
    out = succeed("--nproc-per-node=2", f"--bind=explicit:{lists[0]}:{lists[1]}", "placed.py", preload="preloaded", cwd=tmp_path)
    assert sorted(out.splitlines()) == [f"{rank} True 1 [{cpu}]" for rank, cpu in enumerate(lists)]


def test_a_worker_whose_load_time_variables_differ_starts_as_always_and_the_log_says_why(place, tmp_path):
    need_cores()
    if len(cores()) < 3:
        pytest.skip("needs three cores")
    place("preloaded.py", "import os\ntemplate = os.getpid()\n")
    place("placed.py", PLACED)
    a, b, c = (cpus[-1] for cpus in cores()[:3])
    result = run("--nproc-per-node=2", f"--bind=explicit:{a}:{b},{c}", "placed.py", preload="preloaded", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [f"0 True 1 [{a}]", f"1 False 2 [{b}, {c}]"]
    assert "--preload: rank 1 is started in the usual way: OMP_NUM_THREADS=2 is not" in result.stderr


# ---- what is written where ----


def test_output_goes_to_log_files_and_to_the_screen(place, tmp_path):
    place("say.py", """
        import os, sys
        os.write(1, b"out\\n")
        os.write(2, b"err\\n")
        """)
    out = succeed("--nproc-per-node=2", "--tee=1", "--redirects=2", "--log-dir=logs", "say.py", cwd=tmp_path)
    assert sorted(out.splitlines()) == ["[default0]:out", "[default1]:out"]
    for rank in "01":
        (directory,) = (tmp_path / "logs").glob(f"*/attempt_0/{rank}")
        assert (directory / "stdout.log").read_text() == "out\n"
        assert (directory / "stderr.log").read_text() == "err\n"


def test_random_numbers_differ_between_workers_and_hashes_follow_the_seed(place, tmp_path):
    place("draw.py", """
        import os, random, multiprocessing
        import numpy.random
        key = bytes(multiprocessing.current_process().authkey).hex()
        os.write(1, f"{random.random()} {numpy.random.rand()} {key} {hash('x')}\\n".encode())
        """)
    env = clean_env(PYTHONHASHSEED=17)
    lines = succeed("--nproc-per-node=3", "draw.py", preload="numpy.random,multiprocessing", cwd=tmp_path, env=env)
    columns = list(zip(*(line.split() for line in lines.splitlines())))
    assert [len(set(column)) for column in columns] == [3, 3, 3, 1]
    assert columns[3][0] == subprocess.check_output([sys.executable, "-c", "print(hash('x'))"], env=env, text=True).strip()


def test_sys_path_of_the_script_serves_for_the_modules_too(place, tmp_path):
    place("app/helper.py", "import os\nname = 'helper'\n")
    place("app/main.py", "import helper, sys\nprint(helper.name, sys.path[0])\n")
    assert succeed("app/main.py", preload="helper", cwd=tmp_path) == f"helper {tmp_path}/app\n"


def test_files_in_the_working_directory_are_not_library_modules(place, tmp_path):
    place("socket.py", "raise ImportError('not meant')")
    place("app/main.py", "import socket\nprint(len(socket.gethostname()) > 0)\n")
    assert succeed("app/main.py", cwd=tmp_path) == "True\n"


def test_more_workers_than_one_message_holds(place, tmp_path):
    place("rank.py", "import os\nos.write(1, (os.environ['RANK'] + '\\n').encode())\n")
    out = succeed("--nproc-per-node=70", "rank.py", cwd=tmp_path)
    assert sorted(map(int, out.split())) == list(range(70))


def test_an_environment_beyond_any_message_arrives(place, tmp_path):
    place("size.py", "import os\nprint(len(os.environ['BIG']), len(os.environ['BIGGER']))\n")
    env = clean_env(BIG="x" * 120000, BIGGER="y" * 120000)
    assert succeed("size.py", cwd=tmp_path, env=env) == "120000 120000\n"


# ---- an uncaught exception is recorded ----


def error_file(tmp_path):
    found = list((tmp_path / "logs").glob("*/attempt_0/0/error.json"))
    return json.loads(found[0].read_text())["message"] if found else None


@pytest.fixture(params=["preload", "package"])
def recording(request, tmp_path):
    """Runs a script undecorated, either way; returns the result and what is in its error file."""
    env = clean_env()
    if request.param == "package":
        # An installed package: its start-up file in a directory that site looks through.
        site = tmp_path / "site"
        site.mkdir()
        (site / "muster.pth").write_text(f"{ROOT / 'python'}\n" + (ROOT / "python" / "muster.pth").read_text())
        (site / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(site)!r})\n")
        env["PYTHONPATH"] = str(site)

    def call(script, *options):
        result = run("--log-dir=logs", *options, script, cwd=tmp_path, env=env,
                     preload="json" if request.param == "preload" else None)
        return result, error_file(tmp_path)

    return call


def test_an_undecorated_scripts_exception_is_in_its_error_file_and_the_report(place, recording):
    result, error = recording(place("boom.py", """
        def inner():
            raise ValueError("a boom \u00e9 of its own")
        inner()
        """))
    assert result.returncode == 1
    assert error["message"] == "ValueError: a boom \u00e9 of its own"
    assert error["extraInfo"]["py_callstack"] in result.stderr
    assert error["extraInfo"]["py_callstack"].splitlines()[1].endswith("boom.py\", line 4, in <module>")
    assert int(error["extraInfo"]["timestamp"]) > 1.7e9


def test_the_users_own_hook_still_shows_the_exception(place, recording):
    result, error = recording(place("hook.py", """
        import sys
        earlier = sys.excepthook
        def mine(kind, error, trace):
            print("mine:", error, file=sys.stderr)
            earlier(kind, error, trace)
        sys.excepthook = mine
        raise ValueError("boom")
        """))
    assert "mine: boom" in result.stderr and error["message"] == "ValueError: boom"


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise KeyboardInterrupt", "os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_an_end_without_an_exception_leaves_no_error_file(place, recording, end):
    result, error = recording(place("end.py", f"import os, sys\n{end}\n"))
    assert result.returncode != 0 and error is None


def test_a_helpers_exception_is_not_the_workers(place, recording):
    result, error = recording(place("helper.py", """
        import os, subprocess, sys
        if len(sys.argv) > 1:
            raise ValueError("the helper's")
        subprocess.run([sys.executable, __file__, "again"])
        if os.fork() == 0:
            raise ValueError("the child's")
        os.wait()
        os._exit(3)
        """))
    assert result.returncode == 3 and "the helper's" in result.stderr and "the child's" in result.stderr
    assert error is None


def test_a_decorated_script_is_recorded_as_it_decided(place, recording):
    result, error = recording(place("decorated.py", """
        import json, os
        path = os.environ["TORCHELASTIC_ERROR_FILE"]
        try:
            raise ValueError("first")
        except ValueError:
            with open(path, "w") as file:
                json.dump({"message": {"message": "mine", "extraInfo": {"timestamp": "1"}}}, file)
            raise
        """))
    assert result.returncode == 1 and error["message"] == "mine"


def test_the_start_up_file_costs_nothing_where_there_is_no_launcher(tmp_path):
    """It imports nothing that an interpreter has not imported by then."""
    line = (ROOT / "python" / "muster.pth").read_text()
    env = clean_env(PYTHONPATH=ROOT / "python")
    show = "import sys; print(sorted(sys.modules), sys.excepthook is sys.__excepthook__)"
    bare, hooked = (subprocess.check_output([sys.executable, "-c", f"{before}\n{show}"], env=env, text=True)
                    for before in ("", line))
    assert hooked == bare


def test_the_start_up_file_is_silent_where_another_module_has_its_name(tmp_path):
    (tmp_path / "muster.py").touch()
    env = clean_env(PYTHONPATH=tmp_path, TORCHELASTIC_ERROR_FILE=tmp_path / "error", MUSTER_FLIGHT=tmp_path)
    done = subprocess.run([sys.executable, "-c", f"import site; site.addsitedir({str(ROOT / 'python')!r})"],
                          env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ---- libraries ----

METHODS = """
    import multiprocessing, os, sys

    def work(queue):
        main = sys.modules["__main__"]
        queue.put((os.getpid() != queue_owner(), __name__, os.path.basename(main.__file__)))

    def queue_owner():
        return int(os.environ["OWNER"])

    if __name__ == "__main__":
        os.environ["OWNER"] = str(os.getpid())
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            queue = context.SimpleQueue()
            child = context.Process(target=work, args=(queue,))
            child.start()
            said = queue.get()
            child.join()
            assert child.exitcode == 0
            print(method, *said)
        with multiprocessing.Pool(2) as pool:
            print(sum(pool.map(abs, range(-10, 0))))
    """


@pytest.mark.parametrize("words", [["methods.py"], ["-m", "pkg.methods"]], ids=["script", "module"])
def test_multiprocessing_works_in_a_warm_worker_by_every_method(place, tmp_path, words):
    place("methods.py", METHODS)
    place("pkg/__init__.py", "")
    place("pkg/methods.py", METHODS)
    cold, warm = (succeed(*words, preload=preload, cwd=tmp_path) for preload in (None, "multiprocessing"))
    assert warm == cold and warm.count("True") == 3


def test_a_template_with_threads_of_blas_and_openmp_gives_workers_that_compute(place, tmp_path):
    """Each of these hangs in a process that was forked without the libraries' knowledge."""
    place("computed.py", """
        import os
        import numpy, torch
        torch.set_num_threads(2)
        many = numpy.ones((600, 600)) @ numpy.ones((600, 600))
        more = torch.ones(600, 600) @ torch.ones(600, 600)
        torch.ones(1 << 20).sum()
        template, threads = os.getpid(), len(os.listdir("/proc/self/task"))
        """)
    place("compute.py", """
        import os
        import computed, numpy, torch
        assert computed.template != os.getpid() and computed.threads > 1, computed.threads
        a = numpy.ones((600, 600)) @ computed.many
        layer = torch.nn.Linear(600, 1)
        (torch.ones(600, 600) @ computed.more * layer(torch.ones(600, 600))).sum().backward()
        os.write(1, f"{a[0, 0]} {torch.ones(1 << 20).sum().item()} {torch.get_num_threads()}\\n".encode())
        """)
    out = succeed("--nproc-per-node=2", "compute.py", preload="computed", cwd=tmp_path,
                  env=clean_env(OMP_NUM_THREADS=2, OPENBLAS_NUM_THREADS=2), timeout=TORCH_TIMEOUT)
    assert out == "360000.0 1048576.0 2\n" * 2


def test_torch_works_in_warm_workers(place, tmp_path):
    """DataLoader with workers, torch.multiprocessing, gloo and DDP, and a seed for each rank."""
    place("all.py", """
        import os, torch, torch.distributed as dist, torch.multiprocessing as mp
        from torch.utils.data import DataLoader, TensorDataset

        def child(i, queue):
            queue.put(i + torch.ones(3).sum().item())

        def load(workers, **options):
            data = TensorDataset(torch.arange(20.0))
            return sum(x.sum().item() for (x,) in DataLoader(data, batch_size=4, num_workers=workers, **options))

        def train():
            torch.manual_seed(0)
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
            model(torch.ones(2, 4) * (1 + dist.get_rank())).sum().backward()
            return model.module.weight.grad.sum().item()

        if __name__ == "__main__":
            dist.init_process_group("gloo")
            seeds = [None] * dist.get_world_size()
            dist.all_gather_object(seeds, torch.initial_seed())
            assert len(set(seeds)) == len(seeds), seeds
            assert load(2) == 190
            if dist.get_rank() == 0:
                assert load(1, multiprocessing_context="spawn") == 190
                queue = mp.get_context("spawn").SimpleQueue()
                mp.spawn(child, args=(queue,), nprocs=1)
                assert queue.get() == 3
            gradient = train()
            dist.barrier()
            dist.destroy_process_group()
            os.write(1, f"gradient {gradient}\\n".encode())
            os._exit(0)  # as in examples/ddp
        """)
    out = succeed("--nproc-per-node=2", "all.py", preload="torch", cwd=tmp_path, timeout=TORCH_TIMEOUT)
    assert out == "gradient 12.0\n" * 2


def test_warm_training_survives_ten_kills_and_ends_with_the_same_loss(tmp_path):
    undisturbed = ddp.train(MUSTER, tmp_path / "undisturbed", "--preload=torch,torch._dynamo")
    disturbed = ddp.train(MUSTER, tmp_path / "disturbed", "--preload=torch,torch._dynamo", kills=10)
    assert undisturbed == (disturbed[0], "0")
    assert disturbed[1] == "10"
    assert "--preload" not in (tmp_path / "disturbed" / "stderr").read_text()


def test_functions_are_launched_warm(place, python, tmp_path):
    place("modules/preloaded.py", "import os\ntemplate = os.getpid()\n")
    done = python("""
        import os
        from muster.launcher import LaunchConfig, elastic_launch

        def work(x):
            import preloaded
            return preloaded.template != os.getpid() and x + int(os.environ["RANK"])

        if __name__ == "__main__":
            print(elastic_launch(LaunchConfig(1, 1, 2, run_id="x", preload="preloaded"), work)(10))
        """, env=python_env(PYTHONPATH=f"{ROOT}/python:{tmp_path}/modules"))
    assert done.stdout == "{0: 10, 1: 11}\n"
