"""Python environments with frameworks in them, each with the switch at hand, and what the tests train in them."""

import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from ports import Port
from python_site import Site
from tree import BUILD, MUSTER, ROOT, clean_env
from waits import DEADLINE

TORCH = next(line for line in (ROOT / "tests/requirements.txt").read_text().splitlines() if line.startswith("torch=="))
UNREACHABLE = "connection broken by"  # pip, before each new attempt
ON, OFF = {"MUSTER_TORCHRUN": "1"}, {"MUSTER_TORCHRUN": "0"}
PATIENCE = 10 * DEADLINE  # some of them take a minute to be imported where much else runs

# What a training script says of itself, and how it fails: `saw.step(i)` in the loop, `saw.end(version)` at its end. It ends there: a thread
# of PyTorch may outlive the interpreter and abort it, whoever has launched it.
SAW = """
import importlib.metadata, json, os, signal, sys
rank, restart = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
def step(i):
    if i == 1 and rank == 1 and restart == 0 and "KILL" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
def end(package, total, leave=os._exit):
    line = [rank, int(os.environ["WORLD_SIZE"]), restart, "muster" if "MUSTER_WATCHDOG" in os.environ else "torch",
            f"{package} {importlib.metadata.version(package)}", round(float(total), 4)]
    os.write(1, (json.dumps(line) + "\\n").encode())
    sys.stderr.flush()
    leave(0)
"""

ACCELERATE = """
import accelerate, saw, torch
a = accelerate.Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
model, optimizer = a.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
for i in range(3):
    saw.step(i)
    a.backward(model(torch.ones(2, 4) * (saw.rank + 1)).square().mean())
    optimizer.step(); optimizer.zero_grad()
saw.end("accelerate", a.reduce(torch.tensor(float(saw.rank + 1)), "sum"))
"""

FABRIC = """
import lightning, saw, torch
f = lightning.Fabric()
model, optimizer = f.setup(m := torch.nn.Linear(4, 1), torch.optim.SGD(m.parameters(), lr=0.1))
for i in range(3):
    saw.step(i)
    f.backward(model(torch.ones(2, 4) * (saw.rank + 1)).square().mean())
    optimizer.step(); optimizer.zero_grad()
saw.end("lightning", f.all_reduce(torch.tensor(float(saw.rank + 1)), reduce_op="sum"))
"""

LIGHTNING = """
import lightning, saw, torch, warnings
warnings.simplefilter("ignore")
class Model(lightning.LightningModule):
    def __init__(self): super().__init__(); self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, i): saw.step(i); return self.layer(batch).square().mean()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
t = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_steps=3, logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False)
t.fit(Model(), torch.utils.data.DataLoader(torch.ones(16, 4), batch_size=2))
saw.end("lightning", t.strategy.reduce(torch.tensor(float(saw.rank + 1)), reduce_op="sum"))
"""

TRANSFORMERS = """
import saw, torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
class Saw(TrainerCallback):
    def on_step_begin(self, args, state, control, **more): saw.step(state.global_step)
model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0))
data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(16)]
args = TrainingArguments("out", max_steps=3, per_device_train_batch_size=2, use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True)
Trainer(model=model, args=args, train_dataset=data, callbacks=[Saw()]).train()
total = torch.tensor(float(saw.rank + 1)); torch.distributed.all_reduce(total)
saw.end("transformers", total)
"""

DEEPSPEED = """
import deepspeed, saw, torch
deepspeed.init_distributed("gloo")
model = torch.nn.Linear(4, 1)
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
    config={"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}})
for i in range(3):
    saw.step(i)
    engine.backward(engine(torch.ones(2, 4)).square().mean()); engine.step()
total = torch.tensor(float(saw.rank + 1)); torch.distributed.all_reduce(total)
saw.end("deepspeed", total)
"""

# Started by what starts any script. The package whose version counts is in WITNESS; without torch, so that it takes no time.
PLAIN = """
import os, saw
for i in range(3): saw.step(i)
saw.end(os.environ["WITNESS"], int(os.environ["WORLD_SIZE"]) * (int(os.environ["WORLD_SIZE"]) + 1) / 2)
"""
CODE = "import sys; sys.exit(7)"

# As a cell of a notebook: standard input is as little a script.
NOTEBOOK = """
import os
from accelerate import notebook_launcher
word = "accelerate"
def cell(nothing=None):
    import saw
    for i in range(3): saw.step(i)
    saw.end(word, int(os.environ["WORLD_SIZE"]) * (int(os.environ["WORLD_SIZE"]) + 1) / 2, leave=lambda code: None)
notebook_launcher(cell, (), num_processes=2, max_restarts=1, **NODES)
"""

