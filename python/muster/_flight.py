"""Lets the launcher read this worker's flight recorder, without a change to the worker's program.

PyTorch records the collectives of a process, and a small server of its own, in C++, gives the record
out on a Unix socket even while the main thread is blocked. `muster run --flight-recorder` names a
directory in MUSTER_FLIGHT; when the program imports torch.distributed, this starts the server there:

    f3          the socket of rank 3
    f3.groups   its process groups: {"GROUP": {"desc": "dp", "ranks": [0, 1]}, ...}
    f3.pair     the send or receive that it is in, which gloo does not record, as JSON of the same form; zeros: none
    f3.why      instead: why there is no server
    f3.died     the program was ended by an exception of torch.distributed, such as a time-out: "collective", or
                "elsewhere" if PyTorch does not record that (sends and receives of gloo)

A program that ends so also leaves its record, as PyTorch itself does where it knows of the time-out (NCCL): a pickle
with the name in TORCH_FR_DUMP_TEMP_FILE and the rank.

It runs at the start of every worker's interpreter, through muster.pth or from the template of warm
workers, which carries a copy of this text. So it depends on no other module of the package, and
imports almost nothing until torch.distributed comes.
"""

import os
import sys

FLIGHT_DIRECTORY = "MUSTER_FLIGHT"
FLIGHT_MODULE = "torch.distributed.distributed_c10d"


def install_flight() -> None:
    """Only for the worker's main process, which leads its session."""
    if not os.environ.get(FLIGHT_DIRECTORY) or os.getsid(0) != os.getpid():
        return
    module = sys.modules.get(FLIGHT_MODULE)
    if module is not None:
        start_flight(module)
    else:
        sys.meta_path.insert(0, FlightFinder())  # type: ignore[arg-type]


