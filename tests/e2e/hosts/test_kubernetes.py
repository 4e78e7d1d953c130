"""muster on Kubernetes: manifests that are valid, and real pods that find each other (pods.py)."""

import http.server
import json
import pathlib
import random
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

import pytest

import ddp
from etcd_cluster import make_certificates
from tree import BUILD, MUSTER, ROOT, clean_env, package_env
from waits import DEADLINE, wait_for

yaml = pytest.importorskip("yaml")
from pods import expanded  # which needs it
NAME_SERVER = str(pathlib.Path(__file__).parents[1] / "lib" / "name_server.py")
SAY_RANK = ("bash", "-c", "echo rank $RANK of $WORLD_SIZE")


def k8s(*options, command=("train.py",)):
    done = subprocess.run([MUSTER, "k8s", "--image=registry/train:1", *options, "--", *command], capture_output=True, text=True,
                          env=clean_env())
    assert done.returncode == 0, done.stderr
    return done.stdout


VARIANTS = [((), ("train.py",)),
            (("--name=llm", "--namespace=ml", "--gpus=8", "--cpu=16", "--memory=64Gi", "--shm-size=8G"),
             ("--nnodes=2:16", "--nproc-per-node=8", "--max-restarts=3", "--shutdown-timeout=90", "-m", "pkg.mod", "--x", "a: [b", "é\n"))]


# ---- manifests ----

@pytest.mark.parametrize("options, command", VARIANTS)
@pytest.mark.parametrize("version", ["1.31", "1.33", "1.37"])
def test_a_job_is_valid(options, command, version):
    validate = pytest.importorskip("kubernetes_validate")
    documents = list(yaml.safe_load_all(k8s(*options, command=command)))
    assert [document["kind"] for document in documents] == ["Service", "Job"]
    for document in documents:
        validate.validate(document, version, strict=True)
    job = documents[1]["spec"]["template"]["spec"]["containers"][0]
    assert job["command"][-len(command):] == list(command)


ODD = ("", "\x01", "\t", "\n", "\r", "\x1b", "\x7f", "\x80", "\x85", "\x9b", "\xa0", "\u061c", "\u2028", "\u2029", "\u202e", "\ufeff", "\ufffe", "\uffff",
       "\U0001f600", "\U0001fffe", "\U0010ffff", "é", "$", "$$", "$(HOME)", "$$(HOME)", "(", ")", "\\", "'", '"', "#", ":", "- ", "&a", "*a", "!!int", "|", ">",
       "%", "@", "`", "{", "}", "[", "]", ",", "?", "~", "null", "on", "No", "0x1f", "1e3", "1_000", "0o7", "12:30", "2026-11-19", "=", "<<", " ", "x")


@pytest.mark.parametrize("kind", ["job", "jobset", "trainjob"])
def test_two_parsers_give_back_every_byte(kind):
    """One is YAML 1.1, one 1.2."""
    ruamel = pytest.importorskip("ruamel.yaml")
    draw = random.Random(7)
    words = list(ODD) + ["".join(draw.choices(ODD, k=draw.randrange(1, 9))) for _ in range(400)]
    text = k8s(f"--kind={kind}", "--name=on", "--namespace=null", "--runtime=no", "--cpu=1e3", "--memory=0x1f", command=("prog", *words))
    for parsed in list(yaml.safe_load_all(text)), list(ruamel.YAML(typ="safe", pure=True).load_all(text)):
        job = parsed[-1]
        (command,) = [node for node in walk(job) if isinstance(node, list) and node[:2] == ["muster", "run"]]
        assert [expanded(word) for word in command[-len(words):]] == words
        assert (job["metadata"]["name"], job["metadata"]["namespace"]) == ("on", "null")
        assert {"cpu": "1e3", "memory": "0x1f"} in list(walk(job))
        assert all(isinstance(key, str) for node in walk(job) if isinstance(node, dict) for key in node)
        assert {"name": "on-token", "key": "token"} in list(walk(job))


def walk(node):
    yield node
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(part)


def test_what_no_manifest_can_say_is_refused():
    for words in (["--image=i", "--", b"a\xff"], [b"--image=\x9b", "--", "x"], ["--image=i", b"--cpu=\xc3", "--", "x"]):
        done = subprocess.run([MUSTER, "k8s", *words], capture_output=True, env=clean_env())
        assert done.returncode == 2 and b"is not UTF-8, and cannot be written into a manifest" in done.stderr, done.stderr


