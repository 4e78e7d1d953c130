"""`pip install .`, and a wheel for machines that have nothing but Python."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import ddp
from tree import BUILD, ROOT, SANITIZER, clean_env

pytestmark = [pytest.mark.skipif(bool(SANITIZER), reason="wheels are built without sanitizers"),
              pytest.mark.xdist_group("tree")]  # they build in the tree

VERSION = (ROOT / "VERSION").read_text().strip()
OURS = ("libevent", "libhwloc", "libsodium", "libcurl")
PIP_OPTIONS = ("--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")


def run(*command, **kwargs):
    """To its end, with its output as text; it must go well."""
    kwargs.setdefault("env", clean_env(BUILD=os.path.relpath(BUILD, ROOT)))
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=ddp.DEADLINE,
                          **kwargs)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(venv, command, *args):
    """The pip of the tests, at work in an environment that has none."""
    return run(sys.executable, "-m", "pip", "--python", venv / "bin/python", command, *PIP_OPTIONS, *args, cwd=ROOT)


def make_venv(directory):
    run(sys.executable, "-m", "venv", "--without-pip", directory)
    return directory


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    """A fresh one after `pip install .`; behind its own packages it sees those of the
    tests (torch, and setuptools to build with)."""
    directory = make_venv(tmp_path_factory.mktemp("wheel") / "venv")
    site = next(directory.glob("lib/python3*/site-packages"))
    (site / "tests.pth").write_text(f"{pathlib.Path(pytest.__file__).parents[1]}\n")
    pip(directory, "install", ".")
    return directory


@pytest.fixture(scope="module")
def repaired(tmp_path_factory):
    directory = tmp_path_factory.mktemp("repaired")
    run(sys.executable, "-m", "pip", "wheel", *PIP_OPTIONS, "-w", directory / "plain", ".", cwd=ROOT)
    plain = next((directory / "plain").iterdir())
    return pathlib.Path(run(sys.executable, ROOT / "scripts/repair-wheel", plain, directory / "whole").strip())


@pytest.fixture(scope="module")
def whole_venv(repaired, tmp_path_factory):
    """One in which only the repaired wheel is installed; nothing of ours is seen from it."""
    directory = make_venv(tmp_path_factory.mktemp("whole") / "venv")
    pip(directory, "install", repaired)
    return directory


def test_everything_has_the_one_version(venv):
    python = venv / "bin/python"
    assert run(venv / "bin/muster", "--version") == f"muster {VERSION}\n"
    assert run(python, "-m", "muster", "--version") == f"muster {VERSION}\n"
    assert run(python, "-c", "import muster; print(muster.__version__)").strip() == VERSION
    assert run(python, "-c", "import importlib.metadata as m; print(m.version('muster'))").strip() == VERSION


def test_the_console_script_is_the_program_itself(venv):
    with open(venv / "bin/muster", "rb") as file:
        assert file.read(4) == b"\x7fELF"


def test_the_installed_package_launches_functions(venv, tmp_path):
    (tmp_path / "main.py").write_text("""
import os, muster.launcher as l
def rank(): return 10 + int(os.environ["RANK"])
if __name__ == "__main__":
    print(l.elastic_launch(l.LaunchConfig(1, 1, 2, run_id="x"), rank)())