class FlightFinder:
    """Sees the import of torch.distributed, and starts the server after it."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != FLIGHT_MODULE:
            return None
        import importlib.util

        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_start(module):  # type: ignore[no-untyped-def]
                execute(module)
                start_flight(module)

            spec.loader.exec_module = execute_and_start  # type: ignore[method-assign]
        return spec


def start_flight(module) -> None:  # type: ignore[no-untyped-def]
    """A recorder that cannot be read must not disturb the program."""
    base = os.path.join(os.environ[FLIGHT_DIRECTORY], "f" + os.environ.get("RANK", "0"))
    for old in (base, base + ".groups", base + ".pair", base + ".why", base + ".died"):  # of an earlier attempt
        try:
            os.unlink(old)
        except OSError:
            pass
    try:
        watch_groups(module, base + ".groups")
        watch_pairs(module, base + ".pair")
        watch_end(base + ".died")
        serve_flight(base)
    except Exception as e:
        write_flight(base + ".why", f"PyTorch's worker server does not start: {type(e).__name__}: {e}")


def serve_flight(path: str) -> None:
    try:
        from torch._C._distributed_c10d import _WorkerServer
    except ImportError:
        import torch

        write_flight(path + ".why", f"PyTorch {torch.__version__} has no worker server; 2.9 and later have")
        return
    import ctypes

    with QuietStderr():
        server = _WorkerServer(path)
    # It ends with the process. Its own end would wait for its threads, for ever if it has just begun, and print a line.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))


class QuietStderr:
    """Leaves out the line by which the server tells where it listens; passes on all else."""

    def __enter__(self) -> None:
        self.saved = os.dup(2)
        self.kept = os.memfd_create("stderr", os.MFD_CLOEXEC)
        os.dup2(self.kept, 2)

    def __exit__(self, *_: object) -> None:
        os.dup2(self.saved, 2)
        size = os.lseek(self.kept, 0, os.SEEK_END)
        for line in os.pread(self.kept, size, 0).splitlines(keepends=True):
            if b"WorkerServer.cpp" not in line:
                os.write(2, line)
        os.close(self.kept)
        os.close(self.saved)


def watch_groups(module, path: str) -> None:  # type: ignore[no-untyped-def]
    """Notes the members of each process group when it is made: with gloo the record has them not."""
    make = getattr(module, "_new_process_group_helper", None)
    if make is None:
        return
    groups: dict[str, object] = {}

    def make_and_note(size, rank, ranks, backend, store, name, *args, **kwargs):  # type: ignore[no-untyped-def]
        made = make(size, rank, ranks, backend, store, name, *args, **kwargs)
        try:
            members = list(ranks) or list(range(made[0].size()))
            groups[str(name)] = {"desc": str(kwargs.get("group_desc") or ""), "ranks": members}
            import json

            write_flight(path, json.dumps(groups))
        except Exception:
            pass
        return made

    module._new_process_group_helper = make_and_note


PAIR_BYTES = 1024


def watch_pairs(module, path: str) -> None:  # type: ignore[no-untyped-def]
    """Notes the send or receive that blocks the program: in memory that the launcher sees, without a system call."""
    import mmap

    with open(path, "w+b") as file:
        file.truncate(PAIR_BYTES)
        page = mmap.mmap(file.fileno(), PAIR_BYTES)
    counts: dict[tuple[str, str], int] = {}

    def note(name, send, peer, group, group_peer):  # type: ignore[no-untyped-def]
        import json
        import time

        group = group if group is not None else module._get_default_group()
        if group_peer is None and peer is not None:
            group_peer = module.get_group_rank(group, peer)
        op = f"{name} {group.rank()}{'->' if send else '<-'}{'any' if group_peer is None else group_peer}"
        key = (group.group_name, op)
        counts[key] = counts.get(key, 0) + 1
        entry = {"process_group": [group.group_name, group.group_desc], "profiling_name": op, "is_p2p": True,
                 "p2p_seq_id": counts[key], "time_created_ns": time.time_ns(), "retired": False}
        text = json.dumps({"entries": [entry]}).encode()
        if len(text) < PAIR_BYTES:
            page[: len(text) + 1] = text + b"\0"

    def wrap(name, send):  # type: ignore[no-untyped-def]
        call = getattr(module, name)
        import functools

        @functools.wraps(call)
        def noted(tensor, peer=None, group=None, tag=0, group_peer=None, **kwargs):  # type: ignore[no-untyped-def]
            sides = ("dst", "group_dst") if send else ("src", "group_src")
            peer, group_peer = kwargs.pop(sides[0], peer), kwargs.pop(sides[1], group_peer)
            try:
                note(name, send, peer, group, group_peer)
            except Exception:
                pass
            done = call(tensor, peer, group, tag, group_peer, **kwargs)
            page[0] = 0  # not after an exception: it may end the program
            return done

        for place in (module, sys.modules.get("torch.distributed")):
            if getattr(place, name, None) is call:
                setattr(place, name, noted)

    wrap("send", True)
    wrap("recv", False)


def watch_end(path: str) -> None:
    """Dumps the record when an exception of torch.distributed ends the program."""
    before = sys.excepthook

    def dump_and_pass_on(kind, value, trace):  # type: ignore[no-untyped-def]
        try:
            inside = what_failed(value, trace)
            if inside is not None:
                dump_flight()
                write_flight(path, "elsewhere" if inside in UNRECORDED else "collective")
        except Exception:
            pass
        before(kind, value, trace)

    sys.excepthook = dump_and_pass_on


UNRECORDED = ("send", "recv", "isend", "irecv", "batch_isend_irecv", "monitored_barrier", "init_process_group", "new_group")


def what_failed(value, trace):  # type: ignore[no-untyped-def]
    """The function of torch.distributed that raised it; "" where work was waited for; None: it has another origin."""
    inside = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.endswith("distributed_c10d.py") and inside is None:
            inside = code.co_name
        trace = trace.tb_next
    if inside is None and isinstance(value, RuntimeError) and ("gloo" in str(value) or "NCCL" in str(value)):
        return ""
    return inside


def dump_flight() -> None:
    from torch._C._distributed_c10d import _dump_fr_trace

    prefix = os.environ.get("TORCH_FR_DUMP_TEMP_FILE")
    if prefix:
        write_flight(prefix + os.environ.get("RANK", "0"), _dump_fr_trace())


def write_flight(path: str, text: "str | bytes") -> None:
    """Never half a file: the launcher may read at any time."""
    part = path + ".part"
    try:
        with open(part, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.replace(part, path)
    except OSError:
        pass
