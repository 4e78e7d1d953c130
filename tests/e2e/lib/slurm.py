"""A real Slurm for the tests: a controller and N nodes on the hosts of a lab (netns.py), each with its own name, address,
slurmd and munged.

    with Cluster(nodes=4) as slurm:
        done = slurm.run("srun", "-N2", MUSTER, "run", ...)
        job = slurm.start("srun", "-N4", ...)
        slurm.nodes[1].kill()

Node names are node1 to nodeN; users work on one host more, the controller's. Nothing of it is seen outside of the lab."""

import os
import pathlib
import re
import subprocess

import netns
from tree import ADMIN, clean_env
from waits import DEADLINE, wait_for

PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "sbatch")

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")  # states of a job that do not change

CONFIG = """
ClusterName=lab
SlurmctldHost={controller}({address})
AuthType=auth/munge
AuthInfo=cred_expire=5
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
KillWait=20
InactiveLimit=0
SlurmdTimeout=10
JobRequeue=1
SchedulerParameters=bf_interval=1,sched_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=node[1-{nodes}] CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=60 PriorityTier=1 State=UP
PartitionName=high Nodes=ALL MaxTime=60 PriorityTier=10 State=UP
"""


class Cluster:
    def __init__(self, nodes=4, cpus=4):
        if missing := [program for program in PROGRAMS if not find(program)]:
            raise netns.Unavailable(f"no {', '.join(missing)}: scripts/deps test installs them")
        self.lab = netns.Lab(count=nodes + 1)
        try:
            self.try_groups()
            self.set_up(nodes, cpus)
        except BaseException:
            self.lab.close()
            raise

    def try_groups(self):
        """The daemons drop the groups they were started with, which a user's own namespace does not allow."""
        done = subprocess.run(self.lab.hosts[0].space.command("setpriv", "--clear-groups", "true"), capture_output=True, text=True)
        if done.returncode != 0:
            raise netns.Unavailable(done.stderr.strip())

    def set_up(self, nodes, cpus):
        *self.nodes, self.login = self.lab.hosts
        self.directory = self.lab.directory
        self.config = self.directory / "slurm.conf"
        (self.directory / "state").mkdir()
        self.config.write_text(CONFIG.format(controller=self.login.name, address=self.login.ipv4, directory=self.directory,
                                             nodes=nodes, cpus=cpus))
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.daemons = {host: [self.start_munge(host)] for host in self.lab.hosts}
        self.daemons[self.login].append(self.login.start("slurmctld", "-D", "-c", env=self.env()))
        for host in self.nodes:
            self.start_slurmd(host)
        wait_for(lambda: self.idle() == nodes, "all nodes to be idle; " + self.state())

    def start_munge(self, host):
        host.call("mkdir", "-p", "-m", "755", "/run/munge")
        daemon = host.start("munged", "--foreground", "--force", f"--key-file={self.directory}/munge.key",
                            "--log-file=/run/munge/log", "--seed-file=/run/munge/seed", "--pid-file=/run/munge/pid", env=self.env())
        wait_for(lambda: subprocess.run(host.space.command("test", "-S", "/run/munge/munge.socket.2")).returncode == 0
                 or not daemon.running(), "munged to listen")
        return daemon

    def start_slurmd(self, host):
        self.daemons[host].append(host.start("slurmd", "-D", env=self.env()))

    def env(self, **extra):
        env = clean_env(SLURM_CONF=self.config, **extra)
        env["PATH"] += ":" + ADMIN
        return env

    # ---- commands of users ----

    def run(self, *argv, check=True, cwd=None, **extra):
        """Runs a command on the login host to its end."""
        done = subprocess.run(self.login.space.command("env", "-C", cwd or self.directory, *argv), env=self.env(**extra), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
        assert not check or done.returncode == 0, f"{argv} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done

    def start(self, *argv, cwd=None, **extra):
        """Starts a command on the login host; its output is collected."""
        return self.login.start(*argv, cwd=cwd, env=self.env(**extra))

    def submit(self, *argv, **kwargs):
        """sbatch; the number of the job."""
        return int(re.search(r"Submitted batch job (\d+)", self.run("sbatch", *argv, **kwargs).stdout)[1])

    def job(self, number):
        """What scontrol says about a job: {"JobState": "RUNNING", ...}."""
        text = self.run("scontrol", "-o", "show", "job", number, check=False).stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def wait_state(self, number, *states, timeout=DEADLINE):
        def reached():
            return self.job(number).get("JobState") in states
        wait_for(reached, f"job {number} to be {' or '.join(states)}", timeout)
        return self.job(number)

    def batch(self, *argv, **kwargs):
        """sbatch, to the end of the job; what scontrol says about it then."""
        return self.wait_state(self.submit(*argv, **kwargs), *ENDED)

    def newest(self):
        """The number of the job that was made last."""
        return int(self.run("squeue", "-h", "-o", "%A", "--sort=-i").stdout.split()[0])

    # ---- the nodes ----

    def idle(self):
        return len(self.run("sinfo", "-h", "-N", "-p", "low", "-t", "idle", check=False).stdout.splitlines())

    def state(self):
        return self.run("sinfo", "-N", check=False).stdout

    def clear(self):
        """Ends all jobs, and brings back nodes that are gone."""
        self.run("scancel", "-u", "root", check=False)
        for host in self.nodes:
            if not host.space.process.poll() is None or not self.daemons[host][-1].running():
                self.revive(host)
        wait_for(lambda: self.idle() == len(self.nodes), "all nodes to be idle again; " + self.state())

    def revive(self, host):
        host.boot()
        self.daemons[host] = [self.start_munge(host)]
        self.start_slurmd(host)
        wait_for(lambda: self.is_back(host), f"{host.name} to be back")

    def is_back(self, host):
        """Whether Slurm counts on a node again; it is told to where it has given the node up."""
        state = re.search(r"State=(\S+)", self.run("scontrol", "-o", "show", "node", host.name).stdout)[1]
        if re.search("DOWN|DRAIN", state):
            self.run("scontrol", "update", f"NodeName={host.name}", "State=RESUME", check=False)
        return re.fullmatch(r"(IDLE|ALLOCATED|MIXED|COMPLETING)(\+COMPLETING)?", state) is not None

    def close(self):
        self.lab.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def batch_script(place, *commands):
    """A script for sbatch in the directory of the test."""
    return place("job.sh", "#!/bin/bash\n" + "\n".join(commands) + "\n", 0o755)


def find(program):
    """Where a program is; None: nowhere."""
    for folder in [*os.environ["PATH"].split(":"), *ADMIN.split(":")]:
        path = pathlib.Path(folder, program)
        if os.access(path, os.X_OK):
            return path
    return None
