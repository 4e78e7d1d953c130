"""The files of a batch: order lists and results."""

import json


def results(path):
    """The attempts of a result file."""
    lines = [json.loads(line) for line in open(path, encoding="utf-8", errors="surrogateescape")]
    assert lines[0]["muster"] == "batch" and lines[0]["v"] == 1
    return lines[1:]


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def write_orders(path, *orders):
    """A list of JSON orders."""
    return write(path, *map(json.dumps, orders))