def missing(wanted, known, path=""):
    """Fields that a model did not know and so left out; it may add defaults."""
    if isinstance(wanted, dict):
        return [f for key in wanted for f in (missing(wanted[key], known[key], f"{path}.{key}") if key in known else [f"{path}.{key}"])]
    if isinstance(wanted, list):
        return [f for i, part in enumerate(wanted) for f in missing(part, known[i], f"{path}[{i}]")]
    return [] if wanted == known else [f"{path}: {wanted!r} became {known!r}"]


@pytest.mark.parametrize("options, command", VARIANTS)
@pytest.mark.parametrize("kind, model", [("jobset", "JobsetV1alpha2JobSet"), ("trainjob", "TrainerV1alpha1TrainJob")])
def test_a_jobset_and_a_trainjob_are_valid(options, command, kind, model):
    models = pytest.importorskip("kubeflow_trainer_api.models")
    document = yaml.safe_load(k8s(*options, f"--kind={kind}", command=command))
    parsed = getattr(models, model).from_dict(document)
    assert missing(document, json.loads(parsed.to_json())) == []
    if kind == "jobset":
        validate = pytest.importorskip("kubernetes_validate")
        (part,) = document["spec"]["replicatedJobs"]
        validate.validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "part"}, **part["template"]}, "1.37", strict=True)


def test_the_grace_of_the_pods_fits_the_time_that_muster_takes(muster):
    """Workers that leave together have all of the notice before the time-out of the stop begins."""
    for options, takes in [((), 60 + 30), (("--shutdown-timeout=90",), 60 + 90), (("--notice=5m",), 300 + 30), (("--notice=0", "--shutdown-timeout=2"), 2)]:
        (_, job) = yaml.safe_load_all(k8s(command=(*options, "train.py")))
        assert job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == takes + 15, options


def test_wrong_options_of_k8s_are_named(muster):
    for options, says in [(["--image=x", "--name=A", "--", "a.py"], "--name: 'A' is not a name for Kubernetes"),
                          (["--", "a.py"], "--image: which image"),
                          (["--image=x"], "no command given"),
                          (["--image=x", "--", "--nnodes=x", "a.py"], "--nnodes: 'x'"),
                          (["--image=x", "--", "--hosts=a", "a.py"], "Kubernetes chooses the hosts"),
                          (["--image=x", "--", "--nonsense", "a.py"], "nonsense")]:
        done = muster("k8s", *options)
        assert done.returncode == 2 and says in done.stderr, done.stderr


# ---- agents with the variables of Kubernetes ----

def test_a_waiting_agent_is_alive(start, port):
    agent = start("run", "--nnodes=2", f"--http=127.0.0.1:{port.number}", "true",
                  env=clean_env(JOB_COMPLETION_INDEX=1, HOSTNAME="job-1", LOGLEVEL="INFO"))

    def code(path):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port.number}{path}", timeout=5).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None
    wait_for(lambda: code("/livez") == 200, "/livez to answer")
    assert code("/readyz") == 503  # it waits for the others
    agent.terminate()
    agent.wait()


def test_a_range_with_a_master_is_elastic_at_a_fixed_place(start, port, tmp_path):
    """As Kubeflow's variables for PET_NNODES=1:2."""
    shared = dict(PET_NNODES="1:2", PET_MASTER_ADDR="127.0.0.1", PET_MASTER_PORT=port.number,
                  PET_RDZV_CONF="last_call_timeout=1,scale_up_delay=0", PET_SHUTDOWN_TIMEOUT="1")
    worker = ("bash", "-c", f"echo $RANK of $WORLD_SIZE >> {tmp_path}/seen; [ $WORLD_SIZE = 2 ] || exec sleep 1000")

    def seen(text):
        path = tmp_path / "seen"
        return path.exists() and text in path.read_text()
    first = start("run", *worker, env=clean_env(PET_NODE_RANK=0, **shared))
    wait_for(lambda: seen("0 of 1"), "a round of one")
    second = start("run", *worker, env=clean_env(PET_NODE_RANK=1, **shared))
    wait_for(lambda: seen("1 of 2") and seen("0 of 2"), "a round of two")
    assert (first.wait(), second.wait()) == (0, 0)


