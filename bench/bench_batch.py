"""Batch: orders a second against a bare loop, xargs, GNU parallel and hyperfine; memory for 100,000
orders; makespan against the lower bound; error of the ETA.

All runners start the same command in the same environment, two at a time (hyperfine: one after the
other, it cannot do otherwise), in turns within one run, so that all see the same host. The command has
two arguments: with exactly one, /bin/true loads its locale, which takes longer than all the rest. The
best of the rounds counts: other load can only slow a runner down.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from table import BUILD, MUSTER, head, row

COUNT, ROUNDS, ORDERS = 1000, 5, 100_000


def timed(command, env=None, cwd=None):
    """(seconds, largest resident KiB, CPU seconds of it and all that it started)"""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=env, cwd=cwd)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - start, usage.ru_maxrss, usage.ru_utime + usage.ru_stime


def throughput(work):
    (work / "numbers").write_text("".join(f"{i}\n" for i in range(COUNT)))
    (work / "orders").write_text("".join(f"/bin/true x {i}\n" for i in range(COUNT)))
    home = work / "parallel"
    home.mkdir()
    (home / "will-cite").touch()
    env = dict(os.environ, PARALLEL_HOME=str(home))
    commands = {
        "ours": [MUSTER, "batch", "-q", "-j2", "-o", "r.jsonl", "orders"],
        "a bare vfork loop": [str(BUILD / "bench" / "vfork_loop"), str(COUNT), "2", "/bin/true", "x", "1"],
        "xargs -P2": ["xargs", "-a", "numbers", "-P2", "-n1", "/bin/true", "x"],
        "GNU parallel -j2": ["parallel", "-j2", "/bin/true", "x", "::::", "numbers"],
        "hyperfine -N (serial)": ["hyperfine", "-N", "-r", str(COUNT), "--style", "none", "/bin/true x 1"],
    }
    best, cpu = dict.fromkeys(commands, 0), dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS):
        for name, command in commands.items():
            (work / "r.jsonl").unlink(missing_ok=True)
            seconds, _, cpu_seconds = timed(command, env, work)
            best[name] = max(best[name], COUNT / seconds)
            cpu[name] = min(cpu[name], 1000 * cpu_seconds / COUNT)
    for name in list(commands)[1:]:
        aim = ">= 0.9" if "loop" in name else "> 1"
        row(f"/bin/true, against {name}", best["ours"], best[name], "orders/s", aim)
        row(f"CPU time, against {name}", cpu["ours"], cpu[name], "ms/order", aim, ratio=cpu[name] / cpu["ours"])


def memory(work):
    (work / "many").write_text("".join(f"/bin/true --case {i} --input data/file-{i}.bin\n" for i in range(ORDERS)))
    _, kb, _ = timed([MUSTER, "batch", "-q", "-j2", "--deadline=3s", "-o", "many.jsonl", "many"], cwd=work)
    row(f"memory for {ORDERS} orders", kb / 1024, None, "MiB", "<= 64")


def simulated():
    out = subprocess.run([str(BUILD / "bench" / "batch_sim")], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        *name, median, p90 = line.split()
        for which, value in (("median", float(median)), ("p90", float(p90))):
            if name == ["makespan"]:
                row(f"makespan over its lower bound, {which}", f"{value:.4f}", unit="times", aim="<= 1.01")
            else:
                row(f"ETA error with {name[1]} % done, {which}", f"{100 * value:.1f}", unit="%")


def main():
    head("batch")
    with tempfile.TemporaryDirectory() as folder:
        throughput(pathlib.Path(folder))
        memory(pathlib.Path(folder))
    simulated()


if __name__ == "__main__":
    sys.exit(main())
