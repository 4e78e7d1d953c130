"""Command lines from the manuals of GNU parallel and hyperfine, run by the original and by muster batch."""

import json
import re
import shutil
import subprocess

import pytest
from tree import MUSTER_SH, clean_env

pytestmark = pytest.mark.skipif(not (shutil.which("parallel") and shutil.which("hyperfine")),
                                reason="parallel or hyperfine is not installed; scripts/deps test installs them")


@pytest.fixture
def run(tmp_path):
    """A shell line in which TOOL is one of the two programs, in a folder of its own with the files of the manual."""
    def files(place):
        place.mkdir()
        (place / "abc-file").write_text("A\nB\nC\n")
        (place / "def-file").write_text("D\nE\nF\n")
        (place / "abc_-file").write_text("A_B_C_")
        (place / "abc0-file").write_bytes(b"A\0B\0C\0")
        (place / "tsv-file.tsv").write_text("f1\tf2\nA\tB\nC\tD\n")
        (place / "num8").write_text("".join(f"{n}\n" for n in range(1, 9)))
        for name in ("one.log", "two words.log"):
            (place / name).write_text(f"{name}\n")
        return place

    def go(line, tool, name):
        home = tmp_path / "home"
        (home / ".parallel").mkdir(parents=True, exist_ok=True)
        (home / ".parallel" / "will-cite").touch()
        env = clean_env() | {"HOME": str(home), "TOOL": tool, "LC_ALL": "C.UTF-8"}
        place = files(tmp_path / name)
        done = subprocess.run(["bash", "-c", line.replace("TOOL", tool)], cwd=place, env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        return done, place
    return go


PARALLEL = [
    # parallel_tutorial(7): input sources
    "TOOL echo ::: A B C",
    "TOOL -a abc-file echo",
    "cat abc-file | TOOL echo",
    "TOOL echo :::: abc-file",
    "TOOL echo ::: A B C ::: D E F",
    "TOOL -a abc-file -a def-file echo",
    "cat abc-file | TOOL -a - -a def-file echo",
    "cat abc-file | TOOL echo :::: - def-file",
    "TOOL echo ::: A B C :::: def-file",
    "TOOL --link echo ::: A B C ::: D E F",
    "TOOL --link echo ::: A B C D E ::: F G",
    "TOOL echo :::: abc-file :::+ a b c",
    "TOOL echo ::: a b c :::+ 1 2 3 ::: X Y :::+ 11 22",
    "TOOL -d _ echo :::: abc_-file",
    "TOOL -d '\\0' echo :::: abc0-file",
    "TOOL -0 echo :::: abc0-file",
    "cat abc-file | TOOL -E B echo",
    "(echo 1; echo; echo 2) | TOOL --no-run-if-empty echo",
    # building the command line
    "cat abc-file | TOOL",
    "TOOL ::: 'echo hello' 'echo world'",
    "TOOL echo ::: A/B.C",
    "TOOL echo {.} ::: A/B.C",
    "TOOL echo {/} {//} {/.} ::: A/B.C",
    "TOOL echo {#} ::: A B C",
    "TOOL -I ,, echo ,, ::: A/B.C",
    "TOOL echo {1} and {2} ::: A B ::: C D",
    "TOOL echo /={1/} //={1//} /.={1/.} .={1.} ::: A/B.C D/E.F",
    "TOOL echo 1={1} 2={2} 3={3} -1={-1} -2={-2} -3={-3} ::: A B ::: C D ::: E F",
    "TOOL --colsep '\\t' echo 1={1} 2={2} :::: tsv-file.tsv",
    "TOOL --header : --colsep '\\t' echo f1={f1} f2={f2} :::: tsv-file.tsv",
    "TOOL --header : echo f1={f1} f2={f2} ::: f1 A B ::: f2 C D",
    "cat num8 | TOOL -n3 echo",
    "cat num8 | TOOL -N3 echo 1={1} 2={2} 3={3}",
    "cat num8 | TOOL -N0 echo TIMES",
    "TOOL --xargs -s 20 echo pre-{}-post ::: 1 2 3 4 5 6 7 8",
    "TOOL -j4 -m echo pre-{}-post ::: A B C D E F G",
    "TOOL -j4 -X echo pre-{}-post ::: A B C D E F G",
    "TOOL --quote echo '$(hostname)' {} ::: a",
    "TOOL echo 'two  spaces' '{}' ::: \"it's\" '$HOME' '*' 'a;b' ''",
    "TOOL echo ::: a a b",
    # parallel(1)
    "find . -name '*.log' -print0 | TOOL -0 cat",
    "ls *.log | TOOL 'cat {} > {.}.txt && cat {.}.txt'",
    "TOOL 'echo {1}; echo {2} | tr a-z A-Z' ::: a b ::: c",
    "seq 3 | TOOL -j0 echo job {}",
    # --pipe
    "seq 1000000 | TOOL --pipe wc",
    "seq 1000000 | TOOL --pipe --block 2M wc",
    "seq 1000000 | TOOL --pipe --block 3m wc",
    "seq 1000000 | TOOL --pipe -N140000 wc",
    "seq 1000000 | TOOL --pipe -L75 wc",
    "printf HHHHAAABBBCCC | TOOL --pipe --header .{4} --block 3 --recend '' 'echo start; cat; echo'",
    "echo /foo, bar/, /baz, qux/, | TOOL -kN1 --recend ', ' --pipe echo JOB{#}\\;cat\\;echo END",
    "echo /foo, bar/, /baz, qux/, | TOOL -kN1 --recstart / --pipe echo JOB{#}\\;cat\\;echo END",
    "echo /foo, bar/, /baz, qux/, | TOOL -kN1 --recend ', ' --recstart / --pipe echo JOB{#}\\;cat\\;echo END",
    "echo foo,bar,_baz,__qux, | TOOL -kN1 --regexp --recend ,_+ --pipe echo JOB{#}\\;cat\\;echo END",
    "echo foo,bar,_baz,__qux, | TOOL -kN1 --rrs --regexp --recend ,_+ --pipe echo JOB{#}\\;cat\\;echo END",
    "(printf '%%head1\n%%head2\n'; seq 10) | TOOL -k --header '(%.*\\n)*' --pipe -N3 echo JOB{#}\\;cat",
    "(printf '%%head1\n%%head2\n'; seq 10) | TOOL -k --header 2 --pipe -N3 echo JOB{#}\\;cat",
    "(echo head; seq 100) | TOOL -k --header : --pipe --block 50 'cat; echo'",
    "seq 100000 | TOOL --pipe --block 100k -k gzip -c | zcat | cksum",
    "seq 4 | TOOL -k --pipe -N2 --tag 'echo {} {#}; cat'",
    "TOOL --pipe wc < /dev/null",
    "seq 3 | TOOL --pipe --dry-run -N1 'cat {#}'",
]


@pytest.mark.parametrize("line", PARALLEL)
def test_a_line_of_parallels_manual_prints_the_same(run, line):
    theirs, _ = run(line, "parallel", "theirs")
    ours, _ = run(line, f"{MUSTER_SH} batch --quiet", "ours")
    assert sorted(ours.stdout.splitlines()) == sorted(theirs.stdout.splitlines()), ours.stderr
    assert (ours.returncode == 0) == (theirs.returncode == 0)


# --- hyperfine(1) and its README ---

HYPERFINE = [
    "TOOL --runs 3 --export-json x.json 'sleep 0.01'",
    "TOOL --runs 2 --export-json x.json 'head num8' 'cat num8'",
    "TOOL --warmup 1 --runs 2 --export-json x.json 'grep -R A .'",
    "TOOL -w 1 -r 2 --export-json x.json --prepare 'echo prepared >>log' 'cat abc-file'",
    "TOOL -r 2 --export-json x.json --prepare 'echo clean >>log' --parameter-scan num_threads 1 3 'true -j {num_threads}'",
    "TOOL -r 2 --export-json x.json -P delay 0.01 0.03 -D 0.01 'sleep {delay}'",
    "TOOL -r 2 --export-json x.json --parameter-scan size 1 9 --parameter-step-size 4 'head -{size} num8'",
    "TOOL -r 2 --export-json x.json -L compiler gcc,clang 'echo {compiler} -O2 main.cpp'",
    "TOOL -r 2 --export-json x.json --parameter-list a 1,2 --parameter-list b x,y 'echo {a}{b}'",
    "TOOL -r 2 --export-json x.json --setup 'echo setup >>log' --cleanup 'echo cleanup >>log' 'true' 'cat num8'",
    "TOOL -r 2 --export-json x.json -s 'echo setup {n} >>log' -L n 1,2 'echo {n}'",
    "TOOL -r 2 --export-json x.json -n first -n second 'true a' 'true b'",
    "TOOL -r 2 --export-json x.json --command-name only 'true'",
    "TOOL -i -r 2 --export-json x.json 'exit 3'",
    "TOOL --ignore-failure -r 2 --export-json x.json 'exit 0' 'exit 2'",
    "TOOL --min-runs 2 --max-runs 3 --export-json x.json 'sleep 0.01'",
    "TOOL -r 2 --export-json x.json --shell=none 'sleep 0.01'",
    "TOOL -r 2 --export-json x.json -S /bin/bash '[[ a < b ]]'",
    "TOOL -r 2 --export-json x.json --shell default 'echo $HOME | cat'",
    "TOOL -r 2 --export-json x.json --output null 'cat num8'",
    "TOOL -r 2 --export-csv x.csv 'true a' 'true b'",
    "TOOL -r 2 --export-markdown x.md 'sleep 0.02' 'sleep 0.03'",
    "TOOL -r 2 --show-output 'cat num8'",
]


def shape(place):
    """What the two must have in common: everything but the times."""
    found = {}
    if (place / "x.json").exists():
        entries = json.loads((place / "x.json").read_text())["results"]
        found["json"] = sorted((entry["command"], len(entry["times"]), entry["exit_codes"]) for entry in entries)
        found["parameters"] = sorted(sorted(item for item in entry.get("parameters", {}).items() if item[0] != "id")
                                     for entry in entries)
    if (place / "x.csv").exists():
        rows = (place / "x.csv").read_text().splitlines()
        found["csv"] = [rows[0], sorted(row.split(",")[0] for row in rows[1:])]
    if (place / "x.md").exists():
        rows = (place / "x.md").read_text().splitlines()
        found["markdown"] = [rows[0].replace("[µs]", "[ms]"), sorted(row.split("|")[1] for row in rows[2:])]
    if (place / "log").exists():
        found["log"] = sorted((place / "log").read_text().splitlines())
    return found


@pytest.mark.parametrize("line", HYPERFINE)
def test_a_line_of_hyperfines_manual_measures_the_same(run, line):
    theirs, their_place = run(line, "hyperfine", "theirs")
    ours, our_place = run(line, f"{MUSTER_SH} batch -j1 --quiet-check=off --progress=none", "ours")
    assert (theirs.returncode, ours.returncode) == (0, 0), theirs.stderr + ours.stderr
    assert shape(our_place) == shape(their_place)
    said = [re.findall(pattern, ours.stdout, re.M) for pattern in (r"^Benchmark \d+: ", r"^  Time \(mean ± σ\):", r"^  Range \(min … max\):")]
    expected = [re.findall(pattern, theirs.stdout, re.M) for pattern in (r"^Benchmark \d+: ", r"^  Time \(mean ± σ\):", r"^  Range \(min … max\):")]
    assert list(map(len, said)) == list(map(len, expected))
    # hyperfine leaves the ranking out when it cannot tell a time from that of its shell
    assert ours.stdout.count(" times faster than ") == max(len(said[0]) - 1, 0) >= theirs.stdout.count(" times faster than ")
    if "--show-output" in line:
        assert ours.stdout.count("8\n") >= 2
