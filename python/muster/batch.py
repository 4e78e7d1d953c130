"""Batches of commands from Python: many orders side by side, each on cores of its own.

    from muster.batch import Runner, WorkOrder

    orders = [WorkOrder(["./bench", name], label=(name,), num_threads=2, timeout=600, retries=2) for name in names]
    results = Runner(orders).run()
    for order, output in results.items():
        print(order.label, min(output.wall_times))

The names are those of the runner of PyTorch's instruction counts. `muster batch` does the work, in a process
of its own without Python; see muster-batch(1). docs/python.md lists where it differs from that runner.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from muster._batch import Batch, Order, read_output

__all__ = ["BatchError", "CanaryFailed", "CorePool", "Results", "Runner", "WorkOrder", "WorkerFailed", "WorkerOutput",
           "WorkerTimedOut"]

_FAILED = 1  # exit code of `muster batch`: some orders failed


@dataclass(frozen=True, eq=False)
class WorkOrder:
    """One command. Two orders are equal only if they are the same object, so that equal commands can be
    queued several times.

    cmd             a line for the shell, or a sequence of words to execute as they are
    label           what it measures, from the general to the special: ("pointwise", "add")
    autolabels      more labels, by name: {"language": "C++"}
    source_cmd      a shell command that sets up the environment first: "source env/bin/activate"
    num_threads     how many cores it gets
    timeout         seconds for one attempt
    retries         further attempts after a time-out
    runs            how often it runs
    id              its name in messages and results; None: made from all of the above
    env, cwd, stdin variables to set (None: to unset), directory, and a file for standard input
    """

    cmd: str | Sequence[str]
    label: tuple[str, ...] = ()
    autolabels: Mapping[str, str] = field(default_factory=dict)
    source_cmd: str | None = None
    num_threads: int = 1
    timeout: float | None = None
    retries: int = 0
    runs: int = 1
    id: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    cwd: str | None = None
    stdin: str | None = None

    def labels(self) -> dict[str, str]:
        """All labels by name: those of `label` are called "1", "2", ..."""
        return {**{str(i): text for i, text in enumerate(self.label, 1)}, **self.autolabels}

    def command(self) -> str:
        """The whole command line, as a shell would be given it."""
        line = self.cmd if isinstance(self.cmd, str) else shlex.join(self.cmd)
        return f"{self.source_cmd} && {line}" if self.source_cmd else line

    def __str__(self) -> str:
        return json.dumps({"label": self.label, "autolabels": dict(self.autolabels), "num_threads": self.num_threads})

    def _order(self) -> Order:
        return Order(self.cmd, self.id, self.source_cmd, self.labels(), self.env, self.cwd, self.stdin,
                     self.timeout or 0, self.num_threads, self.retries, self.runs)


@dataclass(frozen=True)
class CorePool:
    """The CPUs min_core_id to max_core_id, both included, are for the orders."""

    min_core_id: int
    max_core_id: int

    def __post_init__(self) -> None:
        count = os.cpu_count() or 1
        if not 0 <= self.min_core_id <= self.max_core_id < count:
            raise ValueError(f"0 <= min_core_id <= max_core_id < {count} is needed, got {self.min_core_id} and "
                             f"{self.max_core_id}")

    def __str__(self) -> str:
        return f"{self.min_core_id}-{self.max_core_id}"


@dataclass(frozen=True)
class WorkerOutput:
    """What came of an order. `attempts` has a dict for every attempt, with the keys of muster-batch(5);
    `stdout` and `stderr` are those of the last one."""

    order: WorkOrder
    attempts: tuple[dict[str, Any], ...]
    stdout: str = ""
    stderr: str = ""

    @property
    def last(self) -> dict[str, Any]:
        return self.attempts[-1]

    @property
    def reason(self) -> str:
        """How it ended: "ok", "exit", "signal", "timeout", "killed", ..."""
        return str(self.last["reason"])

    @property
    def ok(self) -> bool:
        return self.reason == "ok"

    @property
    def exit_code(self) -> int | None:
        return self.last.get("exit")

    @property
    def runs(self) -> tuple[dict[str, Any], ...]:
        """The attempts that count: they ended well and are not warm-ups."""
        return tuple(each for each in self.attempts if each["reason"] == "ok" and not each.get("warmup"))

    @property
    def wall_times(self) -> tuple[float, ...]:
        """Seconds, one of each run."""
        return tuple(run["wall_ns"] / 1e9 for run in self.runs if "wall_ns" in run)

    @property
    def instructions(self) -> tuple[int, ...]:
        """Counted instructions, one of each run; empty without options=["--count=..."]."""
        return tuple(run["counts"]["instructions"] for run in self.runs if "counts" in run)

    def trace(self) -> str:
        """What it said before it failed."""
        return self.stderr or self.stdout


class Results(dict[WorkOrder, WorkerOutput]):
    """Outputs by order, in the order of the list."""

    def group_by(self, *labels: str) -> dict[tuple[str, ...], list[WorkerOutput]]:
        """The outputs of orders with the same values of these labels; "threads" is num_threads."""
        groups: dict[tuple[str, ...], list[WorkerOutput]] = {}
        for order, output in self.items():
            known = {"threads": str(order.num_threads), **order.labels()}
            groups.setdefault(tuple(known.get(label, "") for label in labels), []).append(output)
        return groups

    def records(self) -> list[dict[str, Any]]:
        """A flat dict for every attempt: what muster-batch(5) says, its labels as "label.NAME"."""
        rows = []
        for output in self.values():
            for attempt in output.attempts:
                labels = {f"label.{name}": value for name, value in attempt.get("labels", {}).items()}
                counts = attempt.get("counts", {})
                rest = {key: value for key, value in attempt.items() if key not in ("labels", "counts")}
                rows.append({**rest, **labels, **({"instructions": counts["instructions"]} if counts else {})})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """By id: label, autolabels, num_threads, reason, times in seconds and counts."""
        return {output.last["id"]: {"label": list(order.label), "autolabels": dict(order.autolabels),
                                    "num_threads": order.num_threads, "command": order.command(),
                                    "reason": output.reason, "times": list(output.wall_times),
                                    "counts": list(output.instructions)} for order, output in self.items()}

    def to_json(self, **options: Any) -> str:
        """to_dict() as JSON; options are those of json.dumps()."""
        return json.dumps(self.to_dict(), **options)

    def to_pandas(self) -> Any:
        """records() as a pandas.DataFrame, where pandas is installed."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame.from_records(self.records())


