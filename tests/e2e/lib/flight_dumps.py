"""Dumps of PyTorch's flight recorder, of real gloo jobs of four ranks that hang in every way a record can show.

usage: flight_dumps.py DIRECTORY     makes DIRECTORY/CASE/trace_RANK

`verdicts(folder)` is what PyTorch's own analyser (torchfrtrace) says about such a folder, and `differences()` what muster does not
say as well."""

import logging
import os
import pathlib
import pickle
import signal
import sys
import threading
import time

# What ranks do after three collectives that all came to: the steps of rank 2, and those of the others. Group 1 is "subset"
# (ranks 0, 1, 3), 2 "dp" (0, 1, 2), 3 "tp" (2, 3).
CASES = {
    "missing": ([], ["all_reduce"]),
    "barrier": ([], ["barrier"]),
    "gather": ([], ["all_gather"]),
    "order": (["broadcast"], ["all_reduce"]),
    "size": (["all_reduce 6,3"], ["all_reduce"]),
    "type": (["all_reduce int"], ["all_reduce"]),
    "ahead": (["all_reduce async", "all_reduce"], []),
    "subset": ([], {0: ["all_reduce in 1"], 1: ["all_reduce in 1"], 3: []}),
    "groups": (["all_reduce in 3"], {0: ["all_reduce in 2"], 1: ["all_reduce in 2"], 3: []}),
    "two_missing": ([], {0: ["all_reduce"], 1: ["all_reduce"], 3: []}),
    "two_against_two": (["broadcast"], {0: ["all_reduce"], 1: ["all_reduce"], 3: ["broadcast"]}),
    "root_differs": (["all_reduce"], {0: ["all_reduce 6,3"], 1: ["all_reduce"], 3: ["all_reduce"]}),
    "healthy": ([], []),
}
GROUPS = {"0": ("default_pg", [0, 1, 2, 3]), "1": ("subset", [0, 1, 3]), "2": ("dp", [0, 1, 2]), "3": ("tp", [2, 3])}
BEFORE = 3


def steps_of(case, rank):
    two, others = CASES[case]
    return two if rank == 2 else others[rank] if isinstance(others, dict) else others


def take_step(step, groups):
    import torch
    import torch.distributed as dist

    words = step.split()
    tensor = torch.ones(6, 3) if "6,3" in words else torch.ones(6, 4, dtype=torch.int32 if "int" in words else torch.float)
    group = groups[words[words.index("in") + 1]] if "in" in words else None
    if words[0] == "all_reduce":
        dist.all_reduce(tensor, group=group, async_op="async" in words)
    elif words[0] == "broadcast":
        dist.broadcast(tensor, 0)
    elif words[0] == "all_gather":
        dist.all_gather([torch.ones(6, 4) for _ in range(4)], tensor)
    else:
        dist.barrier()


def dump_when(count, rank, folder):
    """Once the record has so many entries: the rank hangs in the last of them, or does nothing any more. gloo's threads say late
    that those before are over."""
    from torch._C._distributed_c10d import _dump_fr_trace

    while True:
        trace = pickle.loads(_dump_fr_trace(True, False, False))  # without stacks, which take seconds
        entries = trace.get("entries", [])
        if len(entries) == count and all(entry["retired"] for entry in entries[:BEFORE]):
            break
        time.sleep(0.01)
    save(trace, rank, folder)


def save(trace, rank, folder):
    """Adds what PyTorch's analyser needs and PyTorch leaves out with gloo: the members of groups."""
    trace["pg_config"] = {name: {"name": name, "desc": desc, "ranks": str(ranks)}
                          for name, (desc, ranks) in GROUPS.items() if rank in ranks}
    (folder / f"part_{rank}.part").write_bytes(pickle.dumps(trace, protocol=2))
    (folder / f"part_{rank}.part").rename(folder / f"trace_{rank}")


def be_rank(case, rank, folder):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=4)
    groups = {name: dist.new_group(ranks, group_desc=desc) for name, (desc, ranks) in GROUPS.items() if name != "0"}
    for _ in range(BEFORE):
        dist.all_reduce(torch.ones(6, 4))
    steps = steps_of(case, rank)
    threading.Thread(target=dump_when, args=(BEFORE + len(steps), rank, folder), daemon=True).start()
    for step in steps:
        take_step(step, groups)
    signal.pause()


def make(case, folder):
    folder.mkdir(parents=True)
    pids = []
    for rank in range(4):
        pid = os.fork()
        if pid == 0:
            try:
                be_rank(case, rank, folder)
            finally:
                os._exit(1)
        pids.append(pid)
    try:
        while not all((folder / f"trace_{rank}").exists() for rank in range(4)):
            time.sleep(0.02)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def verdicts(folder):
    """{group: ranks} of the first collective of each group that is not right for torchfrtrace: those that are missing, or
    those that came with something else than the first rank."""
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig
    from torch.distributed.flight_recorder.components.loader import read_dir

    logging.getLogger("Flight Recorder").setLevel(logging.ERROR)
    args = JobConfig().parse_args([str(folder), "-p", "trace_"])
    details, version = read_dir(args)
    found = {}
    for collective in build_db(details, args, version).collectives:
        ranks = collective.missing_ranks or set(collective.mismatch_collectives or {})
        if ranks and collective.group_id not in found:
            found[collective.group_id] = sorted(ranks)
    return found


def differences(theirs, findings):
    """Verdicts that have no finding of muster about the same group, with the same ranks missing or apart from the others. Its
    analyser takes the first rank for right, so those apart may be the others."""
    lacking = {}
    for group, ranks in theirs.items():
        others = sorted(set(GROUPS[group][1]) - set(ranks))
        if not [f for f in findings if f["group"] == group and (f["missing"] == ranks or f["odd"] in (ranks, others))]:
            lacking[group] = ranks
    return lacking


if __name__ == "__main__":
    os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
    import torch.distributed  # noqa: F401 - once for all ranks of all cases

    for name in CASES:
        make(name, pathlib.Path(sys.argv[1]) / name)
