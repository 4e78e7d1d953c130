"""What this place can do: found out by trying it, so that a test is skipped with the true reason."""

import functools
import os
import pty
import socket
import subprocess

import pytest

from tree import admin_env

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")  # starts a command as another user
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")  # starts a command as process 1


@functools.lru_cache(maxsize=None)
def why_not(*command):
    """None if the command works here, else its last word on stderr."""
    try:
        done = subprocess.run([*map(str, command)], env=admin_env(), cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace")
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"{command[0]} ended with {done.returncode}"])[-1]


def need(*command):
    """Skips the test where the command does not work."""
    if why := why_not(*command):
        pytest.skip(why)


def need_mount():
    """For a file system of the test's own, in a mount namespace."""
    need("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt")


def need_terminal():
    """For a terminal of the test's own. A bare chroot has no /dev/pts."""
    try:
        ends = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal can be made here: {error}")
    for end in ends:
        os.close(end)


def need_root(why):
    if os.geteuid() != 0:
        pytest.skip(why)


def need_own_name():
    """For torchrun, which looks up the name of its host. A bare chroot may not know it."""
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError as error:
        pytest.skip(f"the name of this host does not resolve: {error}")


def cores():
    """The CPUs of this process by physical core, as the kernel tells; none where there is no /sys."""
    groups = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as siblings:
                groups.setdefault(siblings.read(), []).append(cpu)
        except OSError:
            return []
    return list(groups.values())


def need_cores():
    if not cores():
        pytest.skip("/sys does not tell which CPUs share a core")
