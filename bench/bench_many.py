"""A batch on four hosts: orders a second against one host, GNU parallel over ssh, HyperQueue and an srun for each task; what an order
costs at the coordinator; memory for a million orders.

The hosts are namespaces of this machine (tests/e2e/lib), so they share its cores: the figures show what each program adds to an order, not what
four machines could do. Four orders run at a time everywhere. Each program is timed from its start to its end, with as many orders as it can do in a
few seconds, in turns; the best of the rounds counts. HyperQueue is the wheel of PyPI, which this bench installs into a place of its own: its
server and workers are threads of one process there, which is less than four hosts have to do."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from table import BUILD, MUSTER, ROOT, head, row

sys.path.insert(0, str(ROOT / "tests/e2e/lib"))
os.environ["MUSTER"] = MUSTER

import netns  # noqa: E402
import slurm  # noqa: E402
from sshd import Ssh  # noqa: E402
from tree import clean_env  # noqa: E402

HOSTS, ROUNDS = 4, 3
COUNT, COUNT_PARALLEL, COUNT_SRUN, COUNT_HQ = 4000, 60, 40, 2000
MILLION = 1_000_000

HQ = """
import sys, time
from hyperqueue import Job
from hyperqueue.cluster import LocalCluster, WorkerConfig
with LocalCluster() as cluster:
    for _ in range(4):
        cluster.start_worker(WorkerConfig(cores=1))
    client = cluster.client()
    start = time.monotonic()
    job = Job()
    for i in range(int(sys.argv[1])):
        job.program(["/bin/true", "x", str(i)])
    client.wait_for_jobs([client.submit(job)])
    print(time.monotonic() - start)
