"""Jobs on four hosts of namespaces, one of which is not well in some way: is it found and named, and nobody in healthy jobs?

usage: soak_checks.py [--runs=20] [--case=NAME] [--load=N] [--seed=N]

--load=N    N processes that only compute run beside the jobs
--seed=N    the order in which the hosts start

Cases that the machine does not allow (loop devices, CPU quotas) say so and are left out."""

import argparse
import pathlib
import random
import subprocess
import sys
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))

from netns import Lab  # noqa: E402
from netns_job import Job  # noqa: E402
from tree import MUSTER, clean_env  # noqa: E402

UNFIT = "node4 is not fit and becomes a spare of last resort: "
CPU = pathlib.Path("/sys/fs/cgroup/cpu")


class Case:
    """Four hosts, of which the last is prepared by a shell script; three suffice for the job."""

    script, check, path = ":", "", None
    members = 3  # of the round

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def prepare(self, four):
        pass

    def verdict(self, job, one, four):
        """What must have been said; None: it was."""
        return None if UNFIT + self.why in job.agents[one].text() else f"nobody said '{UNFIT}{self.why}'"

    def end(self, job, one, four):
        job.finish()
        job.ends(0)


class Healthy(Case):
    members = 4

    def verdict(self, job, one, four):
        return "somebody was named" if "not fit" in job.agents[one].text() else None


class Quota(Case):
    why = "cpus_usable 0.2 CPUs, median of 4 nodes "

    def __enter__(self):
        self.group = CPU / f"muster-soak-{uuid.uuid4().hex[:8]}"
        self.group.mkdir()
        (self.group / "cpu.cfs_quota_us").write_text("20000")
        self.script = f"echo $$ >{self.group}/cgroup.procs"
        return self

    def __exit__(self, *_):
        self.group.rmdir()


class Shm(Case):
    why = "shm_size 3.355e+07 bytes, median of 4 nodes "
    script = "mount -t tmpfs -o size=32m none /dev/shm"


class Torch(Case):
    why = "torch 9.9.9, "  # of those whose checker was quick enough most have another


class Wire(Case):
    """The switch lets only 10 Mbit a second through to it."""

    why = "pair_bandwidth "

    def prepare(self, four):
        four.limit(10)


class Frozen(Case):
    """Its log directory is on a disk that does not answer. It leaves: nothing can run there."""

    script = ("truncate -s 16M /run/image; mkfs.ext4 -q /run/image; mkdir -p logs; mount -o loop /run/image logs; fsfreeze -f logs")

    def verdict(self, job, one, four):
        job.says(four, "this node is not fit for workers and does not join the job")
        return None if "preflight: storage: logs: no answer within 5 s" in job.agents[four].text() else "node4 did not name the disk"

    def end(self, job, one, four):
        four.call("fsfreeze", "-u", four.lab.directory / "logs")
        job.finish()
        job.ends(0, 0, 0, 91, hosts=four.lab.hosts)


class Checker(Case):
    """A checker that fails says nothing about its node."""

    members = 4

    def __init__(self, check, says):
        self.check, self.says = check, says

    def verdict(self, job, one, four):
        job.says(four, self.says)
        return "somebody was named" if "not fit" in job.agents[one].text() else None


CASES = {
    "healthy": Healthy, "quota": Quota, "shm": Shm, "torch": Torch, "frozen": Frozen, "wire": Wire,
    "crash": lambda: Checker("kill -9 $$", "it was ended by signal 9"),
    "hang": lambda: Checker("exec sleep 1000", "it did not end within "),
    "garbage": lambda: Checker("head -c 9999 /dev/urandom", "preflight: "),
}


def fake_torch(directory, version):
    info = directory / f"torch-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    return str(directory)


def start(job, host, script, **env):
    command = f'{script}; exec "$@"'
    job.agents[host] = host.start("bash", "-c", command, "-", MUSTER, "run", f"--events={job.events(host)}", *job.options,
                                  *job.workers_command(), env=clean_env(**job.env, **env))


def run(name, chance):
    """None: as it should be; otherwise what was wrong."""
    with Lab(4) as lab, CASES[name]() as case:
        one, *_, four = lab.hosts
        case.prepare(four)
        (lab.directory / "logs").mkdir()
        same = fake_torch(lab.directory / "same", "8.8.8")
        other = fake_torch(lab.directory / "other", "9.9.9") if name == "torch" else same
        job = Job(lab, "3:4", [one], "--rdzv-conf=last_call_timeout=15", "--preflight", "--log-dir=logs", '--check=eval "$CHECK"')
        for host in chance.sample(lab.hosts, 4):
            if host is four:
                start(job, four, case.script, PYTHONPATH=other, CHECK=case.check or ":")
            else:
                start(job, host, ":", PYTHONPATH=same, CHECK=":")
        try:
            job.now = job.crew.round(case.members, [job.agents[one]], 120)
            wrong = case.verdict(job, one, four)
            case.end(job, one, four)
        except AssertionError as error:
            wrong = str(error)
        if wrong:
            wrong += "".join(f"\n--- {host.name}\n{agent.text()}" for host, agent in job.agents.items())
        return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(args.load)]
    failed = 0
    try:
        for name in args.case or CASES:
            began, good = time.monotonic(), 0
            for number in range(args.runs):
                try:
                    wrong = run(name, random.Random(args.seed * 1000 + number))
                except OSError as error:
                    print(f"{name}: not possible here: {error}", flush=True)
                    break
                good += not wrong
                if wrong:
                    failed += 1
                    print(f"{name}, run {number + 1}: {wrong}", flush=True)
            else:
                print(f"{name}: {good} of {args.runs} as they should be, {(time.monotonic() - began) / args.runs:.1f} s each", flush=True)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
