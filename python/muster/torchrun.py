"""Puts muster in the place of torchrun, below everything that starts it or calls it.

    MUSTER_TORCHRUN=1 accelerate launch train.py    # for one command, or as long as the variable is set
    python -m muster.torchrun enable                # for this Python environment, until `disable`
    python -m muster.torchrun status                # which of them, and which muster; ends with 1 if it is off

MUSTER_TORCHRUN=0 is stronger than `enable`.
"""

from __future__ import annotations

import os
import pathlib
import site
import sys

from muster._program import find_program

VARIABLE = "MUSTER_TORCHRUN"
ALWAYS = "muster_torchrun.pth"  # Python reads it at its start, as it does muster.pth
ALWAYS_TEXT = f"""import os; (os.environ.get("{VARIABLE}") or "1") != "0" and exec("try: from muster import _switch; _switch.turn_on()\\nexcept ImportError: pass")
"""
NOT_INSTALLED = "muster is not installed in this Python environment: no muster.pth is where Python reads such files. `pip install` puts it there"


def _sites() -> list[pathlib.Path]:
    """Where this Python reads .pth files."""
    places = site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
    return [pathlib.Path(place) for place in places]


def _home() -> pathlib.Path | None:
    """That of them where muster.pth is."""
    return next((place for place in _sites() if (place / "muster.pth").is_file()), None)


def _always() -> list[pathlib.Path]:
    return [path for place in _sites() if (path := place / ALWAYS).is_file()]


def enable() -> int:
    home = _home()
    if not home:
        print(NOT_INSTALLED, file=sys.stderr)
        return 1
    part = home / f"{ALWAYS}.{os.getpid()}"  # does not end in .pth: never half of one
    try:
        part.write_text(ALWAYS_TEXT)
        part.replace(home / ALWAYS)
    except OSError as e:
        print(f"{home / ALWAYS}: {e.strerror}: set {VARIABLE}=1 instead", file=sys.stderr)
        return 1
    print(f"on: {home / ALWAYS}")
    return 0


def disable() -> int:
    for path in _always():
        try:
            path.unlink()
        except OSError as e:
            print(f"{path}: {e.strerror}: set {VARIABLE}=0 instead", file=sys.stderr)
            return 1
    value = os.environ.get(VARIABLE) or "0"
    print("off" if value == "0" else f"still on: {VARIABLE}={value} is set")
    return 0


def status() -> int:
    value = os.environ.get(VARIABLE)
    always = _always()
    why = f"{VARIABLE}={value}" if value else str(always[0]) if always else f"neither {VARIABLE} nor {ALWAYS} is there"
    if value == "0" or not (value or always):
        print(f"off: {why}")
        return 1
    if not _home():
        print(f"off: {why}, but {NOT_INSTALLED}")
        return 1
    try:
        print(f"on: {why}; the program is {find_program()}")
    except FileNotFoundError as e:
        print(f"off: {why}, but {e}")
        return 1
    return 0


COMMANDS = {"enable": enable, "disable": disable, "status": status}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(f"usage: python -m muster.torchrun {'|'.join(COMMANDS)}\n\n{__doc__}", end="",
              file=sys.stdout if arguments in (["-h"], ["--help"]) else sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    return COMMANDS[arguments[0]]()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
