"""The tests themselves: every file of them runs alone, as CONTRIBUTING.md tells."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

from tree import ROOT
from waits import DEADLINE

E2E = ROOT / "tests" / "e2e"
FILES = sorted(E2E.glob("*/*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_imports_neither_another_test_nor_the_fixtures(path):
    assert [name for name in imports(path) if name == "conftest" or name.startswith("test_")] == []


def test_no_file_needs_a_variable_of_make_to_be_collected(tmp_path):
    """Nor a working directory: pytest finds the root by itself."""
    env = {name: value for name, value in os.environ.items()
           if name not in ("MUSTER", "BUILD", "SAN", "VENV", "PYTHONPATH", "PYTEST_ADDOPTS")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", str(E2E)], env=env,
                          cwd=tmp_path, capture_output=True, text=True, timeout=10 * DEADLINE)
    assert done.returncode == 0, done.stdout[-4000:]
    collected = {pathlib.Path(line.partition("::")[0]).name for line in done.stdout.splitlines() if "::" in line}
    assert collected == {path.name for path in FILES if path.name.startswith("test_")}
