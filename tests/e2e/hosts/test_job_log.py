"""--job-log: one log of what all hosts of a job print, written where the coordinator is."""

import re
import signal
import subprocess

import pytest

from netns_job import PORT
from tree import MUSTER, clean_env
from waits import DEADLINE, wait_for

TALK = """
import os, pathlib, sys, time
rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
for i in range(120):  # what the two ranks of a host print in two attempts waits in its queue at worst: 1 MiB
    print(f"{attempt} {rank} line {i} <b>\\t" + "x" * (i * 37 % 3000))
    if i % 50 == 0:
        print(f"{attempt} {rank} warns {i}", file=sys.stderr, flush=True)
sys.stdout.write("the last one has no end")
sys.stdout.flush()
gate = pathlib.Path(sys.argv[1])
gate.with_name(f"said-{attempt}-{rank}").touch()
while attempt == "0" and len(list(gate.parent.glob("said-0-*"))) < 6:
    time.sleep(0.01)
if attempt == "0" and rank == "4":
    sys.exit(3)
while attempt == "0":
    time.sleep(1)
"""

FLOOD = """
import os, pathlib, sys, time
rank, gate = int(os.environ["RANK"]), pathlib.Path(sys.argv[1])
if rank == 1:
    lines = 0
    while not gate.exists():
        sys.stdout.write("all work and no play\\n" * 1000)
        lines += 1000
        time.sleep(0.001)
    while not gate.with_name("calm").exists():  # what was dropped is known by the number of a line that comes after it
        print("that was all", flush=True)
        lines += 1
        time.sleep(0.05)
    gate.with_name("flood").write_text(str(lines))
else:
    for i in range(200):
        print(f"{rank} says {i}", flush=True)
        time.sleep(0.005)
while not gate.with_name("end").exists():
    time.sleep(0.01)
"""


def start(hosts, program, tmp_path, *options, nproc=1):
    (tmp_path / "program.py").write_text(program)
    return [host.start(MUSTER, "run", f"--nnodes={len(hosts)}", f"--nproc-per-node={nproc}", f"--rdzv-endpoint=node1:{PORT}",
                       "--rdzv-id=job", f"--job-log={tmp_path}/job.log", *options, tmp_path / "program.py", tmp_path / "gate",
                       env=clean_env()) for host in hosts]


def streams(path):
    """The lines of the log by rank and stream, with their order."""
    found = {}
    for line in path.read_bytes().splitlines():
        match = re.fullmatch(rb"\[(\d+)(!?)\]: (.*)", line)
        assert match, line
        found.setdefault((int(match[1]), "stderr" if match[2] else "stdout"), []).append(match[3])
    return found


def test_it_has_the_lines_of_all_files_of_all_hosts_and_attempts(make_lab, tmp_path):
    hosts = make_lab(3).hosts
    agents = start(hosts, TALK, tmp_path, "--max-restarts=1", "--redirects=3", f"--log-dir={tmp_path}/logs", nproc=2)
    assert {agent.wait() for agent in agents} == {0}, [agent.text() for agent in agents]
    files = {}
    for attempt in ("attempt_0", "attempt_1"):
        for path in (tmp_path / "logs").glob(f"*/{attempt}/*/std*.log"):
            lines = path.read_bytes().splitlines()
            rank = int(path.with_name("stdout.log").read_bytes().split()[1])
            files.setdefault((rank, path.stem), []).extend(lines)
    assert sorted(files) == [(rank, stream) for rank in range(6) for stream in ("stderr", "stdout")]
    assert streams(tmp_path / "job.log") == files
    assert all("missing" not in agent.text() for agent in agents)


