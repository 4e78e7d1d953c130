"""Data-parallel training that survives the loss of any worker: a small network, gloo, checkpoints.

    muster run --nproc-per-node=2 --max-restarts=10 train.py --checkpoint=model.pt

Kill any worker at any time: the group starts again, reads the last checkpoint, and ends with the same loss
to the last bit as if nothing had happened, because every step depends on its number and on the weights, and
on nothing else.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def say(text):
    """Writes in one piece: print() writes the newline separately, and lines of ranks would mix."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def batch(step, rank, size=32):
    """The data of one step: generated, so that the example needs no files."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(size, 8, generator=generator)
    return x, torch.sin(x.sum(dim=1, keepdim=True))


def save(path, step, model, optimizer):
    """Never writes half a checkpoint: a rank that is killed meanwhile leaves the last one intact."""
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{path}.part")
    os.replace(f"{path}.part", path)


def resume(path, model, optimizer):
    """Returns the step to continue with."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def hold_until(path, rank):
    """For demonstrations: waits at the end until a file exists, so that there is a worker to kill."""
    say(f"rank {rank} pid {os.getpid()} holds")
    while not os.path.exists(path):
        time.sleep(0.02)


def train(options):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    first = resume(options.checkpoint, model, optimizer)
    for step in range(first, options.steps):
        if options.hold and step == options.steps - 1:
            hold_until(options.hold, rank)
        x, y = batch(step, rank)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % options.every == 0:
            if rank == 0:
                save(options.checkpoint, step + 1, model, optimizer)
            say(f"rank {rank} pid {os.getpid()} step {step + 1} loss {loss.item():.6f}")
    return final_loss(model)


def final_loss(model):
    """The mean loss over all ranks on data that was not used for training."""
    with torch.no_grad():
        x, y = batch(-1, dist.get_rank())
        loss = nn.functional.mse_loss(model(x), y)
    dist.all_reduce(loss)
    return loss.item() / dist.get_world_size()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--hold", help="before the last step, wait until this file exists")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    loss = train(options)
    if dist.get_rank() == 0:
        say(f"final loss {loss!r} after {os.environ['TORCHELASTIC_RESTART_COUNT']} restarts")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