class BatchError(RuntimeError):
    """The batch could not run: `exit_code` is that of `muster batch`, the text is what it said."""

    def __init__(self, exit_code: int, said: str) -> None:
        self.exit_code = exit_code
        super().__init__(said.strip() or f"muster batch ended with {exit_code}; its standard error says why")


class WorkerFailed(Exception):
    """An order failed: `cmd` is its command line, `wrapped_trace` what it said on standard error."""

    def __init__(self, cmd: str, wrapped_trace: str | None = None, order: WorkOrder | None = None) -> None:
        self.cmd = cmd
        self.wrapped_trace = wrapped_trace
        self.order = order
        super().__init__(cmd, wrapped_trace)

    def __str__(self) -> str:
        label = f" [{', '.join([*self.order.label, *self.order.autolabels.values()])}]" if self.order else ""
        trace = self.wrapped_trace or "Unknown failure. (The worker printed nothing.)"
        return f"the worker failed{label}: {self.cmd}\n{trace}"


class WorkerTimedOut(subprocess.TimeoutExpired):
    """An order took longer than its time-out, in all its attempts."""

    def __init__(self, output: WorkerOutput) -> None:
        self.order = output.order
        super().__init__(output.order.command(), output.order.timeout or 0, output.stdout, output.stderr)


class CanaryFailed(ImportError):
    """The canary failed with the source command of some orders, so these did not run."""

    def __init__(self, attempt: Mapping[str, Any], trace: str) -> None:
        self.cmd = attempt["cmd"]
        why = attempt.get("missing", {}).get("run") or f"exit {attempt.get('exit', attempt.get('signal'))}"
        super().__init__(f"the canary failed: {self.cmd} ({why})\n{trace}")


