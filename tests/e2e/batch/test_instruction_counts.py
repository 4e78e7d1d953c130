"""examples/instruction-counts: its definitions, its denoising, and a planted 1 % that it finds in Python and in C++."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from tree import ROOT, SANITIZER, python_env

EXAMPLE = ROOT / "examples/instruction-counts"
LONG = 1500  # seconds; a bound for two minutes of compiling and two of callgrind on a busy host


@pytest.fixture
def example(python):
    """example(source) runs Python inside the example."""
    return lambda source: python(f"import sys\nsys.path.insert(0, {str(EXAMPLE)!r})\n" + textwrap.dedent(source)).stdout


def test_definitions_expand_over_runtime_autograd_language_and_threads(example):
    out = example(f"""
        from definitions import *
        cases = read_definitions({str(EXAMPLE / 'definitions.txt')!r})
        for case in cases:
            print(json.dumps([*case.label, *case.autolabels.values(), case.threads]))
        model = [case for case in cases if case.runtime == "TorchScript"][0]
        print(model.script_source)
        assert md5(cases) == md5(plant(cases, "matmul", 0.01)) != md5(cases[1:])
        assert sorted(case.loops for case in plant(cases, "matmul", 0.01))[-1] == 202
    """)
    lines = out.splitlines()
    cases = [json.loads(line) for line in lines[:16]]
    assert cases[:4] == [["pointwise", "add", "Eager", "Forward", language, threads]
                         for language in ("Python", "C++") for threads in (1, 2)]
    assert len({tuple(case) for case in cases}) == 16
    assert {tuple(case[2:5]) for case in cases if case[0] == "model"} == {
        (runtime, autograd, language) for runtime in ("Eager", "TorchScript")
        for autograd in ("Forward", "Forward + Backward") for language in ("Python", "C++")}
    assert "\n".join(lines[16:]).strip() == "def f(x, w):\n    y = torch.relu(torch.mm(x, w))\n    return y"


def test_broken_definitions_are_named(example):
    out = example("""
        from definitions import *
        for text in ("[a]\\nspeed: 3\\nPython | C++\\n---\\n", "[b]\\nPython | C++\\n---\\n# setup | // setup\\n"):
            try:
                read_block(text)
            except ValueError as e:
                print(e)
    """)
    assert out.splitlines() == ["[a]: unknown option 'speed'", "[b]: no ' | ' after 40 characters: '# setup | // setup'"]


def test_denoising_leaves_dictionary_lookups_out(example, place):
    """Costs are those of a function itself, without the ones it calls."""
    dump = place("dump", """\
        fl=(1) x.c
        fn=(1) work
        10 100
        +2 5
        cfn=(2) unicodekeys_lookup_unicode
        calls=3 7
        * 900
        fn=(2)
        7 900
        fn=(1)
        12 1
        totals: 1006
        """)
    out = example(f"""
        import re
        source = open({str(EXAMPLE / 'measure.py')!r}).read().removesuffix("main()\\n")
        exec(compile(source, "measure.py", "exec"))
        print(self_costs(open({str(dump)!r}).read()), bool(NOISE.search("unicodekeys_lookup_unicode")))
    """)
    assert out.strip() == "{'work': 106, 'unicodekeys_lookup_unicode': 900} True"


# N products a loop: environment B does 1 % more.
DEFINITIONS = """\
[matmul, 32 x 32]
loops: 1
Python                                   | C++
---------------------------------------- | ----------------------------------------
# setup                                  | // setup
import os                                | const int n = atoi(getenv("N"));
n = int(os.environ["N"])                 |
x = torch.ones(32, 32)                   | auto x = torch::ones({32, 32});
# statement                              | // statement
for _ in range(n): x @ x                 | for (int i = 0; i < n; i++) matmul(x, x);
"""


@pytest.mark.skipif(not shutil.which("valgrind") or not shutil.which("g++"),
                    reason="valgrind or g++ is not installed; scripts/deps test installs them")
@pytest.mark.skipif(bool(SANITIZER), reason="a program with sanitizers does not run under valgrind")
def test_one_percent_more_in_one_of_two_environments_is_found_in_both_languages(muster, place, tmp_path):
    pytest.importorskip("torch")
    definitions = place("definitions.txt", DEFINITIONS)
    folder = os.path.dirname(sys.executable)
    source = f"export N={{}} PATH={folder}:$PATH"
    call = [sys.executable, EXAMPLE / "counts.py", "ab", "ab.jsonl", "--A", source.format(100), "--B", source.format(101),
            "--definitions", definitions, "--seconds=0.1", "--repeats=2", "--ci=ci.json"]
    done = subprocess.run(list(map(str, call)), cwd=tmp_path, env=python_env(), capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(muster("compare", "ab.jsonl", "--json", "--tolerance=0.3%").stdout)["rows"]
    counts = {row["labels"]["language"]: row for row in rows if row["metric"] == "instructions"}
    assert {language: (row["verdict"], round(row["ratio"], 2)) for language, row in counts.items()} == {
        "Python": ("slower", 1.01), "C++": ("slower", 1.01)}
    assert {row["labels"]["language"] for row in rows if row["metric"] == "wall"} == {"Python", "C++"}
    summary = json.loads((tmp_path / "ci.json").read_text())
    assert summary["version"] == 0 and len(summary["md5"]) == 32 and len(summary["values"]) == 4
    assert all(len(value["counts"]) == 2 and value["times"] for value in summary["values"].values())
    again = subprocess.run([*map(str, call), "--resume"], cwd=tmp_path, env=python_env(), capture_output=True, text=True,
                           timeout=LONG)
    assert again.returncode == 0 and "4 were done before" in again.stderr, again.stderr[-3000:]
