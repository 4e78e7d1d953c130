"""One order: measure.py FOLDER NAME RESULT.json. Measures the wall time of a case, then counts its instructions several
times, without the functions that are known to vary from process to process. FOLDER has what counts.py made."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NOISE = re.compile(r"lookdict|dict_lookup|lookup_unicode|lookup_generic")  # depend on addresses and hashes
VALGRIND = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--fair-sched=yes", "--quiet"]


def self_costs(dump: str) -> dict[str, int]:
    """Instructions by function, without those of the functions it calls."""
    names: dict[str, str] = {}
    costs: dict[str, int] = {}
    function, called = "", False
    for line in dump.splitlines():
        if match := re.match(r"fn=\((\d+)\)(?: (.*))?$", line):
            names.setdefault(match[1], match[2] or "")
            function = names[match[1]]
        elif match := re.match(r"cfn=\((\d+)\)(?: (.*))?$", line):
            names.setdefault(match[1], match[2] or "")
        elif line.startswith("calls="):
            called = True  # the next line is about the function that was called
        elif match := re.match(r"[-+*\d]\S* (\d+)$", line):
            if not called:
                costs[function] = costs.get(function, 0) + int(match[1])
            called = False
    return costs


def count(command: list[str], repeats: int) -> tuple[list[int], list[int]]:
    """With and without denoising. The first repeat warms up and is left out."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        subprocess.run([*VALGRIND, f"--callgrind-out-file={out}", *command, "count", str(repeats + 1)], check=True)
        dumps = [self_costs(Path(f"{out}.{i}").read_text()) for i in range(2, repeats + 2)]
    quiet = [sum(cost for name, cost in costs.items() if not NOISE.search(name)) for costs in dumps]
    return [sum(costs.values()) for costs in dumps], quiet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name")
    parser.add_argument("result", type=Path)
    parser.add_argument("--seconds", default="1", help="how long to measure the wall time")
    parser.add_argument("--repeats", type=int, default=5, help="how often to count")
    args = parser.parse_args()
    with open(args.folder / "cases.pickle", "rb") as file:
        case = pickle.load(file)[args.name]
    # Idle threads must not spin: valgrind would count that.
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", OMP_NUM_THREADS=str(case.threads), PYTHONHASHSEED="0")
    command = ([str(args.folder / "cases"), args.name] if case.language == "C++" else
               [sys.executable, str(Path(__file__).with_name("run_python.py")), str(args.folder / "cases.pickle"), args.name,
                str(args.folder / "region.so")])
    times = json.loads(subprocess.run([*command, "time", args.seconds], check=True, stdout=subprocess.PIPE).stdout)
    raw, counts = count(command, args.repeats)
    partial = args.result.with_suffix(".partial")
    partial.write_text(json.dumps({"times": times, "counts": counts, "raw_counts": raw, "loops": case.loops}))
    partial.rename(args.result)


main()