""")
    assert run(venv / "bin/python", "main.py", cwd=tmp_path) == "{0: 10, 1: 11}\n"


def test_a_script_runs_under_the_interpreter_of_the_environment(venv, tmp_path):
    (tmp_path / "where.py").write_text("import sys; print(sys.prefix)")
    assert run(venv / "bin/muster", "run", "where.py", cwd=tmp_path) == f"{venv}\n"
    assert run(venv / "bin/python", "-m", "muster", "run", "where.py", cwd=tmp_path) == f"{venv}\n"


@pytest.mark.parametrize("options", [[], ["--preload=json"]], ids=["cold", "warm"])
def test_an_undecorated_scripts_exception_is_recorded(venv, tmp_path, options):
    (tmp_path / "boom.py").write_text("def work():\n    raise ValueError('a boom')\nwork()\n")
    done = subprocess.run([str(venv / "bin/muster"), "run", *options, "--log-dir=logs", "boom.py"], cwd=tmp_path,
                          env=clean_env(), capture_output=True, text=True, timeout=ddp.DEADLINE)
    assert done.returncode == 1, done.stderr
    (error,) = tmp_path.glob("logs/*/attempt_0/0/error.json")
    assert json.loads(error.read_text())["message"]["message"] == "ValueError: a boom"
    assert "error.json" in done.stderr and "in work" in done.stderr


def test_training_survives_kills_and_ends_with_the_same_loss(venv, tmp_path):
    """Each restart imports torch again; ten kills are in test_preload.py, where it is imported once."""
    undisturbed = ddp.train(venv / "bin/muster", tmp_path / "undisturbed")
    disturbed = ddp.train(venv / "bin/muster", tmp_path / "disturbed", kills=2)
    assert undisturbed == (disturbed[0], "0")
    assert disturbed[1] == "2"


# -- the repaired wheel --


def test_the_repaired_wheel_says_what_it_needs(repaired):
    assert re.fullmatch(rf"muster-{re.escape(VERSION)}-py3-none-manylinux_2_\d+_\w+\.whl", repaired.name)
    with zipfile.ZipFile(repaired) as wheel:
        names = wheel.namelist()
        record = wheel.read(f"muster-{VERSION}.dist-info/RECORD").decode()
    assert all(f"{name}," in record for name in names)
    assert any("lib/muster/libevent_core" in name for name in names)
    bundled = {name.rpartition("/")[2] for name in names if "/lib/muster/" in name}
    licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name}
    assert licences == {"LICENSE", *(f"{name}.txt" for name in bundled)}


def libraries(program):
    lines = run("ldd", program).splitlines()
    return dict(re.findall(r"^\s*(\S+) => (\S+)", "\n".join(lines), re.MULTILINE))


def test_the_repaired_program_loads_its_own_libraries(whole_venv):
    found = libraries(whole_venv / "bin/muster")
    system = {name for name, path in found.items() if not path.startswith(str(whole_venv))}
    assert {re.sub(r"\.so.*", "", name) for name in system} <= {"libc", "libm"}
    assert any("libevent_core" in name for name in found)


def hidden_run(whole_venv, *command, cwd):
    """Runs where compilers, and the libraries that the wheel's programs are linked with, are covered up.
    (Not what those are linked with in turn: Python itself needs some of it.)"""
    bundled = [path.name for path in (whole_venv / "lib/muster").iterdir()]
    cover = system_copies([name for name in bundled if name.startswith(OURS)])
    cover += [path for path in map(shutil.which, ("gcc", "cc", "clang", "make")) if path]
    assert cover, "nothing to cover: the test would show nothing"
    script = "".join(f"mount --bind /dev/null '{path}' && " for path in cover) + 'exec "$@"'
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    probe = subprocess.run(["unshare", "--mount", *own, "sh", "-c", script, "sh", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"files cannot be covered here: {probe.stderr.strip()}")
    return run("unshare", "--mount", *own, "sh", "-c", script, "sh", *command, cwd=cwd,
               env={"PATH": "/usr/bin:/bin", "HOME": str(cwd)})


def system_copies(names):
    lines = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({os.path.realpath(line.rpartition(" => ")[2]) for line in lines
                   if line.split() and line.split()[0] in names})


def test_the_repaired_wheel_works_where_nothing_is_installed(whole_venv, tmp_path):
    out = hidden_run(whole_venv, whole_venv / "bin/muster", "run", "--nproc-per-node=2", "--bind=core", "-t", "3",
                     "sh", "-c", "echo $RANK of $WORLD_SIZE", cwd=tmp_path)
    assert sorted(out.splitlines()) == ["[default0]:0 of 2", "[default1]:1 of 2"]
    helper = whole_venv / "libexec/muster/muster-discover-etcd"
    assert VERSION in hidden_run(whole_venv, helper, "--version", cwd=tmp_path)


def test_the_repaired_package_works_where_nothing_is_installed(whole_venv, tmp_path):
    (tmp_path / "main.py").write_text("""
import os, muster, muster.launcher as l
def total():
    with muster.Store() as store:
        store.add("sum", 10 + int(os.environ["RANK"]))
        store.barrier("all", int(os.environ["WORLD_SIZE"]))
        return store.add("sum", 0)
if __name__ == "__main__":
    print(l.elastic_launch(l.LaunchConfig(1, 1, 3, run_id="x"), total)())
""")
    assert hidden_run(whole_venv, whole_venv / "bin/python", "main.py", cwd=tmp_path) == "{0: 33, 1: 33, 2: 33}\n"
