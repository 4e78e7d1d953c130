"""In torchrun's place: what happens at the start of an interpreter with the switch on (torchrun.py).

A process that is to run torch's launcher becomes muster, before torch is imported. In any other, the launcher's
functions call muster as soon as their modules are imported. All of this costs time at every start of Python,
so nothing is imported here before it is needed.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in muster/__init__.py
if TYPE_CHECKING:
    from typing import Any

RUN = "torch.distributed.run"
LAUNCH = "torch.distributed.launch"  # its older form
CALLS = {RUN: "run", "torch.distributed.launcher.api": "launch_agent"}  # what muster replaces where
PLACE = "MUSTER_IN_PLACE_OF"  # MODULE:INTERPRETER, for src/cli/stand_in.c
TORCHRUN_SIZE = 4096  # of the script that installers make of torch's entry point; it has some 200 bytes

_on = False


def turn_on() -> None:
    """From muster.pth, or from the file that `python -m muster.torchrun enable` writes."""
    global _on
    if _on:
        return
    _on = True
    module, arguments = _what_is_run(_command_line())
    if module:
        _become_muster(module, arguments)
    else:
        sys.meta_path.insert(0, _Finder())


def say(why: str) -> None:
    """Why torch's own launcher runs though the switch is on."""
    print(f"muster: warning: {why}: torch's own launcher runs this job", file=sys.stderr)


# -- a process that runs the launcher --


def _command_line() -> list[str]:
    if sys.version_info >= (3, 10):
        return sys.orig_argv
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def _what_is_run(words: list[str]) -> tuple[str, list[str]]:
    """The module of torch's launcher that this command line runs, and its arguments; "" for anything else."""
    rest = words[1:]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            return _module_of_script(word), rest
        if word == "--check-hash-based-pycs":
            del rest[:1]
        if word.startswith("--"):
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter == "c":
                return "", []
            if letter == "m":
                name = word[at:] or "".join(rest[:1])
                return (name if name in (RUN, LAUNCH) else "", rest if word[at:] else rest[1:])
            if letter in "WX":
                if not word[at:]:
                    del rest[:1]
                break
    return "", []


def _module_of_script(path: str) -> str:
    """torchrun as pip and others make it, or a file of torch."""
    for module in (RUN, LAUNCH):
        if path.endswith(f"/{module.replace('.', '/')}.py"):
            return module
    if os.path.basename(path) != "torchrun":
        return ""
    try:
        with open(path, "rb") as file:
            return RUN if f"from {RUN} import main".encode() in file.read(TORCHRUN_SIZE) else ""
    except OSError:
        return ""


def _become_muster(module: str, arguments: list[str]) -> None:
    """Returns only if that is not possible."""
    from muster._program import find_program

    env = dict(os.environ)
    env.setdefault("PYTHON_EXEC", sys.executable)
    env[PLACE] = f"{module}:{sys.executable}"
    try:
        os.execve(find_program(), ["torchrun", *arguments], env)
    except OSError as e:
        say(str(e))


# -- a process that calls the launcher --


class _Finder:
    """Finds those modules as Python would, and has muster's functions put in when they have been executed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in CALLS:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec and spec.loader:
                _patch_after(spec.loader, CALLS[name])
                return spec
        return None


def _patch_after(loader: Any, function: str) -> None:
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        execute(module)
        _replace(module, function)

    loader.exec_module = exec_module


def _replace(module: Any, function: str) -> None:
    import functools

    original = getattr(module, function)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        from muster import _in_process

        return getattr(_in_process, function)(original, *args, **kwargs)

    setattr(module, function, call)
