"""libmuster as a program outside this tree meets it: installed, found by pkg-config, linked both ways."""

import os
import re
import shutil
import subprocess

import pytest

from proc import gone
from tree import BUILD, MUSTER, ROOT, SANITIZER, clean_env
from waits import DEADLINE

pytestmark = pytest.mark.xdist_group("tree")  # they build in the tree

HERE = ROOT / "tests/e2e/lib"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What `make install` leaves: a prefix."""
    if not shutil.which("make") or not shutil.which("pkg-config"):
        pytest.skip("make and pkg-config are needed")
    prefix = tmp_path_factory.mktemp("prefix")
    done = subprocess.run(["make", "-s", "install", f"BUILD={os.path.relpath(BUILD, ROOT)}", f"SAN={SANITIZER}",
                           f"PREFIX={prefix}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return prefix


def pkg_config(prefix, *args):
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    return subprocess.run(["pkg-config", *args, "muster"], env=env, capture_output=True, text=True,
                          check=True).stdout.split()


def build(prefix, source, target, how):
    """Compiles a program outside this tree: `how` is "shared" or "static"."""
    flags = pkg_config(prefix, "--cflags", "--libs", *(["--static"] if how == "static" else []))
    if how == "static":
        flags = [str(prefix / "lib/libmuster.a") if f == "-lmuster" else f for f in flags]
    sanitize = [f"-fsanitize={SANITIZER}"] if SANITIZER else []
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *sanitize, "-o", str(target), str(source),
                    *flags, f"-Wl,-rpath,{prefix}/lib", "-pthread"], check=True)
    return target


@pytest.fixture(scope="module", params=["shared", "static"])
def example(request, installed, tmp_path_factory):
    return build(installed, ROOT / "examples/sum.c", tmp_path_factory.mktemp("example") / "sum", request.param)


@pytest.fixture(scope="module", params=["shared", "static"])
def batch_example(request, installed, tmp_path_factory):
    return build(installed, ROOT / "examples/batch.c", tmp_path_factory.mktemp("example") / "batch", request.param)


@pytest.fixture(scope="module")
def user(installed, tmp_path_factory):
    return build(installed, HERE / "libmuster_user.c", tmp_path_factory.mktemp("user") / "user", "shared")


@pytest.fixture
def use(user, tmp_path):
    """use(deed, command...) gives the lines the program printed."""

    def call(*args, **kwargs):
        done = subprocess.run([str(user), *args], env=clean_env(**{"MUSTER_PROGRAM": MUSTER, **kwargs}),
                              cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE,
                              stdin=subprocess.DEVNULL)
        call.stderr = done.stderr
        return done.stdout.splitlines()

    return call


def test_the_example_sums_over_ranks(example, installed, tmp_path):
    """Found on PATH, as after a plain installation."""
    env = clean_env()
    env["PATH"] = f"{installed}/bin:{env['PATH']}"
    done = subprocess.run([str(example)], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {f"rank {r} of 4: 46 = 46" for r in range(4)} <= set(lines)
    assert lines[-4:] == [f"rank {r} ended with 0" for r in range(4)]


def test_the_batch_example_tells_how_every_order_ended(batch_example, installed, tmp_path):
    env = clean_env()
    env["PATH"] = f"{installed}/bin:{env['PATH']}"
    done = subprocess.run([str(batch_example)], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    lines = re.sub(r"[\d.]+ ms", "N ms", done.stdout).splitlines()
    assert sorted(lines[:-1]) == ["long: run 0 took N ms", "short: run 0 took N ms", "short: run 1 took N ms",
                                  "stuck: timeout", "stuck: timeout"]
    assert lines[-1] == "ended with 1"


def test_header_map_and_manual_have_the_same_functions(installed):
    header = set(re.findall(r"(?m)^MUSTER_API [^;(]*?\**(muster_\w+)\(", (ROOT / "include/muster/muster.h").read_text()))
    library = installed / "lib/libmuster.so.0"
    lines = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    symbols = {line.split()[-1] for line in lines if "muster" in line}
    nodes = dict(re.findall(r"(?ms)^(MUSTER_[\d.]+) \{\nglobal:\n(.*?)[}:]", (ROOT / "src/lib/libmuster.map").read_text()))
    versions = {name: node for node, text in nodes.items() for name in re.findall(r"muster_\w+", text)}
    assert versions.keys() == header
    assert symbols == {f"{name}@@{node}" for name, node in versions.items()} | (nodes.keys() & symbols)
    pages = {page.stem for page in (installed / "share/man/man3").iterdir()}
    assert header <= pages


def test_every_link_page_leads_to_a_page_that_names_it(installed):
    pages = installed / "share/man/man3"
    for link in pages.iterdir():
        text = link.read_text()
        if text.startswith(".so "):
            target = installed / "share/man" / text.split()[1]
            assert re.search(rf"(?m)^\.Nm {link.stem}\b", target.read_text())


def test_the_static_library_shows_nothing_else(installed):
    lines = subprocess.run(["nm", "-g", "--defined-only", str(installed / "lib/libmuster.a")], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    names = {line.split()[-1] for line in lines if " " in line}
    assert {n for n in names if not n.startswith("muster_") and not n.startswith("__asan")} == set()


def test_the_library_needs_nothing_but_libc(installed):
    text = subprocess.run(["readelf", "-d", str(installed / "lib/libmuster.so.0")], capture_output=True, text=True,
                          check=True).stdout
    assert re.search(r"SONAME.*\[libmuster\.so\.0\]", text)
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", text))
    assert {n for n in needed if not re.match(r"lib(c|m|asan|ubsan)\.so", n)} <= {"ld-linux-x86-64.so.2",
                                                                                 "ld-linux-aarch64.so.1"}


def test_pkg_config_knows_the_version(installed):
    assert pkg_config(installed, "--modversion") == [(ROOT / "VERSION").read_text().strip()]


def test_a_result_for_every_rank_and_events_by_callback(use):
    lines = use("launch", "sh", "-c", "kill -KILL $$")
    assert "event worker.started rank 0 pid 1 json 1" in lines
    assert "event group.failed rank 0 pid 1 json 1" in lines
    assert lines[-2:] == ["exit 137 restarts 0 workers 1",
                          "rank 0 local 0 code -1 signal 9 first 1 file /attempt_0_0_error.json"]


def test_errors_are_explained(use):
    assert use("launch") == ["error EINVAL: the configuration has no command"]
    assert use("sizeless", "true")[0].startswith("error EINVAL")
    lines = use("launch", "true", MUSTER_PROGRAM="./nowhere")
    assert lines == ["error ENOENT: cannot start the program './nowhere': No such file or directory"]
    assert use("launch", "./nowhere")[-1] == "exit 127 restarts 0 workers 0"


def test_a_caller_that_ignores_its_children_still_gets_the_results(use):
    lines = use("sigchld", "sh", "-c", "exit 3")
    assert lines[-3:] == ["exit -1 restarts 0 workers 1", "rank 0 local 0 code 3 signal 0 first 1 file /attempt_0_0_error.json",
                          "still ignored 1"]


def test_a_caller_of_an_older_version_has_a_shorter_config(use):
    assert use("short", "true")[-2:] == ["exit 0 restarts 0 workers 1",
                                         "rank 0 local 0 code 0 signal 0 first 0 file /attempt_0_0_error.json"]


def test_output_goes_where_it_is_told(use):
    assert use("stdio", "echo", "hello")[-1] == "read hello"


def test_a_caller_without_stdio(use):
    use("closed", "true")
    assert "exit 0" in use.stderr


def test_environment_and_directory_are_the_workers_only(use):
    lines = use("env", "sh", "-c", 'echo worker "$ADDED" "${GONE-unset}" "$PWD"')
    assert "worker new unset /" in lines and lines[-1] == "own here unset"


def test_several_threads_launch_at_once(use):
    assert use("threads", "true") == ["code 0"] * 4


def test_in_steps_with_a_signal(use):
    lines = use("steps", "sleep", "60")
    assert lines == ["pid 1 result 0", "exit 143 restarts 0 workers 1",
                     "rank 0 local 0 code -1 signal 15 first 0 file /attempt_0_0_error.json", "step 1 pid 0 signal 1"]


def test_a_job_that_is_freed_is_gone(use):
    line = use("free", "sleep", "60")[-1]
    match = re.fullmatch(r"worker (\d+) children 0", line)
    assert match and not gone([int(match[1])])
