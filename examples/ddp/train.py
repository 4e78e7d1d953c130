"""Data-parallel training that survives the loss of any worker: a small network, gloo, checkpoints.

    muster run --nproc-per-node=2 --max-restarts=10 train.py --checkpoint=model.pt
    muster run --nproc-per-node=2 --max-restarts=10 --preload=torch train.py --checkpoint=model.pt --keep

Kill any worker at any time: the group starts again, reads the last checkpoint, and ends with the same loss
to the last bit as if nothing had happened, because every step depends on its number and on the weights, and
on nothing else. With --keep, every step is also kept in memory that outlives the workers: a restart goes on from
the last one, and reads the file only when a host was lost.

Give notice to any of its hosts (SIGTERM, Slurm's --signal=USR1@60, the deletion of a pod, muster checkpoint): all
ranks save and leave after the same step, and muster run ends with 94, "start me again". That needs muster's Python
package; without it, as under torchrun, the example does the rest.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

try:
    import muster
except ImportError:
    muster = None


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


class Memory:
    """Weights and momentum as one row of numbers in memory that the launcher holds."""

    def __init__(self, model, optimizer):
        for parameter in model.parameters():
            optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        self.tensors = [*model.parameters(), *(optimizer.state[p]["momentum_buffer"] for p in model.parameters())]
        self.sizes = [tensor.numel() for tensor in self.tensors]
        self.kept = muster.keep("model", 4 * sum(self.sizes))

    def save(self, step):
        row = torch.frombuffer(self.kept.begin(), dtype=torch.float32)
        torch.cat([tensor.detach().flatten() for tensor in self.tensors], out=row)
        self.kept.commit(step)

    def resume(self):
        """Returns the step to continue with; None: nothing is kept."""
        if self.kept.state is None:
            return None
        row = torch.frombuffer(bytearray(self.kept.state), dtype=torch.float32)
        with torch.no_grad():
            for tensor, part in zip(self.tensors, row.split(self.sizes)):
                tensor.copy_(part.view_as(tensor))
        return self.kept.step


def is_asked_to_leave_after(step):
    """True after the same step on all ranks, once any host got notice; one read of memory until then."""
    return muster is not None and muster.stop_after(step)


def hold_until(path, rank, step):
    """For demonstrations: waits before a step until a file exists, so that there is a worker to kill. Meanwhile the
    rank takes part in what the hosts agree on: True if it is to leave before the step."""
    say(f"rank {rank} pid {os.getpid()} holds")
    while not os.path.exists(path):
        if step > 0 and is_asked_to_leave_after(step - 1):
            return True
        time.sleep(0.02)
    return False


def train(options):
    """Returns the loss at the end; None: the ranks have left before it."""
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    memory = Memory(model, optimizer) if options.keep else None
    first = memory.resume() if memory else None
    if first is None:
        first = resume(options.checkpoint, model, optimizer)
    say(f"rank {rank} pid {os.getpid()} begins at step {first}")

    def checkpoint(done):
        if rank == 0:
            save(options.checkpoint, done, model, optimizer)
            is_saved(done)

    def is_saved(done):
        if muster:
            muster.saved(done - 1)

    def leave(done):
        checkpoint(done)
        dist.barrier()  # the others say that the file is complete only when it is
        is_saved(done)
        say(f"rank {rank} leaves after step {done - 1}")

    for step in range(first, options.steps):
        if options.hold and step == options.hold_at and hold_until(options.hold, rank, step):
            return leave(step)
        x, y = batch(step, rank)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if memory:
            memory.save(step + 1)
        if muster:
            muster.step(step, options.steps)
        if (step + 1) % options.every == 0:
            checkpoint(step + 1)
            say(f"rank {rank} pid {os.getpid()} step {step + 1} loss {loss.item():.6f}")
        if is_asked_to_leave_after(step):
            return leave(step + 1)
    return final_loss(model.module)


def final_loss(model):
    """The mean loss on the data of all ranks that was not used for training. Each rank computes it alone."""
    ranks = range(dist.get_world_size())
    with torch.no_grad():
        losses = [nn.functional.mse_loss(model(x), y).item() for x, y in (batch(-1, rank) for rank in ranks)]
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--keep", action="store_true", help="also keep each step in memory, for the next worker of the rank")
    parser.add_argument("--hold", help="before a step, wait until this file exists")
    parser.add_argument("--hold-at", type=int, help="that step; the last one if not given")
    options = parser.parse_args()
    if options.hold_at is None:
        options.hold_at = options.steps - 1
    if options.keep and not muster:
        parser.error("--keep needs muster's Python package")
    dist.init_process_group("gloo")
    loss = train(options)
    if dist.get_rank() == 0 and loss is not None:
        say(f"final loss {loss!r} after {os.environ['TORCHELASTIC_RESTART_COUNT']} restarts")
    dist.destroy_process_group()
    # PyTorch keeps gloo's threads as long as a DistributedDataParallel was made, and one that lets go of the last
    # gradients while the interpreter ends aborts the process. So the interpreter does not end.
    os._exit(0)


if __name__ == "__main__":
    main()