def test_a_flood_on_one_host_delays_no_other_and_costs_the_coordinator_no_memory(make_lab, tmp_path):
    hosts = make_lab(3).hosts
    agents = start(hosts, FLOOD, tmp_path, "--redirects=1", f"--log-dir={tmp_path}/logs", "--log-max-size=1G")
    log = tmp_path / "job.log"

    def memory():
        with open(f"/proc/{agents[0].pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    said, gaps, rest = {0: [], 2: []}, 0, b""

    def read(file):
        """Takes what was added."""
        nonlocal gaps, rest
        *lines, rest = (rest + file.read()).split(b"\n")
        for line in lines:
            if match := re.fullmatch(rb"\[([02])\]: \1 says (\d+)", line):
                said[int(match[1])].append(int(match[2]))
            gaps += line.endswith(b" are missing here")
        return said[0] == said[2] == list(range(200)) and gaps > 0

    wait_for(log.exists, "the log")
    # All of the others is there although the flood goes on, and on.
    with log.open("rb") as file:
        wait_for(lambda: read(file), "the lines of the other hosts, and a flood that is more than the log takes")
    assert memory() < 48 << 10  # KiB: about what a job without a flood takes
    (tmp_path / "gate").touch()
    wait_for(lambda: b"[1]: that was all\n" in log.read_bytes(), "the end of the flood in the log")
    (tmp_path / "calm").touch()
    flood = int(wait_for(lambda: (tmp_path / "flood").exists() and (tmp_path / "flood").read_text(), "the number of all lines"))

    def told():
        """Lines that are there, and the number of those that are not."""
        text = log.read_bytes()
        return (len(re.findall(rb"\[1\]: (?:all work and no play|that was all)\n", text)),
                sum(map(int, re.findall(rb"muster: (\d+) lines of node[23] are missing here", text))))

    # Before the workers end: muster waits a second at most for what is on its way then.
    wait_for(lambda: sum(told()) >= flood, "each line to be there or to be counted")
    (tmp_path / "end").touch()
    assert {agent.wait() for agent in agents} == {0}
    there, lost = told()
    assert there + lost == flood
    assert log.read_bytes().endswith(b"muster: %d lines are missing in this log, of %d\n" % (lost, flood + 400))
    said_here = re.search(r"job.log: (\d+) lines are missing \(hosts printed more than it takes\)", agents[0].text())
    assert int(said_here[1]) == lost


def test_after_the_loss_of_the_coordinator_the_next_one_goes_on(make_lab, tmp_path):
    hosts = make_lab(4).hosts
    (tmp_path / "program.py").write_text(
        "import os, pathlib, time\n"
        f"gate = pathlib.Path('{tmp_path}/gate')\n"
        "print('begins with', os.environ['WORLD_SIZE'], flush=True)\n"
        "while not gate.exists(): time.sleep(0.01)\n"
        "print('ends with', os.environ['WORLD_SIZE'])\n")
    endpoints = ",".join(f"{host.name}:{PORT}" for host in hosts[:3])
    agents = [host.start(MUSTER, "run", "--nnodes=2:4", f"--rdzv-endpoint={endpoints}", "--rdzv-id=job", "--rdzv-conf=last_call_timeout=1",
                         f"--job-log={tmp_path}/{host.name}.log", tmp_path / "program.py", env=clean_env()) for host in hosts]
    logs = {host.name: tmp_path / f"{host.name}.log" for host in hosts}

    def count(name, text):
        return logs[name].read_text().count(text) if logs[name].exists() else 0

    wait_for(lambda: any(count(name, "begins with 4") == 4 for name in logs), "the lines of all hosts in one log")
    (first,) = [name for name in logs if logs[name].exists()]
    lost = next(i for i, host in enumerate(hosts) if host.name == first)
    agents[lost].signal(signal.SIGKILL)
    rest = [name for name in logs if name != first]
    wait_for(lambda: any(count(name, "begins with 3") == 3 for name in rest), "the lines of the rest in another log")
    (tmp_path / "gate").touch()
    assert {agent.wait() for i, agent in enumerate(agents) if i != lost} == {0}
    (second,) = [name for name in rest if logs[name].exists()]
    assert count(second, "ends with 3") == 3 and "missing" not in logs[second].read_text()


@pytest.mark.parametrize("attempt", range(3))
def test_a_worker_that_ends_at_once_is_in_it(attempt, tmp_path):
    done = subprocess.run([MUSTER, "run", "--nproc-per-node=4", f"--job-log={tmp_path}/job.log", "--no-python", "/bin/echo", "hello"],
                          capture_output=True, timeout=DEADLINE, env=clean_env())
    assert done.returncode == 0
    assert sorted((tmp_path / "job.log").read_text().splitlines()) == [f"[{rank}]: hello" for rank in range(4)]


def test_a_file_that_cannot_be_written_is_told_and_ends_nothing(tmp_path):
    done = subprocess.run([MUSTER, "run", "--nproc-per-node=2", f"--job-log={tmp_path}", "--no-python", "/bin/echo", "hello"],
                          text=True, capture_output=True, timeout=DEADLINE, env=clean_env())
    assert done.returncode == 0 and done.stdout == "hello\nhello\n"
    assert f"--job-log: cannot write {tmp_path}: Is a directory" in done.stderr
    assert f"{tmp_path}: 22 bytes are missing (Is a directory)" in done.stderr
