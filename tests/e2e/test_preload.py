"""Warm workers (--preload): forked from a template that has imported the modules, and otherwise not to
be told from workers that were started in the usual way.

Most tests preload a module that is light; the promise does not depend on its weight."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import zipfile

import pytest

from conftest import DEADLINE, MUSTER, alive, clean_env, gone, read_line, wait_for

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


@pytest.fixture
def place(tmp_path):
    """write('name.py', text) puts a program into the directory of the test and returns its path."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


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
    """A file that can be sought in, a pipe that cannot."""
    place("where.py", """
        import sys
        print(sys.stdout.seekable(), sys.stderr.seekable(), file=sys.stderr)
        """)
    with open(tmp_path / "out", "w") as out:
        result = subprocess.run([MUSTER, "run", "--preload=json", "where.py"], cwd=tmp_path, env=clean_env(), stdout=out,
                                stderr=subprocess.PIPE, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
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


def test_a_stop_while_the_template_still_imports_is_quick_and_starts_nobody(place, start, tmp_path):
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


def descendants(pid):
    """All below `pid`, with the name of each."""
    found = []
    try:
        children = [int(word) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                    for word in (task / "children").read_text().split()]
    except FileNotFoundError:
        return found
    for child in children:
        found += [child, *descendants(child)]
    return found
