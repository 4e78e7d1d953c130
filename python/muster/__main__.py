"""`python -m muster ...` is `muster ...`: the program takes over this process."""

import os
import sys

from muster._program import find_program


def main() -> None:
    # Python scripts run under the interpreter that was asked, wherever the program is installed.
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
    program = find_program()
    os.execv(program, ["muster", *sys.argv[1:]])


if __name__ == "__main__":
    main()