"""


def orders(path, count):
    path.write_text("".join(f"/bin/true x {i}\n" for i in range(count)))
    return path


def best(rounds, run):
    return max(run() for _ in range(rounds))


def traffic(host):
    """Bytes that it has received and sent."""
    words = next(line for line in host.call("cat", "/proc/net/dev").splitlines() if "eth0:" in line).split(":")[1].split()
    return int(words[0]) + int(words[8])


class Lab:
    def __init__(self, net, work):
        self.net, self.work = net, work
        self.list = orders(work / "orders", COUNT)
        self.names = ",".join(host.name for host in net.hosts)

    def finish(self, process, count, start):
        assert process.wait() == 0, process.text()
        return count / (time.monotonic() - start)

    def many(self):
        """Four agents that find each other, as an engine would start them."""
        out = self.work / "many.jsonl"
        out.unlink(missing_ok=True)
        start = time.monotonic()
        agents = [host.start(MUSTER, "batch", "-q", "-j1", "--place=none", "--rdzv-endpoint=node1", "-o", out, self.list,
                             env=clean_env(MUSTER_TOKEN="bench")) for host in self.net.hosts]
        return max(self.finish(agent, COUNT, start) for agent in agents)

    def over_ssh(self):
        start = time.monotonic()
        return self.finish(self.net.terminal.start(MUSTER, "batch", "-q", "-j1", "--place=none", f"--hosts={self.names}",
                                                   f"--ssh=ssh -F {self.net.config}", self.list), COUNT, start)

    def one(self):
        start = time.monotonic()
        return self.finish(self.net.terminal.start(MUSTER, "batch", "-q", "-j4", "--place=none", self.list), COUNT, start)

    def parallel(self):
        home = self.work / "parallel"
        home.mkdir(exist_ok=True)
        (home / "will-cite").touch()
        start = time.monotonic()
        return self.finish(self.net.terminal.start(
            "parallel", "--ssh", f"ssh -F {self.net.config}", "-S", ",".join(f"1/{host.name}" for host in self.net.hosts), "/bin/true", "x", ":::",
            *map(str, range(COUNT_PARALLEL)), env=clean_env(PARALLEL_HOME=str(home))), COUNT_PARALLEL, start)

    def cost(self):
        """CPU time and bytes at the terminal, which coordinates and runs nothing, for each order beyond the first ones."""
        seen = []
        for count in (COUNT // 4, COUNT):
            before = traffic(self.net.terminal)
            command = self.net.terminal.space.command(
                "env", "-C", self.work, MUSTER, "batch", "-q", "-j1", "--place=none", f"--hosts={self.names}", f"--ssh=ssh -F {self.net.config}",
                "-o", self.work / f"cost{count}.jsonl", orders(self.work / f"cost{count}", count))
            process = subprocess.Popen(command, env=dict(clean_env(), TMPDIR="/run/here"), stdin=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            seen.append((count, usage.ru_utime + usage.ru_stime, traffic(self.net.terminal) - before))
        (few, cpu_few, bytes_few), (lot, cpu_lot, bytes_lot) = seen
        return (cpu_lot - cpu_few) / (lot - few) * 1e6, (bytes_lot - bytes_few) / (lot - few)


def hyperqueue(work):
    place = BUILD / "bench" / "hyperqueue"
    if not (place / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
    done = subprocess.run([place / "bin/pip", "install", "-q", "hyperqueue"], capture_output=True, text=True)
    if done.returncode:
        print(f"HyperQueue: not installed: {done.stderr.strip().splitlines()[-1]}")
        return None
    (work / "hq.py").write_text(HQ)

    def run():
        out = subprocess.run([place / "bin/python", work / "hq.py", str(COUNT_HQ)], cwd=work, capture_output=True, text=True, timeout=300)
        assert out.returncode == 0, out.stderr
        return COUNT_HQ / float(out.stdout.split()[-1])
    return best(ROUNDS, run)


def srun_each():
    """As many at a time as there are nodes."""
    with slurm.Cluster(nodes=HOSTS) as cluster:
        script = f"for i in $(seq {COUNT_SRUN}); do echo $i; done | xargs -P{HOSTS} -n1 srun -Q -N1 -n1 /bin/true x"

        def run():
            start = time.monotonic()
            cluster.run("sh", "-c", script)
            return COUNT_SRUN / (time.monotonic() - start)
        return best(2, run)


def million(work):
    """The coordinator with the list, and a few seconds of work on it."""
    with open(work / "million", "w") as out:
        out.writelines(f"/bin/true --case {i} --input data/file-{i}.bin\n" for i in range(MILLION))
    process = subprocess.Popen([MUSTER, "batch", "-q", "-j1", "--deadline=5s", "--rdzv-endpoint=127.0.0.1:29731", "-o", "million.jsonl", "million"],
                               cwd=work, env=clean_env(MUSTER_TOKEN="bench"), stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_maxrss / 1024


def main():
    head("batch on four hosts")
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            lab = Lab(Ssh(stack.enter_context(netns.Lab(HOSTS + 1))), work)
        except netns.Unavailable as why:
            print(f"skipped: {why}")
            return 0
        seen = {"one": [], "many": [], "ssh": [], "parallel": []}
        for _ in range(ROUNDS):
            seen["one"].append(lab.one())
            seen["many"].append(lab.many())
            seen["ssh"].append(lab.over_ssh())
            if shutil.which("parallel"):
                seen["parallel"].append(lab.parallel())
        many, ssh = max(seen["many"]), max(seen["ssh"])
        row("/bin/true, 4 agents, against one host with 4 jobs", many, max(seen["one"]), "orders/s")
        row("the same, --hosts over ssh, with its start", ssh, max(seen["one"]), "orders/s")
        if seen["parallel"]:
            row("--hosts, against GNU parallel over ssh", ssh, max(seen["parallel"]), "orders/s", "> 1")
        cpu, size = lab.cost()
        row("CPU time at the coordinator", cpu, None, "us/order")
        row("bytes at the coordinator, both ways", size, None, "B/order")
        hq = hyperqueue(work)
        if hq:
            row("4 agents, against HyperQueue in one process", many, hq, "orders/s", "> 1")
        try:
            row("4 agents, against an srun for each", many, srun_each(), "orders/s", "> 1")
        except netns.Unavailable as why:
            print(f"srun: skipped: {why}")
        row("memory of the coordinator, a million orders", million(work), None, "MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
