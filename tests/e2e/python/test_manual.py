"""The option tables, the manual pages, the help and the completion say the same."""

import re
import subprocess

import pytest

from tree import BUILD, MUSTER, ROOT

pytestmark = pytest.mark.xdist_group("manual")  # they share what a fixture starts or builds


def lines(*args):
    return subprocess.run([MUSTER, "help", *args], capture_output=True, text=True, check=True).stdout.splitlines()


COMMANDS = lines("--commands")
WITH_PAGE = [c for c in COMMANDS if c != "help"]


def option_names(command):
    return [line.split()[0] for line in lines("--options", command)]


def page_text(command):
    """The page as a reader sees it, without overstrikes."""
    path = ROOT / "man" / f"muster-{command}.1"
    text = subprocess.run(["man", "-l", str(path)], capture_output=True, text=True, check=True,
                          env={"MANWIDTH": "200", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}).stdout
    return re.sub(".\b", "", text)


@pytest.mark.parametrize("command", WITH_PAGE)
def test_every_option_stands_in_the_manual(command):
    text = page_text(command)
    missing = [name for name in option_names(command) if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
    assert not missing


@pytest.mark.parametrize("command", WITH_PAGE)
def test_the_manual_has_no_option_of_its_own(command):
    known = set(option_names(command)) | {"--help", "--version"}
    named = set(re.findall(r"(?m)^ {2,7}(?:-\w, )?(--[a-z][a-z0-9-]+)", page_text(command)))
    assert named <= known


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_every_option(command):
    text = "\n".join(lines(command))
    assert text.startswith(f"usage: muster {command} ")
    for name in option_names(command):
        assert re.search(rf"(?<![\w-]){name}(?![\w-])", text), name


def test_every_command_is_in_the_overview():
    text = "\n".join(lines())
    manual = (ROOT / "man" / "muster.1").read_text()
    assert not [c for c in WITH_PAGE if f".Xr muster-{c} 1" not in manual]
    for command in COMMANDS:
        assert re.search(rf"(?m)^  {command} ", text)


def complete(words):
    """What a real bash offers for the last of the words."""
    script = f"""
        source {BUILD}/completion/muster
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _muster
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True,
                          check=True).stdout.split()


@pytest.fixture(scope="module", autouse=True)
def completion():
    if not (BUILD / "completion" / "muster").exists():
        pytest.skip("make builds the completion for the tests")


def test_completion_offers_commands():
    assert set(complete(["muster", ""])) == {*COMMANDS, "--version", "--help"}
    assert complete(["muster", "ru"]) == ["run"]


def test_completion_offers_the_words_that_the_first_argument_may_be():
    assert set(complete(["muster", "help", ""])) == set(COMMANDS)
    assert complete(["muster", "help", "ba"]) == ["batch"]
    assert complete(["muster", "kv", "q"]) == ["qlen"]
    assert complete(["muster", "kv", "--store", "host:1", "ge"]) == ["get"]
    assert complete(["muster", "kv", "get", "q"]) == complete(["muster", "kv", "--store", ""]) == []
    assert complete(["muster", "run", "q"]) == []


def test_completion_offers_options_and_choices():
    assert complete(["muster", "run", "--max-r"]) == ["--max-restarts"]
    assert complete(["torchrun", "--max-r"]) == ["--max-restarts"]
    assert complete(["muster", "run", "--report", ""]) == ["muster", "torchrun", "none"]
    assert complete(["muster", "run", "--report", "=", "t"]) == ["torchrun"]
    assert complete(["muster", "run", "--report", "="]) == ["muster", "torchrun", "none"]
