"""Instruction counts and wall times of PyTorch statements, in Python and in C++.

    counts.py run base.jsonl                            # this environment
    counts.py ab ab.jsonl --A 'source old/bin/activate' --B 'source new/bin/activate'
    muster compare base.jsonl next.jsonl                # or: muster compare ab.jsonl

A result is in the format of muster-batch(5), so that muster compare reads it. What is in FILE.work is used again by the next
call with --resume.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from build_cpp import build
from definitions import Case, md5, plant, read_definitions
from muster.batch import Runner, WorkOrder

HERE = Path(__file__).resolve().parent
TIMEOUT, RETRIES = 600, 2  # of an order


def python_of(source: str | None) -> str:
    """The interpreter of an environment."""
    return "python" if source else sys.executable


def build_folder(folder: Path, cases: list[Case], source: str | None, shared: Path) -> None:
    """What the orders of one environment need: cases, the C++ program and the library for counting."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "cases.pickle", "wb") as file:
        pickle.dump({case.name: case for case in cases}, file)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", folder / "region.so", HERE / "region.c"], check=True)
    if source:  # with the torch of that environment
        subprocess.run(["bash", "-c", f'{source} && python "$0" "$1" "$2"', HERE / "build_cpp.py", folder, shared],
                       check=True)
    else:
        build(cases, folder, shared)


def order_of(case: Case, folder: Path, source: str | None, side: str, args: argparse.Namespace) -> WorkOrder:
    result = folder / "results" / f"{case.name}.json"
    return WorkOrder([python_of(source), str(HERE / "measure.py"), str(folder), case.name, str(result),
                      f"--seconds={args.seconds}", f"--repeats={args.repeats}"],
                     label=case.label, autolabels={**case.autolabels, "threads": str(case.threads)}, source_cmd=source,
                     num_threads=case.threads, timeout=TIMEOUT, retries=RETRIES, id=f"{case.name}{side}")


def lines_of(case: Case, side: str, measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Result lines: the first have the counts, all have a time."""
    name = ", ".join((*case.label, *case.autolabels.values(), f"{case.threads} thread{'s' if case.threads > 1 else ''}"))
    labels = {**{str(i): text for i, text in enumerate(case.label, 1)}, **case.autolabels, "threads": str(case.threads)}
    times, counts = measured["times"], measured["counts"]
    lines = []
    for run in range(max(len(times), len(counts))):
        line: dict[str, Any] = {"id": name, "hash": case.name.removeprefix("case_"), "cmd": case.code["statement"].strip(),
                                "labels": labels, "attempt": 1, "run": run, "reason": "ok", "exit": 0}
        if side:
            line["variant"] = side
        if run < len(times):
            line["wall_ns"] = round(times[run] * 1e9 * case.loops)
        if run < len(counts):
            line["counts"] = {"instructions": counts[run], "source": "callgrind"}
        lines.append(line)
    return lines


def measure(cases: list[Case], sides: dict[str, str | None], args: argparse.Namespace) -> dict[str, Any]:
    """Runs everything in one batch, both environments in turn; the CI summary."""
    work = args.result.with_suffix(".work")
    if work.exists() and not args.resume:
        shutil.rmtree(work)
    for side, source in sides.items():
        build_folder(work / side, cases, source, work)
        (work / side / "results").mkdir(exist_ok=True)
    start = time.time()
    orders = [order_of(case, work / side, source, side, args) for case in cases for side, source in sides.items()]
    Runner(orders, canary=f"{python_of(next(iter(sides.values())))} -c 'import torch'", output=work / "orders.jsonl",
           resume=(work / "orders.jsonl").exists(), progress=True).run()
    header = {"muster": "batch", "v": 1, "host": {"name": os.uname().nodename},
              "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(start))}
    lines, values = [header], {}
    for case in cases:
        for side in sides:
            measured = json.loads((work / side / "results" / f"{case.name}.json").read_text())
            lines += lines_of(case, side, measured)
            values[case.key if not side else f"{side} {case.key}"] = {key: measured[key] for key in ("times", "counts")}
    args.result.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {"version": 0, "md5": md5(cases), "start_time": int(start), "end_time": int(time.time()), "values": values}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("run", "ab"))
    parser.add_argument("result", type=Path, help="the file to write")
    parser.add_argument("--A", default=None, help="source command of the first environment")
    parser.add_argument("--B", default=None, help="of the second")
    parser.add_argument("--definitions", type=Path, default=HERE / "definitions.txt")
    parser.add_argument("--only", default="", help="only cases that have this word in a label")
    parser.add_argument("--ci", type=Path, help="also write a summary for CI, with a hash of the definitions")
    parser.add_argument("--expect-md5", help="warn, and write version -1, if the hash is another one")
    parser.add_argument("--resume", action="store_true", help="use what an earlier call has finished")
    parser.add_argument("--plant", default="", help="WORD=SHARE: make cases with this word slower, to see that it is found")
    parser.add_argument("--seconds", default="1", help="of wall time for each case")
    parser.add_argument("--repeats", default="5", help="counts of each case")
    args = parser.parse_args()
    args.result = args.result.resolve()
    cases = [case for case in read_definitions(args.definitions) if any(args.only in word for word in case.label)]
    if args.plant:
        word, share = args.plant.split("=")
        cases = plant(cases, word, float(share))
    sides = {"A": args.A, "B": args.B} if args.mode == "ab" else {"": None}
    summary = measure(cases, sides, args)
    if args.only or (args.expect_md5 and args.expect_md5 != summary["md5"]):
        print("counts.py: not the whole list, or another one: version -1", file=sys.stderr)
        summary["version"] = -1
    if args.ci:
        args.ci.write_text(json.dumps(summary, indent=1) + "\n")


main()
