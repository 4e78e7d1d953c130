"""Real pods without a cluster: podman plays the pods of a Job, one at a time, as the Job controller would make them.

    cluster = Cluster(directory)                       # an image with muster in it, a network with names
    job = cluster.job(manifest)                        # what `muster k8s` printed
    job.start(1); job.start(0)
    assert job.code(0) == 0"""

import os
import pathlib
import random
import shutil
import subprocess
import sys

import pytest
import yaml

from able import need_root, why_not
from tree import MUSTER, admin_env
from waits import DEADLINE, wait_for

PROGRAMS = [MUSTER, "/bin/bash", "/bin/sleep", "/bin/cat", "/usr/bin/id", "/usr/bin/stat"]
IMAGE, PAUSE = "localhost/muster:test", "localhost/pause:test"
# Limits that podman asks for as root may be more than this machine allows.
SHIM = """#!{python}
import json, os, sys
if "create" in sys.argv:
    path = sys.argv[sys.argv.index("--bundle") + 1] + "/config.json"
    spec = json.load(open(path))
    spec["process"]["rlimits"] = []
    json.dump(spec, open(path, "w"))
os.execv("{runc}", ["runc", *sys.argv[1:]])
"""
CONF = """[network]
network_backend = "netavark"
[engine]
runtime = "shim"
cgroup_manager = "cgroupfs"
events_logger = "file"
infra_image = "{pause}"
[engine.runtimes]
shim = ["{shim}"]
"""


def need_podman():
    need_root("pods need root here")
    for program in ("podman", "runc"):
        if not shutil.which(program, path=admin_env()["PATH"]):
            pytest.skip(f"{program} is not installed; scripts/deps test installs it")
    if why := why_not("podman", "--version"):
        pytest.skip(why)


class Cluster:
    """A podman of its own, with everything it stores in `directory`."""

    def __init__(self, directory):
        need_podman()
        self.directory = pathlib.Path(directory)
        self.jobs = []
        self.network = f"muster{os.getpid()}"
        shim = self.directory / "shim"
        shim.write_text(SHIM.format(python=sys.executable, runc=shutil.which("runc", path=admin_env()["PATH"])))
        shim.chmod(0o755)
        (self.directory / "containers.conf").write_text(CONF.format(pause=PAUSE, shim=shim))
        (self.directory / "net").mkdir()
        try:
            self.make_images()
            self.make_network()
            self.call("run", "--rm", "--network", self.network, IMAGE, "/bin/cat", "/etc/hosts")
        except AssertionError as why:
            self.close()
            pytest.skip(f"podman cannot run a container here: {str(why)[-300:]}")

    def make_network(self):
        """Names and addresses of its own: podman keeps those of all networks in one place, also of a run that was killed."""
        for _ in range(10):
            subnet = f"10.{random.randrange(100, 200)}.{random.randrange(256)}.0/24"
            done = self.run("network", "create", f"--subnet={subnet}", self.network)
            if done.returncode == 0:
                return
        raise AssertionError(f"no network for pods: {done.stderr}")

    def make_images(self):
        root = self.directory / "image"
        for name in ("tmp", "etc", "proc", "dev", "sys", "run", "bin"):
            (root / name).mkdir(parents=True)
        libraries = set()
        for program in PROGRAMS:
            shutil.copy(program, root / "bin")
            found = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
            libraries |= {word for word in found.split() if word.startswith("/")}
        for library in libraries:
            (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, root / library[1:])
        tar = self.directory / "image.tar"
        subprocess.run(["tar", "-C", root, "-cf", tar, "."], check=True)
        self.call("import", "--change", "ENV PATH=/bin", tar, IMAGE)
        self.call("import", "--change", 'CMD ["/bin/bash","-c","trap \\"exit 0\\" TERM; sleep 100000 & wait"]', tar, PAUSE)

    def command(self, *argv):
        return ["podman", f"--root={self.directory}/root", f"--runroot={self.directory}/runroot", "--storage-driver=vfs",
                f"--network-config-dir={self.directory}/net", *map(str, argv)]

    def run(self, *argv):
        return subprocess.run(self.command(*argv), capture_output=True, text=True, timeout=DEADLINE,
                              env=dict(admin_env(), CONTAINERS_CONF=str(self.directory / "containers.conf")))

    def call(self, *argv):
        done = self.run(*argv)
        assert done.returncode == 0, f"podman {argv}: {done.stderr}"
        return done.stdout

    def job(self, manifest, **changes):
        self.jobs.append(PodJob(self, manifest, **changes))
        return self.jobs[-1]

    def close(self):
        for job in self.jobs:
            job.close()
        self.run("network", "rm", "-f", self.network)


