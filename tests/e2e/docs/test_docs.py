"""The documents: every runnable block runs, every link leads somewhere, every name they quote exists."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import pytest

from tree import MUSTER, ROOT, clean_env
from waits import DEADLINE

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])
GUIDES = ROOT / "docs"
FENCE = re.compile(r"(?ms)^```([^\n`]*)\n(.*?)^```$")


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    """(information, text) of each fenced block."""
    return FENCE.findall(path.read_text())


def prose(path):
    return FENCE.sub("", path.read_text())


@functools.cache
def strings_of_the_program():
    """What the sources print: adjacent literals joined."""
    source = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.[ch]")))
    return re.sub(r'"\s*\n?\s*"', "", source)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if any(info.split()[1:] == ["run"] for info, _ in blocks(path))], ids=name_of)
def test_the_runnable_commands_run(path, tmp_path):
    """All blocks of a document in one empty directory, in their order."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/muster").symlink_to(MUSTER)
    with tempfile.TemporaryDirectory(prefix="docs-") as runtime:  # names of sockets must be short
        env = dict(clean_env(), PATH=f"{tmp_path}/bin:{os.environ['PATH']}", HOME=str(tmp_path), XDG_RUNTIME_DIR=runtime)
        for text in [text for info, text in blocks(path) if info.split()[1:] == ["run"]]:
            done = subprocess.run(["bash", "-eu", "-c", text], cwd=here, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=2 * DEADLINE)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def anchors(path):
    """What GitHub makes of headings."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.*)$", prose(path))}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", prose(path)):
        target = urllib.parse.unquote(target[0] or target[1])
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = path.parent / file if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_spelling():
    """codespell knows common mistakes; hunspell's dictionaries know neither options nor programs."""
    if not shutil.which("codespell", path=os.path.dirname(sys.executable)):
        pytest.skip("codespell is not installed; tests/requirements.txt names it")
    done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "codespell"), "--ignore-words", ROOT / "tests/words", *DOCUMENTS, *ROOT.glob("man/*.[1-9]")],
                          capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("lexgrog"), reason="lexgrog of man-db is not installed; scripts/deps test installs it")
@pytest.mark.parametrize("page", sorted(ROOT.glob("man/*.[1-8]")), ids=name_of)
def test_the_index_of_manuals_finds_each_page(page):
    """apropos and packages read its NAME: no blanks in it."""
    done = subprocess.run(["lexgrog", page], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_metrics_in_guide_dashboard_and_alerts_exist():
    named = set()
    for name in ("operating.md", "grafana.json", "alerts.yml"):
        named.update(re.findall(r"\bmuster_\w+", (GUIDES / name).read_text()))
    source = strings_of_the_program()
    assert len(named) > 10 and not [name for name in named if f'"{name}' not in source]
    dashboard = json.loads((GUIDES / "grafana.json").read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]) >= 8


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed; scripts/deps test installs it")
def test_prometheus_accepts_the_alerts():
    subprocess.run(["promtool", "check", "rules", GUIDES / "alerts.yml"], check=True, capture_output=True, timeout=DEADLINE)


def test_the_guide_from_torchrun_names_each_of_its_options():
    program = "from torch.distributed.run import get_args_parser; print(*(o for a in get_args_parser()._actions for o in a.option_strings[:1]))"
    options = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=2 * DEADLINE).stdout.split()
    guide = (GUIDES / "from-torchrun.md").read_text()
    assert len(options) > 25
    assert not [option for option in options if option not in ("-h", "--help") and option not in guide]


def test_commands_in_documents_have_options_that_exist():
    """In fenced blocks; a line that goes on belongs to the one before."""
    known = {}
    for command in subprocess.run([MUSTER, "help", "--commands"], capture_output=True, text=True, check=True).stdout.split():
        out = subprocess.run([MUSTER, "help", "--options", command], capture_output=True, text=True, check=True).stdout
        known[command] = {line.split()[0] for line in out.splitlines()} | {"--help"}
    wrong = []
    for path in DOCUMENTS:
        for info, text in blocks(path):
            if info.split()[:1] not in (["bash"], ["sh"]):
                continue
            for command, rest in re.findall(r"(?m)\bmuster (\w+)((?: +--?[a-z][\w-]*(?:=(?:'[^']*'|\S+))?)*)", text):
                wrong += [f"{name_of(path)}: muster {command} {option}" for option in re.findall(r"(?<= )--[a-z][\w-]*", rest)
                          if option not in known.get(command, {option})]
                wrong += [] if command in known else [f"{name_of(path)}: muster {command}"]
    assert not wrong


def test_the_figures_of_the_readme_are_those_of_the_benches():
    rows = re.findall(r"(?m)^\| (.*?) \| ([\d.,]+) \| ([\d.,–]+) \| (\w+\S*) <!-- bench: (.*?) --> \|$", (ROOT / "README.md").read_text())
    measured = (GUIDES / "benchmarks.md").read_text()
    assert len(rows) >= 5
    for _, ours, peer, unit, what in rows:
        found = re.search(rf"(?m)^\| {re.escape(what)} \| (\S+) \| (\S+) \| \S+ \| {re.escape(unit)} \|$", measured)
        assert found, what
        assert same(found[1], ours) and same(found[2], peer), (what, found[0])


def same(measured, shown):
    """Equal, where the README may round to two digits."""
    if measured == "–" or shown == "–":
        return measured == shown
    return abs(float(measured.replace(",", "")) - float(shown.replace(",", ""))) <= 0.06 * float(measured.replace(",", ""))
