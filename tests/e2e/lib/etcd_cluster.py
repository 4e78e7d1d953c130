"""A real etcd, one member or several, on addresses of its own on loopback."""

import base64
import itertools
import json
import platform
import random
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from ports import Port
from tree import clean_env
from waits import DEADLINE, wait_for

ETCD = shutil.which("etcd")


def etcd_env():
    """Nothing of the caller's etcd; on arm64 the older ones want to be asked twice."""
    env = {name: value for name, value in clean_env().items() if not name.startswith("ETCD")}
    return dict(env, ETCD_UNSUPPORTED_ARCH="arm64") if platform.machine() == "aarch64" else env


def loopback_address():
    """One of 16 million: what runs beside us has most likely another."""
    return f"127.{random.randint(1, 254)}.{random.randint(0, 254)}.{random.randint(1, 254)}"


class Member:
    def __init__(self, cluster, name, client_url, peer_url, directory):
        self.cluster, self.name, self.client_url, self.peer_url = cluster, name, client_url, peer_url
        self.data, self.log = directory / name, directory / f"{name}.log"
        self.process = None

    @property
    def endpoint(self):
        return self.client_url.split("//")[1]

    def start(self):
        args = [ETCD, "--name", self.name, "--data-dir", self.data, "--unsafe-no-fsync",
                "--listen-client-urls", self.client_url, "--advertise-client-urls", self.client_url,
                "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
                "--initial-cluster", ",".join(f"{m.name}={m.peer_url}" for m in self.cluster.members),
                *self.cluster.options]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*map(str, args)], env=etcd_env(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

    def kill(self, sig=signal.SIGKILL):
        self.process.send_signal(sig)
        self.process.wait(DEADLINE)

    def answers(self):
        """Does it, and is there a leader? A read that needs one tells."""
        try:
            self.ask("kv/range", key=base64.b64encode(b"x").decode())
            return True
        except urllib.error.HTTPError as error:
            return error.code in (400, 401)  # it wants a log-in
        except OSError:
            return False

    def ask(self, path, **body):
        request = urllib.request.Request(f"{self.client_url}/v3/{path}", json.dumps(body).encode())
        handlers = [urllib.request.ProxyHandler({})]
        if self.cluster.context:
            handlers.append(urllib.request.HTTPSHandler(context=self.cluster.context))
        opener = urllib.request.build_opener(*handlers)
        with opener.open(request, timeout=DEADLINE) as answer:
            return json.load(answer)

    def key(self, name):
        """The key as a dictionary with its value decoded, or None."""
        pairs = self.ask("kv/range", key=base64.b64encode(name.encode()).decode()).get("kvs", [])
        if not pairs:
            return None
        return dict(pairs[0], value=base64.b64decode(pairs[0]["value"]).decode())

    def delete(self, name):
        self.ask("kv/deleterange", key=base64.b64encode(name.encode()).decode())


class Cluster:
    def __init__(self, directory, size=1, options=(), tls=None, address=None):
        if not ETCD:
            pytest.skip("etcd is not installed (scripts/deps test does it)")
        self.options = [*options]
        self.address = address or loopback_address()
        self.context = None
        self.scheme = "http"
        if tls:
            self.scheme = "https"
            self.options += ["--cert-file", tls / "server.pem", "--key-file", tls / "server.key"]
            self.context = ssl.create_default_context(cafile=tls / "ca.pem")
            self.context.load_cert_chain(tls / "client.pem", tls / "client.key")
        self.ports = [Port(self.address) for _ in range(2 * size)]
        urls = [f"{scheme}://{port.endpoint}" for port, scheme in zip(self.ports, itertools.cycle([self.scheme, "http"]))]
        place = directory / f"etcd{self.ports[0].number}"
        place.mkdir()
        self.members = [Member(self, f"m{i}", urls[2 * i], urls[2 * i + 1], place) for i in range(size)]
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        for member in self.members:
            member.start()
        ended = lambda: [m for m in self.members if m.process.poll() is not None]
        wait_for(lambda: ended() or all(m.answers() for m in self.members), "etcd")
        assert not ended(), "etcd did not start:\n" + ended()[0].log.read_text(errors="replace")

    @property
    def endpoints(self):
        return ",".join(m.endpoint for m in self.members)

    def close(self):
        for member in self.members:
            if member.process and member.process.poll() is None:
                member.kill()
        for port in self.ports:
            port.close()


def make_certificates(directory, address):
    """An authority, a certificate of the server at that address, one of a client, and an authority that
    has signed none of them."""
    directory.mkdir()

    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], cwd=directory, check=True, capture_output=True,
                       timeout=DEADLINE)

    def certificate(name, *extensions):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (directory / f"{name}.ext").write_text("\n".join(extensions))
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")

    for ca in ("ca", "other-ca"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                "2", "-subj", f"/CN={ca}", "-keyout", f"{ca}.key", "-out", f"{ca}.pem")
    certificate("server", f"subjectAltName=IP:{address}", "extendedKeyUsage=serverAuth,clientAuth")
    certificate("client", "extendedKeyUsage=clientAuth")
    return directory
