"""`make mutants`: what is changed, and that each change can be switched on by itself."""

import subprocess
import sys

import pytest

from tree import ROOT

TOOL = ROOT / "tests/mutants"

PROGRAM = """\
#include <stdlib.h>
static int limit(int a, int b)
{
	if (a < b && b > 1)
		a += 10;
	return a;
}
int mutant_on;
void mutant_reach(int number) { (void)number; }
int main(int argc, char **argv)
{
	mutant_on = atoi(argv[1]);
	return limit(2, argc);
}
"""


def test_the_sources_have_what_is_known_of_mutants():
    result = subprocess.run([sys.executable, TOOL / "run", "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout


@pytest.fixture
def drawing(monkeypatch):
    pytest.importorskip("tree_sitter_c", reason="tree-sitter-c is not installed")
    monkeypatch.syspath_prepend(str(TOOL))
    import drawing

    return drawing


def test_operators_constants_conditions_returns_and_statements_are_changed(drawing):
    source = drawing.Source("limit.c", PROGRAM)
    of_limit = {source.changed(mutant) for mutant in source.mutants if mutant.function == "limit"}
    condition, statement, value = "if (a < b && b > 1)", "a += 10;", "return a;"
    assert {changed for original, changed in of_limit if original == condition} == {
        "if (a < b || b > 1)", "if (a < b)", "if (b > 1)", "if (false)", "if (true)",
        "if (a <= b && b > 1)", "if (a < b && b >= 1)", "if (a < b && b > (1 + 1))",
    }  # fmt: skip
    assert {changed for original, changed in of_limit if original == statement} == {"a -= 10;", "a += (10 + 1);", ""}
    assert {changed for original, changed in of_limit if original == value} == {"return 0;"}


def test_each_is_switched_on_by_its_number(drawing, tmp_path):
    source = drawing.Source("limit.c", PROGRAM)
    mutants = [mutant for mutant in source.mutants if mutant.function == "limit"]
    numbers = {mutant: number + 1 for number, mutant in enumerate(mutants)}
    probes = {name: 1000 for name, _, _ in source.functions}
    text, _ = drawing.switched(source, numbers, probes)
    (tmp_path / "limit.c").write_text(text)
    program = tmp_path / "limit"
    subprocess.run(["gcc", "-w", "-include", TOOL / "mutant.h", "-o", program, tmp_path / "limit.c"], check=True)

    def run(number):
        return subprocess.run([program, str(number), "3"]).returncode

    assert run(0) == 12
    expected = {"if (false)": 2, "if (b > 1)": 12, "a -= 10;": 248, "a += (10 + 1);": 13, "": 2, "return 0;": 0}
    for mutant, number in numbers.items():
        _, changed = source.changed(mutant)
        if changed in expected:
            assert run(number) == expected[changed], changed
