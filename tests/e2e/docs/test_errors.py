"""The list of errors: whatever the program says is in it, and nothing else."""

import re
import subprocess
import sys

from tree import ROOT
from waits import DEADLINE

PAGE = ROOT / "docs/errors.md"
# How another side broke a protocol: people read it behind "rejected", "dropped" and their like, with the side's name.
OF_A_PEER = re.compile(r"src/(proto/(c10d|frame|round_msg|store_session|log_block|joblog/|flight|pickle|etcd|dash/|deal/|checks/|stacks/|fleet/)|net/(link|seal)|"
                       r"batch/many/|run/forensics|core/store_table)")
# For developers of muster alone.
NOT_FOR_USERS = re.compile(r"src/(cli/cmd_sim\.c|sim/)")
# "The form of a value" on the page.
OF_A_FORM = re.compile(r"%(?:\.\*|\.\d+)?[sg]?(?:\.\.\.)?'?(?: is| are) (?:not|neither) |'%[.*\d]*s'?: %s$|at '%.32s'$")
# Messages with the words of the system ("What the system says"), and those that only pass others on.
OF_THE_SYSTEM = re.compile(r"%m|^(?:[^a-z]|%[.*\d]*[sd]|, and |: no |kv|process)*$")


def rows():
    """The first column of each table of messages: alternatives, each a list of pieces in their order."""
    tables = PAGE.read_text().split("## Starting")[1]
    for line in tables.splitlines():
        if line.startswith("| `"):
            yield from (re.findall(r"`([^`]+)`", alternative) for alternative in re.split(r"(?<=`), (?=`)", line[2:].split(" | ")[0]))


def messages():
    done = subprocess.run([sys.executable, ROOT / "scripts/messages"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=DEADLINE)
    return [line.split("\t") for line in done.stdout.splitlines()]


def is_listed(message, listed):
    return any(re.search(".*".join(map(re.escape, pieces)), message) for pieces in listed)


def test_every_message_is_in_the_list():
    listed = list(rows())
    found = [(path, message) for path, message in messages() if not OF_A_PEER.match(path) and not NOT_FOR_USERS.match(path)]
    assert len(found) > 400
    missing = [f"{path}: {message}" for path, message in found
               if not is_listed(message, listed) and not OF_A_FORM.search(message) and not OF_THE_SYSTEM.search(message)]
    assert not missing, "docs/errors.md says nothing of:\n" + "\n".join(missing)


def test_messages_in_the_list_exist():
    paths = [*(ROOT / "src").rglob("*.[ch]"), ROOT / "python/muster/_bench.py"]  # a part of the program
    source = "\n".join(path.read_text() for path in sorted(paths))
    source = re.sub(r'"\s*\n?\s*"', "", source).replace("\\", "")
    listed = list(rows())
    assert len(listed) > 150
    assert not [piece for pieces in listed for piece in pieces if piece not in source]


def test_exit_codes_in_the_list_are_those_of_the_program():
    source = (ROOT / "src/core/worker/exit_code.h").read_text()
    codes = {int(n) for n in re.findall(r"EXIT_CODE_\w+ = (\d+),", source)} - {128}
    listed = {int(n) for n in re.findall(r"(?m)^\| (\d+) \|", PAGE.read_text())}
    assert codes == listed
