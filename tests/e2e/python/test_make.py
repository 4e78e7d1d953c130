"""What a newcomer does with make and pip, and what they say."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tree import BUILD, ROOT, SANITIZER
from waits import DEADLINE

pytestmark = pytest.mark.xdist_group("tree")  # they build in the tree


def make(*words, check=True, **kwargs):
    done = subprocess.run(["make", "-s", f"BUILD={os.path.relpath(BUILD, ROOT)}", f"SAN={SANITIZER}", *words], cwd=ROOT, text=True,
                          capture_output=True, timeout=5 * DEADLINE, **kwargs)
    assert not check or done.returncode == 0, done.stderr
    return done


def files(directory):
    return sorted(path for path in directory.rglob("*") if not path.is_dir())


def test_help_names_what_there_is():
    named = re.findall(r"^ +make (\w+)", make("help").stdout, re.M)
    assert {"run", "test", "check", "e2e", "install", "clean", "help"} <= set(named)


def test_uninstall_takes_away_all_that_install_has_put(tmp_path):
    make("install", f"DESTDIR={tmp_path}")
    assert len(files(tmp_path)) > 20
    make("uninstall", f"DESTDIR={tmp_path}")
    assert files(tmp_path) == []


def test_a_program_linked_as_install_says_finds_the_library(tmp_path):
    said = make("install", f"PREFIX={tmp_path}").stdout
    flag = re.search(r"-Wl,-rpath,\S+", said)[0]
    sanitize = [f"-fsanitize={SANITIZER}"] if SANITIZER else []
    (tmp_path / "main.c").write_text("#include <muster/muster.h>\n#include <stdio.h>\nint main(void) { return puts(muster_version()) < 0; }\n")
    subprocess.run(["gcc", *sanitize, "-I", tmp_path / "include", "-o", tmp_path / "main", tmp_path / "main.c", "-L", tmp_path / "lib",
                    flag, "-lmuster"], check=True)
    version = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    assert version == (ROOT / "VERSION").read_text()


def test_clean_removes_the_directory_it_is_given_and_no_other(tmp_path):
    (tmp_path / "x" / "obj").mkdir(parents=True)
    subprocess.run(["make", "-s", "clean", f"BUILD={tmp_path}/x"], cwd=ROOT, check=True, timeout=DEADLINE)
    assert not (tmp_path / "x").exists() and (BUILD / "muster").exists()


def linked(tmp_path, *words):
    """The libraries that the linker gets for the program; what the make around this test was given does not count."""
    return subprocess.run(["make", "-s", "--no-print-directory", "SAN=", "SHARED=", f"BUILD={tmp_path}/build", *words,
                           "--eval=libraries: ; @echo $(PROGRAM_LIBS)", "libraries"], cwd=ROOT, check=True, capture_output=True, text=True,
                          timeout=DEADLINE).stdout.split()


def test_shared_libraries_are_taken_on_request_and_where_an_archive_is_missing(tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ncase $1 in -print-file-name=*sodium*) echo "${1#*=}" ;; *) exec gcc "$@" ;; esac\n')
    compiler.chmod(0o755)
    for words in ["SHARED=1"], [f"CC={compiler}"], ["SAN=address"]:
        assert {"-levent_core", "-lsodium"} <= set(linked(tmp_path, *words)), words
    found = subprocess.run(["gcc", "-print-file-name=libsodium.a"], check=True, capture_output=True, text=True).stdout
    if "/" in found:
        assert {"-l:libevent_core.a", "-l:libsodium.a"} <= set(linked(tmp_path)) and "-lsodium" not in linked(tmp_path)


@pytest.fixture
def bare(tmp_path):
    """An environment in which no package is installed, and installing one leaves a mark."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name, text in {"dpkg-query": "exit 1", "apt-get": f"touch {tmp_path}/installed", "pkg-config": "exit 1"}.items():
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)
    return dict(os.environ, PATH=f"{directory}:{os.environ['PATH']}")


@pytest.mark.parametrize("words", [("--print", "build"), ("build", "--print")])
def test_deps_prints_in_either_order_and_installs_nothing(bare, tmp_path, words):
    done = subprocess.run([ROOT / "scripts/deps", *words], env=bare, capture_output=True, text=True, check=True)
    assert "apt-get install" in done.stderr and "libevent-dev" in done.stderr
    assert not (tmp_path / "installed").exists()


@pytest.mark.parametrize("release, wanted", [
    ('ID=ubuntu\nID_LIKE=debian\n', ("apt-get install", "libevent-dev", "libhwloc-dev")),
    ('ID=fedora\n', ("dnf install", "libevent-devel", "hwloc-devel")),
    ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', ("dnf install", "libsodium-devel", "libcurl-devel")),
])
def test_deps_knows_the_names_of_each_family(bare, tmp_path, release, wanted):
    (tmp_path / "os-release").write_text(release)
    (tmp_path / "bin/rpm").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/rpm").chmod(0o755)
    done = subprocess.run([ROOT / "scripts/deps", "--print", "build"], env=dict(bare, OS_RELEASE=str(tmp_path / "os-release")),
                          capture_output=True, text=True, check=True)
    assert all(word in done.stderr for word in wanted)


def test_the_packages_have_the_version_of_the_program():
    version = (ROOT / "VERSION").read_text().strip()
    assert (ROOT / "debian/changelog").read_text().startswith(f"muster ({version})")
    assert f"\n## {version} " in (ROOT / "CHANGELOG.md").read_text()


def test_check_without_its_packages_names_them(bare, tmp_path):
    """What building needs is there."""
    (tmp_path / "bin/pkg-config").write_text(f'#!/bin/sh\n[ "$*" != "--exists check" ] && exec {shutil.which("pkg-config")} "$@"\n')
    done = make("unit", check=False, env=bare)
    assert done.returncode != 0 and re.search(r"apt-get install.* check ", done.stderr)


def test_without_a_compiler_nothing_is_said_before_its_package_is_named():
    assert make("help", "CC=no-such-compiler").stderr == ""


def test_what_make_test_will_take_is_said_where_nothing_is_installed(bare, tmp_path):
    done = subprocess.run([ROOT / "tests/run", "plan"], env=dict(bare, BUILD=str(tmp_path / "build"), VENV=str(tmp_path / "venv")),
                          capture_output=True, text=True, check=True, timeout=5 * DEADLINE)
    assert done.stderr == ""
    sources = len([path for path in (ROOT / "src").rglob("*.c")])
    assert re.match(r"make test: about \d+ minutes", done.stdout)
    assert "libevent-dev" in done.stdout and "clang-format" in done.stdout and " clang " not in done.stdout
    assert f"{tmp_path}/venv: 2 GB" in done.stdout
    assert int(re.search(r"(\d+) files to compile", done.stdout)[1]) > sources
    assert int(re.search(r"tests +(\d+)", done.stdout)[1]) > 1000


def test_building_a_wheel_without_make_says_what_is_missing(tmp_path):
    done = subprocess.run([sys.executable, "setup.py", "-q", "bdist_wheel", "-d", tmp_path], cwd=ROOT, capture_output=True, text=True,
                          env=dict(os.environ, PATH="/nowhere"))
    assert done.returncode != 0 and "make and gcc and pkg-config is missing; scripts/deps --print build" in done.stderr
