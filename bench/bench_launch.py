"""Launch: the cost of starting, watching and restarting, beside a bare posix_spawn loop and the peers.

Rounds alternate between the candidates and the best of each counts: what disturbs a round is never
the program under test getting faster."""

import contextlib
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from table import BUILD, MUSTER, TORCHRUN, WORKER_ENV, head, row

BARE = str(BUILD / "bench" / "bare_loop")
PROBE = str(BUILD / "bench" / "restart_probe")
SPAWN = str(BUILD / "bench" / "spawn")
ENV = dict(WORKER_ENV, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
IDLE_S = 3
PATIENCE_S = 60


def seconds(command):
    start = time.monotonic()
    subprocess.run(command, env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def race(candidates, rounds):
    """Best time of each."""
    times = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, command in candidates.items():
            times[name].append(seconds(command))
    return {name: min(values) for name, values in times.items()}


def peers_present(candidates):
    return {name: command for name, command in candidates.items() if shutil.which(command[0], path=ENV["PATH"])}


def bench_start():
    fast = {"bare": [BARE, "4", "/bin/true"],
            "muster": [MUSTER, "run", "--nproc-per-node=4", "/bin/true"],
            "muster, no log directory": [MUSTER, "run", "--nproc-per-node=4", "--log-dir=/dev/null", "/bin/true"],
            "mpiexec.hydra": ["mpiexec.hydra", "-n", "4", "/bin/true"],
            "mpirun (Open MPI)": ["mpirun.openmpi", "--oversubscribe", "-n", "4", "/bin/true"]}
    best = race(peers_present(fast), 20)
    best |= race(peers_present({"torchrun": [TORCHRUN, "--nproc-per-node=4", "--no-python", "/bin/true"]}), 2)
    for name, aim in [("muster", "<= 2 x the bare loop"), ("muster, no log directory", "")]:
        row(f"4 x /bin/true, {name} / bare loop", best[name] * 1e3, best["bare"] * 1e3, "ms", aim)
    for name in best.keys() - {"bare", "muster", "muster, no log directory"}:
        row(f"4 x /bin/true, muster / {name}", best["muster"] * 1e3, best[name] * 1e3, "ms", "< 1")


def bench_thousand():
    best = race({"bare": [BARE, "1000", "/bin/true"],
                 "muster": [MUSTER, "run", "--nproc-per-node=1000", "--log-dir=/dev/null", "/bin/true"]}, 5)
    row("1,000 x /bin/true / bare loop", best["muster"], best["bare"], "s", "<= 1.3 x")


def bench_slots():
    """The warden as `batch` uses it: two slots, one program each at a time."""
    def rate(how):
        return 2000 / float(subprocess.run([SPAWN, how, "2000", "2"], check=True, capture_output=True, text=True).stdout)
    rates = {how: max(rate(how) for _ in range(3)) for how in ("bare", "warden")}
    row("programs per second, 2 slots, warden / bare loop", rates["warden"], rates["bare"], "1/s", ">= 0.8 x")


@contextlib.contextmanager
def job_at_rest(workers):
    """The pids of all of muster's own processes, once the workers sleep."""
    process = subprocess.Popen([MUSTER, "run", f"--nproc-per-node={workers}", "--log-dir=/dev/null", "sleep", "1000"],
                               env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            heirs = children(process.pid)
            wardens = [pid for heir in heirs for pid in children(heir)]
            own = [process.pid, *heirs, *wardens]
            if sum(len(children(pid)) for pid in wardens) == workers:
                break
            time.sleep(0.01)
        time.sleep(0.5)
        yield own
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def field(path, name):
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise LookupError(name)


def switches(pids):
    """How often any thread of these was put on a CPU: a thread that was not has made no system call."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total += field(task / "status", "voluntary_ctxt") + field(task / "status", "nonvoluntary_ctxt")
    return total


def bench_rest():
    with job_at_rest(8) as own:
        pss_mb = sum(field(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in own) / 1024
        before = switches(own)
        time.sleep(IDLE_S)
        woken = switches(own) - before
    row("memory of all muster processes, 8 workers (PSS)", pss_mb, None, "MB", "<= 3")
    row("wake-ups per second while idle (0: no system call)", woken / IDLE_S, None, "1/s", "0")


def bench_restart():
    def once(launcher):
        with tempfile.TemporaryDirectory() as directory:
            record = pathlib.Path(directory) / "record"
            seconds([*launcher, "--nproc-per-node=2", "--max-restarts=1", f"--log-dir={directory}/logs", "--no-python",
                     PROBE, str(record)])
            said = [line.split() for line in record.read_text().splitlines()]
        down = [int(ns) for what, ns in said if what == "down"]
        up = [int(ns) for what, ns in said if what == "up"]
        assert len(down) == 1 and len(up) == 2, said
        return (max(up) - down[0]) / 1e6

    ours = statistics.median(once([MUSTER, "run"]) for _ in range(7))
    peer = once([TORCHRUN]) if shutil.which(TORCHRUN) else None
    row("death of a worker to the restarted group / torchrun", ours, peer, "ms", "<= 5")


def main():
    head("launch")
    bench_start()
    bench_thousand()
    bench_slots()
    bench_rest()
    bench_restart()


if __name__ == "__main__":
    main()