def expanded(text):
    """What Kubernetes makes of a word of a command (third_party/forked/golang/expansion), of which it knows no variable."""
    out, at = "", 0
    while at < len(text):
        pair = text[at:at + 2]
        if pair == "$$":
            out, at = out + "$", at + 2
        elif pair == "$(" and ")" in text[at:]:
            out, at = out + "VALUE", text.index(")", at) + 1
        else:
            out, at = out + text[at], at + 1
    return out


class PodJob:
    """An Indexed Job: pods NAME-0, NAME-1 ... made from its template. `shares` are directories of this machine that the pods
    see too, `env` variables, `changes` fields of the container."""

    def __init__(self, cluster, manifest, shares=(), env=None, **changes):
        self.cluster, self.changes, self.env = cluster, changes, env or {}
        paths = {pathlib.Path(share).resolve() for share in shares}
        self.shares = sorted(str(path) for path in paths if not paths & set(path.parents))
        (self.spec,) = [document for document in yaml.safe_load_all(manifest) if document["kind"] == "Job"]
        self.name = self.spec["metadata"]["name"]

    def pod(self, index):
        """What the Job controller makes of the template."""
        spec = dict(self.spec["spec"]["template"]["spec"], hostname=f"{self.name}-{index}")
        (container,) = spec["containers"]
        container = dict(container, **self.changes)
        container["command"] = [expanded(word) for word in container["command"]]  # podman leaves $$ alone
        for key in ("livenessProbe", "ports"):  # podman would run curl inside, and open the ports on this machine
            container.pop(key, None)
        container["image"] = IMAGE
        container["env"] = [{"name": "JOB_COMPLETION_INDEX", "value": str(index)}, {"name": "MUSTER_TOKEN", "value": "secret"},
                            {"name": "HOSTNAME", "value": f"{self.name}-{index}"},
                            *({"name": name, "value": str(value)} for name, value in self.env.items())]
        # podman 4.3 has no emptyDir in memory
        container["volumeMounts"] = [{"name": f"share-{i}", "mountPath": path} for i, path in enumerate(self.shares)]
        spec["volumes"] = [{"name": f"share-{i}", "hostPath": {"path": path, "type": "Directory"}} for i, path in enumerate(self.shares)]
        spec["containers"] = [container]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{self.name}-{index}"}, "spec": spec}

    def start(self, index):
        path = self.cluster.directory / f"{self.name}-{index}.yaml"
        path.write_text(yaml.safe_dump(self.pod(index)))
        self.cluster.call("kube", "play", "--network", self.cluster.network, path)

    def delete(self, index):
        """At once, as when its node is lost."""
        self.cluster.call("pod", "kill", f"{self.name}-{index}")
        self.remove(index)

    def remove(self, index):
        """One that has ended, as the Job controller does before it makes the next."""
        self.cluster.call("pod", "rm", "-f", f"{self.name}-{index}")

    def stop(self, index, grace=None):
        """SIGTERM, and SIGKILL after its grace."""
        grace = self.spec["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] if grace is None else grace
        self.cluster.run("stop", f"--time={grace}", f"{self.name}-{index}-muster")

    def inspect(self, index, what):
        return self.cluster.call("inspect", "--format", what, f"{self.name}-{index}-muster").strip()

    def address(self, index):
        infra = self.cluster.call("pod", "inspect", "--format", "{{.InfraContainerID}}", f"{self.name}-{index}").strip()
        return self.cluster.call("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", infra).strip()

    def text(self, index):
        done = self.cluster.run("logs", f"{self.name}-{index}-muster")
        return done.stdout + done.stderr

    def ended(self, index):
        return self.inspect(index, "{{.State.Status}}") == "exited"

    def says(self, index, text, timeout=DEADLINE):
        """Waits until it has printed the text, no longer than it lives."""
        def last_word():
            ended = self.ended(index)  # first: what it prints before its end is in the text then
            said = self.text(index)
            return [said] if ended or text in said else None

        (said,) = wait_for(last_word, f"{self.name}-{index} to say {text!r}", timeout)
        assert text in said, f"{self.name}-{index} has ended without {text!r}; it said:\n{said}"

    def code(self, index, timeout=DEADLINE):
        """Of its container, when it has ended."""
        wait_for(lambda: self.ended(index), f"{self.name}-{index} to end", timeout)
        return int(self.inspect(index, "{{.State.ExitCode}}"))

    def verdict(self, code):
        """What the Job controller does with a pod that ended with this code: the first rule that fits."""
        for rule in self.spec["spec"]["podFailurePolicy"]["rules"]:
            codes = rule.get("onExitCodes")
            if codes and (code in codes["values"]) == (codes["operator"] == "In"):
                return rule["action"]
        return "Count"

    def close(self):
        for index in range(self.spec["spec"]["completions"]):
            self.cluster.run("pod", "rm", "-f", "-t0", f"{self.name}-{index}")
