"""Reads definitions.txt and expands it: one case for every runtime, autograd, language and number of threads."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

WIDTH = 40  # of the Python column
LANGUAGES = ("Python", "C++")
PARTS = ("global", "setup", "statement")


@dataclass(frozen=True)
class Case:
    """One thing to measure."""

    label: tuple[str, ...]
    runtime: str  # "Eager" or "TorchScript"
    autograd: str  # "Forward" or "Forward + Backward"
    language: str
    threads: int
    loops: int
    arguments: tuple[str, ...]  # of the signature
    output: str
    code: dict[str, str]  # by part, in its language
    script: str  # the statement in Python, which TorchScript compiles

    @property
    def autolabels(self) -> dict[str, str]:
        return {"runtime": self.runtime, "autograd": self.autograd, "language": self.language}

    @property
    def key(self) -> str:
        """The same for every version of the code that is measured."""
        return json.dumps({"label": self.label, "autolabels": self.autolabels, "num_threads": self.threads})

    @property
    def script_source(self) -> str:
        """The statement as a function for TorchScript."""
        body = "".join(f"    {line}\n" for line in self.script.splitlines())
        return f"def f({', '.join(self.arguments)}):\n{body}    return {self.output}\n"

    @property
    def name(self) -> str:
        """A word for files and C++ functions."""
        return "case_" + hashlib.md5(self.key.encode()).hexdigest()[:12]


def read_columns(lines: list[str], where: str) -> dict[str, dict[str, str]]:
    """The two columns by language and part."""
    code = {language: dict.fromkeys(PARTS, "") for language in LANGUAGES}
    part = ""
    for line in lines:
        left, bar, right = line[:WIDTH].rstrip(), line[WIDTH:WIDTH + 3], line[WIDTH + 3:].rstrip()
        if bar.rstrip() != " |":
            raise ValueError(f"{where}: no ' | ' after {WIDTH} characters: {line!r}")
        if left.startswith("# ") and left[2:] in PARTS:
            part = left[2:]
        elif left or right:
            for language, text in zip(LANGUAGES, (left, right)):
                code[language][part] += f"{text}\n" if text else ""
    return code


def read_block(text: str) -> list[Case]:
    """All cases of a block."""
    head, *lines = text.strip("\n").split("\n")
    label = tuple(word.strip() for word in head.strip("[]").split(","))
    start = next(i for i, line in enumerate(lines) if line.startswith("Python"))
    options = dict(line.split(": ", 1) for line in lines[:start])
    unknown = options.keys() - {"threads", "signature", "autograd", "loops"}
    if unknown:
        raise ValueError(f"{head}: unknown option '{unknown.pop()}'")
    signature = re.fullmatch(r"f\((.*)\) -> (\w+)", options.get("signature", "")) if "signature" in options else None
    columns = read_columns(lines[start + 2:], head)
    passes = ("Forward", "Forward + Backward") if options.get("autograd") == "yes" else ("Forward",)
    return [Case(label, runtime, autograd, language, threads, int(options.get("loops", "100")),
                 tuple(re.split(r",\s*", signature[1])) if signature else (), signature[2] if signature else "",
                 columns[language], columns["Python"]["statement"])
            for runtime in (("Eager", "TorchScript") if signature else ("Eager",))
            for autograd in passes for language in LANGUAGES
            for threads in map(int, options.get("threads", "1").split())
            if columns[language]["statement"]]


def read_definitions(path: str | Path) -> list[Case]:
    """What stands before the first block is for people."""
    _, *blocks = re.split(r"(?m)^(?=\[)", Path(path).read_text())
    return [case for block in blocks for case in read_block(block)]


def plant(cases: list[Case], word: str, share: float) -> list[Case]:
    """The same cases with more loops where a label has this word: a slowdown to be found."""
    return [replace(case, loops=round(case.loops * (1 + share))) if word in case.label[0] else case for case in cases]


def md5(cases: list[Case]) -> str:
    """Tells whether two results are about the same list."""
    return hashlib.md5("".join(case.key for case in cases).encode()).hexdigest()
