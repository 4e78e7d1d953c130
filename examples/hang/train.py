"""Two ranks add up a tensor, step by step. In the first attempt rank 1 never reaches the third step, so
rank 0 hangs in the collective. The script only sets a timer around each step."""

import os
import time

import torch
import torch.distributed as dist
import torch.distributed.elastic.timer as timer

rank = int(os.environ["RANK"])
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
dist.init_process_group("gloo")
print(f"rank {rank} is process {os.getpid()}", flush=True)


def load_batch(step):
    while first and rank == 1 and step == 3:
        time.sleep(1)
    return torch.ones(4)


for step in range(1, 6):
    batch = load_batch(step)
    with timer.expires(after=5, scope=f"step {step}"):
        dist.all_reduce(batch)
dist.destroy_process_group()
print(f"rank {rank} is done", flush=True)
