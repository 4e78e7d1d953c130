"""The option tables, the manual pages, the help and the completion say the same."""

import functools
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

import able
from tree import BUILD, MUSTER, ROOT
from waits import DEADLINE

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


def complete_in_fish(home, line):
    done = subprocess.run(["fish", "--no-config", "-c", f"source {BUILD}/completion/muster.fish; complete -C '{line}'"], text=True,
                          capture_output=True, check=True, env={"PATH": os.environ["PATH"], "HOME": str(home)}, timeout=DEADLINE)
    return [candidate.split("\t")[0] for candidate in done.stdout.splitlines()]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed; scripts/deps test installs it")
def test_fish_offers_the_same(tmp_path):
    offers = functools.partial(complete_in_fish, tmp_path)
    assert set(offers("muster ")) == set(COMMANDS)
    assert offers("muster run --max-r") == offers("torchrun --max-r") == ["--max-restarts"]
    assert set(offers("muster run --report ")) == {"muster", "torchrun", "none"}
    assert offers("muster kv ge") == ["get"]
    assert offers("muster help ba") == ["batch"]


class Zsh:
    """A real zsh at a terminal: what follows a tab is its answer."""

    def __init__(self, directory):
        able.need_terminal()
        self.seen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {"PATH": os.environ["PATH"], "HOME": str(directory), "TERM": "dumb", "PS1": "> ",
                                                    "COLUMNS": "200", "LC_ALL": "C.UTF-8"})
        self.type(f"fpath=({BUILD}/completion $fpath); autoload -Uz compinit; compinit -u -D; print re''ady\n")
        self.wait_for(b"ready\r")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, text):
        end = time.monotonic() + DEADLINE
        while text not in self.seen and select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
            self.seen += os.read(self.terminal, 4096)
        assert text in self.seen, self.seen
        self.seen = b""

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed; scripts/deps test installs it")
def test_zsh_completes_commands_options_and_choices(tmp_path):
    zsh = Zsh(tmp_path)
    try:
        for line, wanted in [("muster ba", b"muster batch"), ("muster run --max-res", b"run --max-restarts="), ("muster run --report=to", b"--report=torchrun"),
                             ("muster kv barr", b"kv barrier"), ("torchrun --max-res", b"torchrun --max-restarts=")]:
            zsh.type("\x15" + line + "\t")  # Ctrl-U empties the line
            zsh.wait_for(wanted)
    finally:
        zsh.close()
