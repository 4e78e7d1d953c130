"""Writes docs/benchmarks.md and charts from what `bench/run` printed.

usage: report.py LOG...      logs of whole or partial runs; a bench that is in none of them keeps the table it has

A table of a bench begins with a line that ends in "ours peer ratio unit aim" or the like; each further line is a row. Benches
that print something else are shown as they are.
"""

import html
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
CHARTS = ROOT / "docs" / "charts"
ROW = re.compile(r"^ *(?P<what>\S.*?) {1,}(?P<ours>[\d.,]\S*|-|nan) +(?P<peer>[\d.,]\S*|-|nan) +(?P<ratio>[\d.]+|-|nan) {2}(?P<unit>\S+) *(?P<aim>.*)$")

INTRO = """# Figures

`make bench` writes this page and the charts: every bench of `bench/`, side by side with the peers that are installed. A single one: `bench/run launch`.
Rounds alternate between the candidates, so that both see the same machine. "times" says how many times better muster's figure is: below 1 the peer is ahead.
A machine that others use at the same time makes every figure worse; the load is given.

"""


def sections(log):
    """{name: (date and load, the machine, lines)} of each bench in a log."""
    text = pathlib.Path(log).read_text()
    head, *rest = re.split(r"(?m)^== (\w+) (.+) ==$", text)
    return {name: (when, head.strip().splitlines(), body.strip("\n").splitlines())
            for name, when, body in zip(rest[0::3], rest[1::3], rest[2::3])}


def table(lines):
    """(rows, other lines)."""
    rows, others = [], []
    for line in lines:
        found = ROW.match(line)
        if found and found["ours"] not in ("ours", "muster"):
            rows.append(found.groupdict())
        elif line and not re.search(r"ratio +unit", line):
            others.append(line)
    return rows, others


def shown(number):
    value = float_of(number)
    return "–" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def times(row):
    """How many times better ours is: more of a rate, less of everything else."""
    ours, peer = float_of(row["ours"]), float_of(row["peer"])
    if not ours or not peer:
        return "–"
    better = ours / peer if is_rate(row) else peer / ours
    return f"{better:,.3g}" if better < 1000 else f"{better:,.0f}"


def is_rate(row):
    return row["unit"].endswith("/s")


def section(name, when, head, lines):
    rows, others = table(lines)
    out = [f"## {name}", "", f"{when}; {'; '.join(line.replace('model name	: ', '') for line in head)}; `bench/run {name}`", ""]
    if rows:
        out += ["| what | muster | peer | times | unit |", "| :--- | ---: | ---: | ---: | :--- |"]
        out += [f"| {r['what']} | {shown(r['ours'])} | {shown(r['peer'])} | {times(r)} | {r['unit']} |" for r in rows]
        out.append("")
    if others:
        out += ["```text", *others, "```", ""]
    pairs = [r for r in rows if " / " in r["what"] and float_of(r["peer"]) and not is_rate(r)]
    if pairs:
        CHARTS.mkdir(exist_ok=True)
        (CHARTS / f"{name}.svg").write_text(chart(name, pairs))
        out += [f"![{name}: muster beside its peers, shorter is better](charts/{name}.svg)", ""]
    return "\n".join(out)


def float_of(text):
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if value == value else None


def chart(name, rows):
    """Two bars a row, on a scale of the row's own: what counts is how they compare. Colours follow the reader's theme."""
    height, left, width = 46, 360, 300
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {len(rows) * height + 40}" font-family="system-ui, sans-serif" font-size="13">',
           "<style>text{fill:#24292f}.a{fill:#0969da}.b{fill:#afb8c1}"
           "@media (prefers-color-scheme: dark){text{fill:#e6edf3}.a{fill:#58a6ff}.b{fill:#6e7681}}</style>",
           f'<text x="10" y="20" font-weight="bold">{html.escape(name)}: shorter is better</text>']
    for i, row in enumerate(rows):
        y = 36 + i * height
        what, _, peer = row["what"].rpartition(" / ")
        ours, theirs = float_of(row["ours"]), float_of(row["peer"])
        most = max(ours, theirs)
        out.append(f'<text x="{left - 10}" y="{y + 20}" text-anchor="end">{html.escape(what)}</text>')
        for line, (label, value, kind) in enumerate((("muster", ours, "a"), (peer, theirs, "b"))):
            length = max(1, value / most * width)
            top = y + line * 18
            out.append(f'<rect class="{kind}" x="{left}" y="{top}" width="{length:.1f}" height="15" rx="2"/>')
            out.append(f'<text x="{left + length + 6:.1f}" y="{top + 12}" font-size="12">{html.escape(label)} {shown(str(value))} {html.escape(row["unit"])}</text>')
    return "\n".join([*out, "</svg>", ""])


def main(logs):
    kept = {}
    if PAGE.exists():
        for part in re.split(r"(?m)^(?=## )", PAGE.read_text())[1:]:
            kept[part.split()[1]] = part
    for log in logs:
        for name, (when, head, lines) in sections(log).items():
            kept[name] = section(name, when, head, lines)
    PAGE.write_text(INTRO + "\n".join(kept[name].rstrip("\n") + "\n" for name in sorted(kept)))


if __name__ == "__main__":
    main(sys.argv[1:])
