"""All that starts torch's launcher: with the switch it is muster, on one host and on two, and without it nothing has changed."""

import textwrap

import pytest

from frameworks import ALL, COMMON, OFF, ON, PATIENCE, TRAINED, TRAINED_MORE, Environment, by, said

SWITCHES = {"muster": ON, "torch": OFF}
LAUNCHERS = ["accelerate", "notebook", "fabric", "torchtune", "ms-swift", "torchx", "llama-factory", "torchtitan", "prime-rl", "ultralytics"]
WITNESSES = {"notebook": "accelerate", "fabric": "lightning", "ms-swift": "ms_swift", "llama-factory": "torch", "prime-rl": "torch",
             "ultralytics": "torch"}


@pytest.fixture(scope="module")
def site():
    return Environment("all", *COMMON, *ALL)


@pytest.mark.parametrize("name", TRAINED_MORE)
def test_training_goes_on_after_a_kill(site, tmp_path, name):
    how, script, package = TRAINED_MORE[name]
    done = site.launch(tmp_path, how, script, KILL=1, WITNESS=package)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line for line in said(done) if line[2] == 1] == by("muster", f"{package} {site.version(package)}"), done.stdout


@pytest.mark.parametrize("name", {**TRAINED, **TRAINED_MORE})
def test_without_the_switch_torchs_launcher_runs(site, tmp_path, name):
    """Without a kill: what gloo left in the store of a first attempt often ends torch's second one."""
    how, script, package = {**TRAINED, **TRAINED_MORE}[name]
    done = site.launch(tmp_path, how, script, OFF, WITNESS=package)
    assert done.returncode == 0, done.stderr[-3000:]
    assert said(done) == by("torch", f"{package} {site.version(package)}", restart=0), done.stdout


@pytest.mark.parametrize("launcher", SWITCHES)
@pytest.mark.parametrize("how", LAUNCHERS)
def test_on_two_hosts(site, lab, tmp_path, how, launcher):
    """Each program that starts torch's launcher, in its own words."""
    witness = WITNESSES.get(how, how)
    site.prepare(tmp_path)
    started = []
    for node, host in enumerate(lab.hosts):
        words, changes = site.command(how, None if how == "notebook" else "train_plain.py", 2, node)
        cell = tmp_path / f"cell{node}"
        cell.write_text(changes.pop("CELL", ""))
        env = site.env(tmp_path, **{**SWITCHES[launcher], **changes, "WITNESS": witness, "GLOO_SOCKET_IFNAME": "eth0"})
        started.append(host.start(*words, env=env, cwd=tmp_path, stdin=cell.open()))
    ends = [process.wait(PATIENCE) for process in started]
    text = "".join(process.log.read_text() for process in started)
    assert ends == [0, 0], text[-4000:]
    assert said(text) == by(launcher, f"{witness} {site.version(witness)}", world=4, restart=0), text[-4000:]


def test_deepspeeds_own_launcher_is_left_alone(site, tmp_path):
    site.prepare(tmp_path)
    done = site.call(tmp_path, "deepspeed", "--num_gpus=2", "train_deepspeed.py", TORCHELASTIC_RESTART_COUNT=0)
    assert done.returncode == 0, done.stderr[-3000:]
    assert said(done) == by("torch", f"deepspeed {site.version('deepspeed')}", restart=0)


RAY = """
import os, ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
def train(config):
    import torch
    total = torch.tensor(float(os.environ["RANK"])) + 1
    torch.distributed.all_reduce(total)
    with open(os.path.join(config["out"], "rank" + os.environ["RANK"]), "w") as file:
        file.write(os.environ["WORLD_SIZE"] + " " + str(total.item()))
ray.init(num_cpus=3, include_dashboard=False)
TorchTrainer(train, train_loop_config={"out": os.getcwd()}, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(storage_path=os.getcwd())).fit()
"""


def test_rays_torch_trainer_is_left_alone(site, tmp_path):
    """It starts its workers itself."""
    (tmp_path / "main.py").write_text(textwrap.dedent(RAY))
    done = site.call(tmp_path, "python", "main.py", RAY_memory_monitor_refresh_ms=0)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [(tmp_path / f"rank{rank}").read_text() for rank in (0, 1)] == ["2 3.0", "2 3.0"]