class Runner:
    """Runs orders side by side, each on its own cores, and waits for the last process of each.

    work_items      the orders; the same object twice is an error
    core_pool       the CPUs to use; None: those this process may use, with one kept free if that can be spared
    cadence         accepted; nothing is polled
    canary          a command that is run once with every source command before the orders that have it
    on_failure      "stop": the first failure ends everything and run() raises; "continue": the others
                    go on, and the results have the failures
    retry_on        what `retries` are for: "timeout", or any of --retry-on of muster-batch(1)
    output, resume  a result file, and whether to go on with it: what is done in it is not run again
    progress        show progress and failures on standard error; None: if that is a terminal
    options         more options of muster-batch(1), such as "--count=callgrind"
    on_result       is called with the order (None: a canary) and the attempt, a dict, when it is over

    `results` has what is finished, also after an exception.
    """

    def __init__(self, work_items: Iterable[WorkOrder], core_pool: CorePool | None = None, cadence: float = 1.0, *,
                 canary: str | None = None, on_failure: Literal["stop", "continue"] = "stop",
                 retry_on: str = "timeout", output: str | os.PathLike[str] | None = None, resume: bool = False,
                 progress: bool | None = None, options: Sequence[str] = (),
                 on_result: Callable[[WorkOrder | None, dict[str, Any]], None] | None = None) -> None:
        self._orders = tuple(work_items)
        if len(set(self._orders)) != len(self._orders):
            raise ValueError("Duplicate work items.")
        if cadence <= 0:
            raise ValueError(f"cadence must be positive, got {cadence}")
        if on_failure not in ("stop", "continue"):
            raise ValueError(f"on_failure must be 'stop' or 'continue', got {on_failure!r}")
        self._core_pool = core_pool
        self._canary = canary
        self._stop = on_failure == "stop"
        self._retry_on = retry_on
        self._output = None if output is None else os.fspath(output)
        self._resume = resume
        self._progress = sys.stderr.isatty() if progress is None else progress
        self._options = tuple(options)
        self._on_result = on_result
        self._attempts: dict[int, list[dict[str, Any]]] = {}
        self._said: dict[int, tuple[str, str]] = {}  # stdout and stderr of the last attempt

    @property
    def results(self) -> Results:
        """What came of the orders so far; those that were stopped or never ran are not in it."""
        found = ((i, self._attempts[i]) for i in sorted(self._attempts) if i >= 0)
        return Results((self._orders[i], WorkerOutput(self._orders[i], tuple(attempts), *self._said.get(i, ("", ""))))
                       for i, attempts in found if attempts[-1]["reason"] != "killed")

    def run(self) -> Results:
        """Runs everything. Raises WorkerFailed, WorkerTimedOut (a subprocess.TimeoutExpired), CanaryFailed
        (an ImportError) or BatchError; after a KeyboardInterrupt nothing of the batch is left."""
        self._attempts.clear()
        self._said.clear()
        if not self._orders:
            return self.results
        with tempfile.TemporaryDirectory(prefix="muster-batch-") as folder, tempfile.TemporaryFile() as log:
            stderr = -1 if self._progress else log.fileno()
            with Batch([order._order() for order in self._orders], self._make_options(folder), self._output,
                       self._resume, stderr) as batch:
                self._follow(batch, folder)
                code = batch.exit_code()
            log.seek(0)
            self._judge(code, log.read().decode("utf-8", "replace"))
        return self.results

    def _make_options(self, folder: str) -> list[str]:
        options = [f"--results={folder}", f"--retry-on={self._retry_on}", "--retry-delay=1ms"]
        if self._stop:
            options.append("--halt=now,fail=1")
        if self._core_pool:
            options += [f"--allowed-cores={self._core_pool}", "--reserve-cores=0"]
        if self._canary:
            options.append(f"--canary={self._canary}")
        if any(order.source_cmd for order in self._orders):
            options.append("--shell=/bin/bash")  # which knows `source`
        return [*options, *self._options]

    def _follow(self, batch: Batch, folder: str) -> None:
        """To the end. Each KeyboardInterrupt is passed on: the first stops the orders, the second kills them."""
        interrupted = None
        while True:
            try:
                for place, attempt in batch.follow():
                    self._take(place, attempt, folder)
                break
            except KeyboardInterrupt as e:
                if not batch.started:
                    raise
                interrupted = e
                batch.signal(signal.SIGINT)
        if interrupted:
            raise interrupted

    def _take(self, place: int, attempt: dict[str, Any], folder: str) -> None:
        self._attempts.setdefault(place, []).append(attempt)
        paths = (attempt.get(stream, {}).get("path") for stream in ("stdout", "stderr"))
        stdout, stderr = (read_output(path, folder) for path in paths)
        self._said[place] = (stdout, stderr)
        if self._on_result:
            self._on_result(self._orders[place] if place >= 0 else None, attempt)

    def _judge(self, code: int, said: str) -> None:
        """Raises what the exit code means."""
        if code not in (0, _FAILED):
            raise BatchError(code, said)
        canaries = [attempt for attempt in self._attempts.get(-1, []) if attempt["reason"] == "canary"]
        if canaries and self._stop:
            raise CanaryFailed(canaries[0], "".join(self._said[-1]))
        failed = [output for output in self.results.values() if not output.ok]
        if not failed or not self._stop:
            return
        first = min(failed, key=lambda output: str(output.last.get("start", "")))
        if first.reason == "timeout":
            raise WorkerTimedOut(first)
        raise WorkerFailed(first.order.command(), first.trace() or _why(first), first.order)


def _why(output: WorkerOutput) -> str | None:
    """For an order that printed nothing."""
    if "start" in output.last.get("missing", {}):
        return str(output.last["missing"]["start"])
    return f"signal {output.last['signal']}" if "signal" in output.last else None