SCRIPTS = {"saw": SAW, "train_accelerate": ACCELERATE, "train_fabric": FABRIC, "train_lightning": LIGHTNING, "train_transformers": TRANSFORMERS,
           "train_deepspeed": DEEPSPEED, "train_plain": PLAIN, "train_code": CODE}

# Every way to start torch's launcher that is known, by the program that does it so: the words before the script, for a job on one host or for
# node R of two.
MASTER, PORT = "10.77.0.1", 29500  # of netns.py, where every host has its ports to itself


HELD = []  # ports of this machine that no other test can be given, until this one's process ends


def own_port():
    HELD.append(Port())
    return HELD[-1].number


def started_by(name, nodes=1, node=0):
    """The words, and changes to the environment."""
    many = nodes > 1
    c10d = ["--rdzv_backend=c10d", f"--rdzv_endpoint={MASTER}:{PORT}", "--rdzv_id=job"]
    static = [f"--nnodes={nodes}", f"--node_rank={node}", f"--master_addr={MASTER}", f"--master_port={PORT}"] if many else []
    restarts = {"PET_MAX_RESTARTS": 1}
    if name == "accelerate":
        place = [f"--machine_rank={node}", f"--main_process_ip={MASTER}", f"--main_process_port={PORT}"] if many else ["--main_process_port=0"]
        return ["accelerate", "launch", "--multi_gpu", f"--num_processes={2 * nodes}", f"--num_machines={nodes}", "--max_restarts=1",
                "--mixed_precision=no", "--dynamo_backend=no", *place], {}
    if name == "fabric":
        place = [f"--num-nodes={nodes}", f"--node-rank={node}", f"--main-address={MASTER}", f"--main-port={PORT}"] if many else [f"--main-port={own_port()}"]
        return ["fabric", "run", "--accelerator=cpu", "--devices=2", *place], restarts
    if name == "torchtune":
        return ["tune", "run", "--nproc_per_node=2", "--max-restarts=1", *([f"--nnodes={nodes}", *c10d] if many else [])], {}
    if name == "ms-swift":  # its command line, with our script for its training
        place = {"NNODES": nodes, "NODE_RANK": node, "MASTER_ADDR": MASTER, "MASTER_PORT": PORT} if many else {}
        return ["python", "-c", "import sys; from swift.cli.main import cli_main; "
                "sys.argv[1:] = ['sft']; cli_main({'sft': 'train_plain'})"], {**restarts, **place, "NPROC_PER_NODE": 2}
    if name == "torchx":
        if not many:
            return ["torchx", "run", "--scheduler=local_cwd", "dist.ddp", "-j", "1x2", "--script"], restarts
        return ["bash", "-c", 'torchrun --rdzv_backend c10d --rdzv_endpoint ${TORCHX_RANK0_HOST:=localhost}:29500 --rdzv_id app --nnodes 2 '
                '--nproc_per_node 2 --tee 3 --role "" "$0"'], {**restarts, "TORCHX_RANK0_HOST": MASTER}
    if name == "llama-factory":
        return ["torchrun", *static, "--nproc_per_node=2", "--max-restarts=1"], {}
    if name == "torchtitan":
        place = [f"--nnodes={nodes}", *c10d] if many else ["--rdzv_backend", "c10d", "--rdzv_endpoint=localhost:0"]
        return ["torchrun", "--nproc_per_node=2", *place, "--local-ranks-filter", "0,1", "--role", "rank", "--tee", "3"], restarts
    if name == "prime-rl":
        place = [f"--nnodes={nodes}", *c10d] if many else ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
        return ["torchrun", *place, "--role=trainer", "--log-dir=log", "--local-ranks-filter=0,1", "--tee=3",
                "--nproc-per-node=2"], restarts
    if name == "ultralytics":
        return ["python", "-m", "torch.distributed.run", "--nproc_per_node", "2", *static], restarts
    assert name == "notebook"
    nodes_of = {"num_nodes": nodes, "node_rank": node, "master_addr": MASTER, "use_port": PORT} if many else {"use_port": "0"}
    return ["python", "-"], {"CELL": NOTEBOOK.replace("NODES", repr(nodes_of))}


