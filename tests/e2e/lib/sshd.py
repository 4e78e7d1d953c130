"""A real sshd on every host of a lab, and a user who may log in everywhere.

    net = Ssh(make_lab(4))                            # the last host is where the user sits
    job = net.muster("--nproc-per-node=2", "train.py", hosts=net.hosts)"""

import contextlib
import os
import shutil
import subprocess

import pytest

from proc import alive, words
from tree import MUSTER, admin_env, clean_env
from waits import wait_for

SSHD = shutil.which("sshd", path=admin_env()["PATH"])


def need_sshd():
    if not SSHD or not shutil.which("ssh"):
        pytest.skip("openssh-server and openssh-client are not installed")
    if os.geteuid() != 0:
        pytest.skip("sshd needs root to log users in")


class Ssh:
    """`lab` has a host more than the job: the terminal."""

    def __init__(self, lab, without=(), force=None):
        need_sshd()
        self.lab = lab
        *self.hosts, self.terminal = lab.hosts
        self.directory = lab.directory
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / f"{name}_key"], check=True)
        (self.directory / "user_key").chmod(0o600)
        self.config = self.directory / "ssh_config"
        self.config.write_text(
            f"Host *\nUser root\nIdentityFile {self.directory}/user_key\nIdentitiesOnly yes\nStrictHostKeyChecking no\n"
            f"UserKnownHostsFile /dev/null\nLogLevel ERROR\nAddressFamily inet\n")
        (self.directory / "sshd_config").write_text(
            f"HostKey {self.directory}/host_key\nAuthorizedKeysFile {self.directory}/user_key.pub\nStrictModes no\nUsePAM no\n"
            f"PidFile none\nMaxStartups 200\nSetEnv TMPDIR=/run/here XDG_RUNTIME_DIR=/run/here HOME=/run/here\n" +
            (f"ForceCommand {force}\n" if force else ""))
        for host in lab.hosts:
            if host not in without:
                self.boot(host)

    def boot(self, host):
        """Starts sshd on a host and waits until it listens."""
        host.call("mkdir", "-p", "/run/sshd")
        host.start(SSHD, "-D", "-e", "-f", self.directory / "sshd_config")
        wait_for(lambda: ":22 " in host.call("ss", "-Hltn"), f"sshd on {host.name}")

    def command(self, where, *rest, ssh=None):
        return [MUSTER, "run", where, f"--ssh={ssh or f'ssh -F {self.config}'}", "--shutdown-timeout=1", *rest]

    def muster(self, *command, hosts=None, ssh=None, env=None, options=()):
        """`muster run --hosts` in the terminal."""
        names = ",".join(getattr(host, "name", host) for host in hosts or self.hosts)
        return self.terminal.start(*self.command(f"--hosts={names}", *options, *command, ssh=ssh), env=clean_env(**(env or {})))

    def processes(self):
        """{host: [command line]} of all that runs but sshd itself."""
        found = {}
        for host in self.lab.hosts:
            for pid in host.pids() if alive(host.space.pid) else []:
                line = b" ".join(words(pid)).decode(errors="replace")
                if line and "sshd" not in line.split(" ")[0] and not line.startswith("sshd: "):
                    found.setdefault(host.name, []).append(line)
        return found

    def nothing_left(self, within=60):
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not self.processes(), "all processes to end", within)
        assert self.processes() == {}