def test_an_index_without_a_size_is_warned_of(muster):
    done = muster("run", "true", env=clean_env(JOB_COMPLETION_INDEX=1, HOSTNAME="job-1"))
    assert done.returncode == 0 and "this is pod 1 of an Indexed Job, and a job of its own" in done.stderr


# ---- Kubeflow is told of the progress ----

class Trainer(http.server.ThreadingHTTPServer):
    """Kubeflow's server for reports of progress, as its SDK speaks to it."""

    def __init__(self, directory):
        certificates = make_certificates(directory / "tls", "127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
        self.reports, self.tokens, self.answer = [], [], 200
        trainer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                trainer.tokens.append(self.headers["Authorization"])
                trainer.reports.append(json.loads(body))
                self.send_response(trainer.answer)
                self.end_headers()

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.token = directory / "token"
        self.token.write_text("first\n")
        self.env = dict(KUBEFLOW_TRAINER_SERVER_URL=f"https://127.0.0.1:{self.server_port}/apis/trainjobs/x/status",
                        KUBEFLOW_TRAINER_SERVER_CA_CERT=certificates / "ca.pem", KUBEFLOW_TRAINER_SERVER_TOKEN=self.token)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def trainer(tmp_path):
    server = Trainer(tmp_path)
    yield server
    server.shutdown()
    server.server_close()


STEPS = ("--progress-regex=step ([0-9]+)/([0-9]+)", "--no-python", "bash", "-c",
         "echo step 45/100; until [ -e go ]; do sleep 0.1; done; echo step 100/100")


def test_kubeflow_is_told_of_the_progress(start, trainer, tmp_path):
    models = pytest.importorskip("kubeflow_trainer_api.models")
    agent = start("run", *STEPS, env=clean_env(**trainer.env), cwd=tmp_path)
    wait_for(lambda: trainer.reports, "a report")
    trainer.token.write_text("second\n")  # Kubernetes replaces them
    (tmp_path / "go").touch()
    assert agent.wait(DEADLINE) == 0, agent.stderr.read()
    first, last = trainer.reports[0]["trainerStatus"], trainer.reports[-1]["trainerStatus"]
    assert first["progressPercentage"] == 45 and {"name": "step", "value": "45"} in first["metrics"]
    assert last["progressPercentage"] == 100 and last["estimatedRemainingSeconds"] == 0
    assert trainer.tokens[0] == "Bearer first" and trainer.tokens[-1] == "Bearer second"
    for report in trainer.reports:
        parsed = models.TrainerV1alpha1UpdateTrainJobStatusRequest.from_dict(report)
        known = parsed.to_dict()["trainerStatus"]
        known["lastUpdatedTime"] = report["trainerStatus"]["lastUpdatedTime"]  # a date there
        assert missing(report["trainerStatus"], known) == []


LEAVES = """
import itertools, time, muster
for step in itertools.count():
    if muster.stop_after(step):  # asked before any step is told
        break
    time.sleep(0.01)
    muster.step(step + 1, 10**6)
"""


def test_kubeflow_is_not_told_that_a_job_is_complete_when_it_left(start, trainer):
    """It will be started again and go on."""
    agent = start("run", "--no-python", sys.executable, "-c", LEAVES, env=clean_env(**package_env(), **trainer.env))
    wait_for(lambda: trainer.reports, "a report")
    agent.terminate()
    assert agent.wait(DEADLINE) == 94, agent.stderr.read()
    assert [report["trainerStatus"]["progressPercentage"] for report in trainer.reports if report["trainerStatus"]["progressPercentage"] > 50] == []


def test_a_trainer_that_refuses_does_not_concern_the_job(start, trainer, tmp_path):
    trainer.answer = 403
    (tmp_path / "go").touch()
    agent = start("run", *STEPS, env=clean_env(**trainer.env), cwd=tmp_path)
    _, told = agent.communicate(timeout=DEADLINE)
    assert agent.returncode == 0 and len(trainer.reports) == 1, told
    assert "Kubeflow's Trainer is not told of the progress: https://127.0.0.1" in told and "answers 403" in told


# ---- names ----

class Names:
    """Two hosts that are pods of the Job "train", and a third with the name server of their cluster."""

    DOMAIN = "net.default.svc.cluster.local"

    def __init__(self, lab):
        self.lab = lab
        self.pods, self.server = lab.hosts[:2], lab.hosts[2]
        self.zone, self.log = lab.directory / "zone", lab.directory / "questions"
        self.zone.write_text("")
        resolv = lab.directory / "resolv.conf"
        resolv.write_text(f"nameserver {self.server.ipv4}\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n")
        for index, host in enumerate(self.pods):
            hosts = lab.directory / f"hosts-{index}"
            hosts.write_text(f"127.0.0.1 localhost\n{host.ipv4}\ttrain-{index}.{self.DOMAIN}\ttrain-{index}\n")
            host.call("mount", "--bind", hosts, "/etc/hosts")
            host.call("mount", "--bind", resolv, "/etc/resolv.conf")
        self.server.start(sys.executable, NAME_SERVER, self.server.ipv4, self.zone, self.log)
        wait_for(lambda: self.log.exists() and "ready" in self.log.read_text(), "the name server")

    def start(self, index, *command):
        return self.pods[index].start(MUSTER, "run", "--nnodes=2", "--shutdown-timeout=1", *command, env=clean_env(
            JOB_COMPLETION_INDEX=index, HOSTNAME=f"train-{index}", KUBERNETES_SERVICE_HOST="10.0.0.1", MUSTER_TOKEN="secret",
            LOGLEVEL="DEBUG"))

    def questions(self):
        return [line.split() for line in self.log.read_text().splitlines()[1:]]


def test_the_first_pods_name_is_asked_for_late_and_in_full(make_lab):
    """Asked for at once, or along the search list, it would be missing for 30 s."""
    names = Names(make_lab(3))
    late = names.start(1, *SAY_RANK)
    late.says("looking for a coordinator in 2 s: its name may not exist yet")
    names.zone.write_text(f"train-0.{names.DOMAIN} {names.pods[0].ipv4} {names.pods[0].ipv4}\n")  # the first pod cannot see itself
    first = names.start(0, *SAY_RANK)
    assert (first.wait(), late.wait()) == (0, 0), first.text() + late.text()
    assert "rank 1 of 2" in late.text() and "may not exist yet" not in first.text()
    asked = [question for question in names.questions() if question[0] == names.pods[1].ipv4]
    assert {(name, result) for _, name, result in asked} == {(f"train-0.{names.DOMAIN}", "found")}, asked


# ---- real pods ----

@pytest.fixture(scope="module")
def cluster():
    from pods import Cluster
    with tempfile.TemporaryDirectory(prefix="m") as directory:  # short: podman allows 50 characters
        made = Cluster(pathlib.Path(directory))
        yield made
        made.close()


pods = pytest.mark.xdist_group("pods")
SAY = ("bash", "-c", "echo rank $RANK of $WORLD_SIZE on $HOSTNAME as $(id -u)")
STAY = ("bash", "-c", "trap 'echo stopping; sleep 1; exit 0' TERM; echo rank $RANK of $WORLD_SIZE; sleep 1000 & wait")


def manifest(name, *command):
    return k8s(f"--name={name}", command=("--no-python", "--log-dir=/dev/null", *command))


@pods
def test_a_pod_that_starts_early_waits_for_the_first(cluster):
    job = cluster.job(manifest("early", "--nnodes=2", *SAY))
    job.start(1)
    wait_for(lambda: job.inspect(1, "{{.State.Status}}") == "running", "pod 1")
    job.start(0)
    assert (job.code(0), job.code(1)) == (0, 0), job.text(0) + job.text(1)
    assert "rank 1 of 2 on early-1 as 0" in job.text(1) and "rank 0 of 2 on early-0" in job.text(0)


@pods
def test_a_pod_that_comes_back_with_another_address_is_found(cluster):
    job = cluster.job(manifest("again", "--nnodes=2", *STAY))
    for index in (0, 1):
        job.start(index)
    job.says(1, "rank 1 of 2")
    before = job.address(0)
    job.delete(0)
    cluster.call("run", "-d", "--rm", "--name=squatter", f"--network={cluster.network}", "localhost/muster:test", "/bin/sleep", "1000")
    job.start(0)
    job.says(0, "rank 0 of 2")
    wait_for(lambda: job.text(1).count("rank 1 of 2") == 2, "the second round")
    assert job.address(0) != before
    cluster.run("rm", "-f", "-t0", "squatter")


@pods
def test_sigterm_gives_the_workers_their_grace(cluster):
    job = cluster.job(manifest("term", "--nnodes=1", *STAY))
    job.start(0)
    job.says(0, "rank 0 of 1")
    job.stop(0)
    assert job.code(0) == 143
    assert "stopping" in job.text(0)
    assert job.verdict(143) == "Count"


@pods
def test_sigterm_to_one_pod_has_all_leave_and_the_next_pods_go_on(cluster, tmp_path):
    """A training of two pods, with this machine's Python and PyTorch."""
    pytest.importorskip("torch")
    hold, step = tmp_path / "hold", 30
    train = (sys.executable, ddp.SCRIPT, f"--checkpoint={tmp_path}/c.pt", f"--hold={hold}", f"--hold-at={step}")
    job = cluster.job(manifest("leave", "--nnodes=2", "--notice=10m", *train), shares=["/usr", sys.prefix, sys.base_prefix, ROOT, BUILD, tmp_path],
                      env=dict(package_env(), OMP_NUM_THREADS=1, LOGLEVEL="INFO"))
    for index in (0, 1):
        job.start(index)
    for index in (0, 1):
        job.says(index, "holds", ddp.DEADLINE)
    stopping = threading.Thread(target=job.stop, args=(1,))  # until the pod has ended
    stopping.start()
    for index in (0, 1):
        job.says(index, f"the workers leave after step {step}")
    hold.touch()
    assert (job.code(0), job.code(1)) == (94, 94), job.text(0) + job.text(1)
    stopping.join()
    assert job.verdict(94) == "Ignore"
    for index in (0, 1):
        assert f"rank {index} leaves after step {step}" in job.text(index)
        job.remove(index)
    for index in (0, 1):
        job.start(index)
    assert (job.code(0, ddp.DEADLINE), job.code(1, ddp.DEADLINE)) == (0, 0), job.text(0) + job.text(1)
    assert f"begins at step {step + 1}\n" in job.text(1)
    assert re.search(r"final loss (\S+) after", job.text(0))[1] == ddp.train(MUSTER, tmp_path / "undisturbed")[0]


@pods
@pytest.mark.parametrize("code, verdict", [(7, "FailJob"), (2, "FailJob"), (91, "Ignore"), (127, "FailJob")])
def test_exit_codes_of_a_pod_decide_what_the_job_controller_does(cluster, code, verdict):
    command = ("/bin/nothing",) if code == 127 else ("bash", "-c", f"exit {code}")
    job = cluster.job(manifest(f"code{code}", "--nnodes=1", *command))
    job.start(0)
    assert job.code(0) == code, job.text(0)
    assert job.verdict(code) == verdict


@pods
def test_a_worker_that_was_killed_is_told_from_a_pod_that_was(cluster):
    job = cluster.job(manifest("killed", "--nnodes=1", "bash", "-c", "kill -9 $$"))
    job.start(0)
    assert job.code(0) == 1, job.text(0)
    assert (job.verdict(1), job.verdict(137)) == ("FailJob", "Count")


@pods
def test_a_read_only_root_and_any_user_will_do(cluster):
    job = cluster.job(manifest("bare", "--nnodes=1", *SAY),
                      securityContext={"readOnlyRootFilesystem": True, "runAsUser": 12345, "allowPrivilegeEscalation": False})
    job.start(0)
    assert job.code(0) == 0, job.text(0)
    assert "rank 0 of 1 on bare-0 as 12345" in job.text(0)


@pods
def test_fewer_cpus_than_workers_are_warned_of(cluster):
    job = cluster.job(k8s("--name=cpus", "--cpu=1", command=("--no-python", "--log-dir=/dev/null", "--nproc-per-node=2", *SAY)))
    job.start(0)
    assert job.code(0) == 0, job.text(0)
    assert "2 workers share 1 CPU, which is all that kubernetes allows here: raise the CPU limit" in job.text(0), job.text(0)


@pods
def test_a_small_dev_shm_is_warned_of(cluster):
    job = cluster.job(manifest("shm", "--nnodes=1", *SAY))
    job.start(0)
    assert job.code(0) == 0
    assert "/dev/shm has" in job.text(0) and "emptyDir" in job.text(0)
