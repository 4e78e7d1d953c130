"""Output: tee with a prefix in MB/s and CPU s/GB, delay per line, rank directories.

The peers are torchrun's own tee and `sed` putting the same prefix before each line. CPU time is that of
the launcher and its helpers alone: what the workers need by themselves is measured and taken off.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from table import BUILD, MUSTER, TORCHRUN, WORKER_ENV, head, row

FLOOD = str(BUILD / "helpers" / "line_flood")
CLOCK = str(BUILD / "bench" / "line_clock")
WORKERS = 8
ENV = dict(WORKER_ENV, PYTHONUNBUFFERED="1")


def timed(command, stdout=subprocess.DEVNULL, env=ENV):
    """(wall seconds, CPU seconds with all children that were waited for). With a pipe as stdout the time
    counts from the first byte that comes out of it to the last: no start-up."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=env)
    if stdout == subprocess.PIPE:
        os.read(process.stdout.fileno(), 1)
        start = time.monotonic()
        while os.read(process.stdout.fileno(), 1 << 20):
            pass
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime


def workers_alone(megabytes):
    """CPU seconds the workers need to write into a pipe that somebody reads."""
    total = 0
    for _ in range(WORKERS):
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        total += timed([FLOOD, "write", str(megabytes)], stdout=reader.stdin, env=dict(ENV, RANK="0"))[1]
        reader.stdin.close()
        reader.wait()
    return total


def tee(launcher, megabytes, runs, directory):
    """(MB/s, launcher's CPU s/GB), median of the runs, without those of the start"""
    def once(size):
        logs = os.path.join(directory, "logs")
        used = timed([*launcher, "--nproc-per-node", str(WORKERS), "--tee", "1", "--log-dir", logs,
                      "--no-python", FLOOD, "write", str(size)], stdout=subprocess.PIPE)
        shutil.rmtree(logs)
        return used

    own = workers_alone(megabytes)
    start_cpu = once(0.001)[1]
    speeds, costs = [], []
    for _ in range(runs):
        wall, cpu = once(megabytes)
        speeds.append(WORKERS * megabytes / wall)
        costs.append(max(cpu - start_cpu - own, 0.001) / (WORKERS * megabytes / 1000))
    return statistics.median(speeds), statistics.median(costs)


def sed(megabytes, directory):
    """The same bytes through sed into a file and to the console: `sed | tee`."""
    path = os.path.join(directory, "flood")
    with open(path, "wb") as out:
        for rank in range(WORKERS):
            subprocess.run([FLOOD, "write", str(megabytes)], stdout=out, env=dict(ENV, RANK=str(rank)), check=True)
    speeds, costs = [], []
    for _ in range(3):
        wall, cpu = timed(["bash", "-c", f"cat {path} | tee {path}.log | sed 's/^/[default0]:/'"],
                          stdout=subprocess.PIPE)
        speeds.append(WORKERS * megabytes / wall)
        costs.append(cpu / (WORKERS * megabytes / 1000))
    os.unlink(path)
    os.unlink(path + ".log")
    return statistics.median(speeds), statistics.median(costs)


def whole(megabytes, directory):
    """8 x 100 MB, every line checked on its way out."""
    start = time.monotonic()
    muster = subprocess.Popen([MUSTER, "run", f"--nproc-per-node={WORKERS}", "--tee=1", "--log-dir", directory,
                               FLOOD, "write", str(megabytes)], stdout=subprocess.PIPE, env=ENV)
    check = subprocess.run([FLOOD, "check", str(WORKERS), str(megabytes)], stdin=muster.stdout, capture_output=True)
    assert muster.wait() == 0 and check.stdout == b"complete\n", check.stderr
    return time.monotonic() - start


def delays(command):
    """(p50, p99) in microseconds of 2,000 lines, one a millisecond"""
    writer = subprocess.Popen([*command, CLOCK, "write", "2000", "1000"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=ENV)
    reader = subprocess.run([CLOCK, "read"], stdin=writer.stdout, capture_output=True, text=True)
    assert writer.wait() == 0
    p50, p99, _ = map(int, reader.stdout.split())
    return p50, p99


def directories(count, directory):
    """Seconds that the log tree of so many workers adds to a start."""
    def start(where):
        return statistics.median(timed([MUSTER, "run", f"--nproc-per-node={count}", "--log-dir", where,
                                        "--capture=never", "/bin/true"])[0] for _ in range(3))
    logs = os.path.join(directory, "tree")
    with_tree, without = start(logs), start("/dev/null")
    begin = time.monotonic()
    for i in range(count):
        os.mkdir(os.path.join(directory, f"plain{i}"))
    return max(with_tree - without, 0), time.monotonic() - begin


def main():
    head("output", note=" (ratio: below 1 is ahead)")
    with tempfile.TemporaryDirectory() as directory:
        our_speed, our_cost = tee([MUSTER, "run"], 50, 3, directory)
        their_speed, their_cost = tee([TORCHRUN], 4, 1, directory)
        sed_speed, sed_cost = sed(50, directory)
        row("tee with prefix, 8 workers (torchrun)", our_speed, their_speed, "MB/s", ratio=their_speed / our_speed)
        row("tee with prefix, 8 workers (sed | tee)", our_speed, sed_speed, "MB/s", "ahead of sed", ratio=sed_speed / our_speed)
        row("its CPU time (torchrun)", our_cost, their_cost, "s/GB", "")
        row("its CPU time (sed | tee)", our_cost, sed_cost, "s/GB", "below sed")
        seconds = whole(100, directory)
        print(f"8 x 100 MB, every line checked: complete, {seconds:.1f} s")
        ours, theirs = delays([MUSTER, "run", "--prefix=x:"]), delays([TORCHRUN, "--tee", "1", "--no-python"])
        bare = delays([])
        row("delay of a line, p50 (torchrun)", ours[0], theirs[0], "us", "")
        row("delay of a line, p99 (torchrun)", ours[1], theirs[1], "us", "")
        row("delay of a line, p50 (a bare pipe)", ours[0], bare[0], "us", "")
        row("delay of a line, p99 (a bare pipe)", ours[1], bare[1], "us", "")
        added, plain = directories(1000, directory)
        row("log tree of 1,000 workers (1,000 x mkdir)", added * 1000, plain * 1000, "ms", "")


sys.exit(main())