COMMON = ("accelerate", "lightning", "transformers", "torchx")  # take a minute to install
TRAINED = {  # what starts it, the script, and the package whose version counts
    "accelerate": ("accelerate", "train_accelerate.py", "accelerate"),
    "accelerate in a notebook": ("notebook", None, "accelerate"),
    "fabric": ("fabric", "train_fabric.py", "lightning"),
    "lightning": ("llama-factory", "train_lightning.py", "lightning"),
    "transformers": ("ultralytics", "train_transformers.py", "transformers"),
    "torchx": ("torchx", "train_plain.py", "torchx"),
}
ALL = ("torchtune", "torchao==0.15.0", "ms-swift", "deepspeed", "torchtitan", "ray[train]")  # torchtune needs an older torchao than it says
TRAINED_MORE = {
    "torchtune": ("torchtune", "train_plain.py", "torchtune"),
    "ms-swift": ("ms-swift", "train_plain.py", "ms_swift"),
    "deepspeed": ("llama-factory", "train_deepspeed.py", "deepspeed"),
    "torchtitan": ("torchtitan", "train_plain.py", "torchtitan"),
    "prime-rl": ("prime-rl", "train_plain.py", "torch"),
}


class Environment(Site):
    """The environment build/frameworks/NAME with these packages, made by whoever comes first. What cannot be fetched skips the test."""

    def __init__(self, name, *requirements, torch=TORCH):
        directory = BUILD / "frameworks" / name
        directory.parent.mkdir(parents=True, exist_ok=True)
        mark, wanted = directory / ".installed", "\n".join([torch, *requirements, (ROOT / "python/muster.pth").read_text()])
        with locked(directory.with_suffix(".lock")):
            made = mark.exists() and mark.read_text() == wanted
            super().__init__(directory, made)
            if not made:
                self.install(torch, *requirements)
                mark.write_text(wanted)

    def install(self, *words):
        done = subprocess.run([sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--retries=1",
                               "--disable-pip-version-check", *words], text=True, capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return
        broken = [line for line in done.stderr.splitlines() if UNREACHABLE in line]
        if broken:
            pytest.skip(f"{' '.join(words)} cannot be fetched: {broken[0].partition(UNREACHABLE)[2].strip()[:200]}")
        raise AssertionError(done.stderr[-3000:])

    def version(self, package):
        source = f"import importlib.metadata as m; print(m.version({package!r}))"
        return subprocess.run([self.python, "-c", source], env=clean_env(), check=True, capture_output=True, text=True).stdout.strip()

    def prepare(self, directory):
        """Puts the programs above there."""
        for name, source in SCRIPTS.items():
            (directory / f"{name}.py").write_text(textwrap.dedent(source))

    def launch(self, directory, how, script, switch=ON, **extra):
        """Has `how` start the script, in the directory; its result."""
        self.prepare(directory)
        words, changes = self.command(how, script)
        return subprocess.run(words, input=changes.pop("CELL", ""), text=True, cwd=directory, capture_output=True, timeout=PATIENCE,
                              env=self.env(directory, **{**switch, **changes, **extra}))

    def call(self, directory, program, *words, **extra):
        """Runs a program of the environment, with the switch on."""
        return subprocess.run([self.python.parent / program, *words], env=self.env(directory, **{**ON, **extra}), cwd=directory, text=True,
                              capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)

    def command(self, how, script, nodes=1, node=0):
        """The words, the first with its path, and changes to the environment."""
        (program, *words), changes = started_by(how, nodes, node)
        program = program if program == "bash" else self.python.parent / program
        if how == "torchtune":  # a recipe of one's own is a module, and must have a configuration
            words += [script.removesuffix(".py"), "--config", "none"]
        elif script:
            words.append(script)
        return [program, *words], changes

    def env(self, directory, **extra):
        path = f"{self.python.parent}:{os.environ['PATH']}"
        return {**clean_env(MUSTER_PROGRAM=MUSTER, MUSTER_LIBRARY=BUILD / "libmuster.so", HF_HOME=directory, HF_HUB_OFFLINE=1, OMP_NUM_THREADS=1,
                            HOME=directory, **{"WITNESS": "torch", **extra}), "PATH": path, "PYTHONPATH": str(directory)}


@contextlib.contextmanager
def locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def said(done):
    """What the workers said, by rank, without what a launcher put before their lines; of a program that has ended, or of what it wrote."""
    text = done if isinstance(done, str) else done.stdout + done.stderr
    found = re.findall(r'\[\d+, \d+, \d+, "(?:muster|torch)", "[^"]*", [\d.]+\]', text)
    return sorted({tuple(json.loads(line)) for line in found})


def by(launcher, package, world=2, restart=1):
    """What they say at the end of a job whose rank 1 was killed once."""
    total = world * (world + 1) / 2
    return [(rank, world, restart, launcher, package, total) for rank in range(world)]
