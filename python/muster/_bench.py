"""Reads the result file of another benchmark tool: hyperfine, Google Benchmark, pytest-benchmark, asv, or
github-action-benchmark (with or without its "window.BENCHMARK_DATA ="). Its keys tell which of them it is.

`muster trend --import=FILE` runs this as a script. It prints lines of a result file (muster-batch(5)), those
of each version after one with what the file says of it, in the form of a history; or why there are none."""

import calendar
import itertools
import json
import math
import re
import statistics
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional

Json = Dict[str, Any]
RUNS_MAX = 1000  # a benchmark with more values than this gives their median
SECONDS = {"ns": 1e-9, "nanoseconds": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1, "sec": 1,
           "secs": 1, "seconds": 1, "min": 60}
GROWS = {"customBiggerIsBetter", "benchmarkjs", "pytest"}  # tools whose numbers are better when larger


class Unknown(Exception):
    """No file of these tools."""


def text(of: Json, key: str) -> str:
    return of[key] if isinstance(of.get(key), str) else ""


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number(of: Json, key: str, scale: float = 1) -> Optional[float]:
    return of[key] * scale if is_number(of.get(key)) and scale else None


def epoch(stamp: str) -> int:
    """Of "2026-11-16T12:53:43+00:00" or "...Z", with fractions or without; 0: it is something else."""
    found = re.match(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:([+-]\d\d):?(\d\d))?", stamp)
    if not found:
        return 0
    *date, hours, minutes = found.groups()
    east = int(hours or 0) * 3600 + int((hours or "+")[0] + (minutes or "0")) * 60
    return calendar.timegm(tuple(map(int, date))) - east


def version(commit: str = "", time_s: float = 0, host: str = "", suite: str = "") -> Json:
    """Values follow of which the file says this."""
    return {"muster": "history", "version": commit, "time": int(time_s) if abs(time_s) < 9e18 else 0,
            "class": host, "configuration": suite, "summary_bytes": 0}


def result(name: str, **values: Any) -> Json:
    """A run. Integers that do not fit one are left out, as what is not known."""
    line = {"id": name, "attempt": 1, "reason": "ok"}
    for key, value in values.items():
        whole = key.endswith(("_ns", "_kb"))
        if value is not None and (not whole or 0 <= value < 9e18):
            line[key] = math.floor(value + 0.5) if whole else value
    return line


def seconds_in(unit: str) -> float:
    """0: it is no unit of time."""
    return SECONDS.get(re.sub("/(iter|op).*", "", unit), 0)


def measures(name: str, value: Optional[float], unit: str, grows: bool = False) -> Iterator[Json]:
    """One value with the unit that the tool gave it: a time, or whatever it is."""
    if value is None:
        return
    if seconds_in(unit):
        yield result(name, wall_ns=value * seconds_in(unit) * 1e9)
    elif unit == "bytes":
        yield result(name, maxrss_kb=value / 1024)
    else:
        yield result(name, value=value, unit=unit, more_is_better=grows)


def runs(name: str, seconds: Iterable[Any], sizes: Iterable[Any] = (), **more: str) -> Iterator[Json]:
    """Times in seconds, as runs."""
    seconds = [value for value in seconds if is_number(value)]
    if len(seconds) > RUNS_MAX:
        seconds = [statistics.median(seconds)]
    sizes = [size / 1024 for size in sizes if is_number(size)]
    for run, (value, size) in enumerate(itertools.zip_longest(seconds, sizes[:len(seconds)])):
        yield result(name, run=run, wall_ns=value * 1e9, maxrss_kb=size, **more)


def hyperfine(data: Json) -> Iterator[Json]:
    yield version()
    for each in data["results"]:
        name = text(each, "command")
        if each.get("times"):
            yield from runs(name, each["times"], each.get("memory_usage_byte") or (), cmd=name)
        else:  # exported by a version that keeps no times
            yield from measures(name, number(each, "mean"), "s")


def google(data: Json) -> Iterator[Json]:
    """Where only aggregates were kept, the medians."""
    yield version()
    kept = [each for each in data["benchmarks"] if each.get("run_type") != "aggregate"] or \
        [each for each in data["benchmarks"] if each.get("aggregate_name") == "median"]
    for each in kept:
        scale = seconds_in(each.get("time_unit") or "ns") * 1e9
        unit = "items" if is_number(each.get("items_per_second")) else "bytes"
        rate = number(each, f"{unit}_per_second")
        more = {} if rate is None else {"value": rate, "unit": f"{unit}/s", "more_is_better": True}
        yield result(text(each, "run_name"), wall_ns=number(each, "real_time", scale),
                     user_ns=number(each, "cpu_time", scale), **more)


def pytest(data: Json) -> Iterator[Json]:
    commit = data.get("commit_info") or {}
    yield version(text(commit, "id"), epoch(text(commit, "time")), text(data["machine_info"], "node"))
    for each in data["benchmarks"]:
        stats = each.get("stats") or {}
        if stats.get("data"):
            yield from runs(text(each, "fullname"), stats["data"])
        else:
            yield from measures(text(each, "fullname"), number(stats, "median"), "s")


def asv(data: Json) -> Iterator[Json]:
    """The unit follows from how a function is called; of the parameters, the last one runs fastest."""
    yield version(text(data, "commit_hash"), (number(data, "date") or 0) / 1000)
    for name, row in data["results"].items():
        row = dict(zip(data["result_columns"], row if isinstance(row, list) else ()))
        function = name.rpartition(".")[2]
        unit = "" if function.startswith("track_") else "s"
        if function.startswith(("mem_", "peakmem_")):
            unit = "bytes"
        values, params = row.get("result"), row.get("params") or ()
        if is_number(values):
            yield from measures(name, values, unit)
        for value, names in zip(values if isinstance(values, list) else (), itertools.product(*params)):
            if is_number(value):
                yield from measures(f"{name}({', '.join(names)})" if params else name, value, unit)


def github(data: Json) -> Iterator[Json]:
    for suite, entries in data["entries"].items():
        for entry in entries:
            commit = entry.get("commit") or {}
            time_s = epoch(text(commit, "timestamp")) or (number(entry, "date") or 0) / 1000
            yield version(text(commit, "id"), time_s, suite=suite)
            for each in entry.get("benches") or ():
                yield from measures(text(each, "name"), number(each, "value"), text(each, "unit"),
                                    entry.get("tool") in GROWS)


def read(data: Json) -> List[Json]:
    readers = {github: ("entries",), asv: ("results", "result_columns"), hyperfine: ("results",),
               pytest: ("benchmarks", "machine_info"), google: ("benchmarks", "context")}
    for reader, keys in readers.items():
        if all(key in data for key in keys):
            return list(reader(data))
    raise Unknown


def main(path: str) -> None:
    try:
        with open(path, encoding="utf-8") as file:
            content = re.sub(r"\Awindow\.BENCHMARK_DATA[^{]*", "", file.read())
        lines = read(json.loads(content))
        if any("id" in line for line in lines):
            print("\n".join(map(json.dumps, lines)))
            return
        why = "no benchmark in it"
    except Unknown:
        why = "not a file of hyperfine, Google Benchmark, pytest-benchmark, asv or github-action-benchmark"
    except OSError as error:
        why = str(error.strerror)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        why = "not JSON of a benchmark, or not as its tool writes it"
    print(why, end="")
    sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
