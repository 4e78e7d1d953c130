"""Lets the launcher read this worker's flight recorder, without a change to the worker's program.

PyTorch records the collectives of a process, and a small server of its own, in C++, gives the record
out on a Unix socket even while the main thread is blocked. `muster run --flight-recorder` names a
directory in MUSTER_FLIGHT; when the program imports torch.distributed, this starts the server there:

    f3          the socket of rank 3
    f3.groups   its process groups: {"GROUP": {"desc": "dp", "ranks": [0, 1]}, ...}
    f3.noted    what gloo does not record (sends, receives, monitored barriers), as JSON of the same form; zeros: nothing
    f3.why      instead: why there is no server
    f3.died     the program was ended by an exception of torch.distributed, such as a time-out: "collective", or
                "elsewhere" if PyTorch does not record that (sends and receives of gloo)

A program that ends so also leaves its record, as PyTorch itself does where it knows of the time-out (NCCL): a pickle
with the name in TORCH_FR_DUMP_TEMP_FILE and the rank.

It runs at the start of every worker's interpreter where muster.pth is installed, from the template of
warm workers, and else at the end of `import torch`, as an entry point of an archive on PYTHONPATH;
those two carry a copy of this text. So it depends on no other module of the package, and imports
almost nothing until torch.distributed comes.
"""

import os
import sys

FLIGHT_DIRECTORY = "MUSTER_FLIGHT"
FLIGHT_MODULE = "torch.distributed.distributed_c10d"


def install_flight() -> None:
    """Only for the worker's main process, which leads its session."""
    if not os.environ.get(FLIGHT_DIRECTORY) or os.getsid(0) != os.getpid() or hasattr(sys, "_muster_flight"):
        return
    sys._muster_flight = True  # type: ignore[attr-defined]  # it came in another way, too
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
    for old in (base, base + ".groups", base + ".noted", base + ".why", base + ".died"):  # of an earlier attempt
        try:
            os.unlink(old)
        except OSError:
            pass
    try:
        watch_groups(module, base + ".groups")
        watch_unrecorded(module, base + ".noted")
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


NOTES_BYTES = 65536
NOTES_OPEN = 16  # the oldest of those under way: a rank that has more does not wait for the later ones
NOTES_HELD = 1024  # so many under way are looked at again
NOTES_ENDED = 128  # the latest, one for each group, peer and direction


class Notes:
    """What PyTorch does not record of gloo: sends, receives and monitored barriers. They stand in memory that the launcher
    sees, as JSON: those under way, and of each kind the last that has ended. Writing is no system call."""

    def __init__(self, path: str) -> None:
        import mmap

        with open(path, "w+b") as file:
            file.truncate(NOTES_BYTES)
            self.page = mmap.mmap(file.fileno(), NOTES_BYTES)
        self.names: dict[str, str] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.open: dict = {}  # type: ignore[type-arg]  # (group, kind, number): (text, a weak reference to its work)
        self.ended: dict[tuple[str, str], str] = {}

    def begin(self, group, kind: str, shown: str, work) -> None:  # type: ignore[no-untyped-def]
        """Numbers it among those of its kind in the group. It has ended when `work` has, or is gone: after an exception not
        before that is forgotten, and so not if it ends the program."""
        import time
        import weakref

        name = group.group_name
        if name not in self.names:
            import json

            self.names[name] = json.dumps([name, group.group_desc])
        number = self.counts[name, kind] = self.counts.get((name, kind), 0) + 1
        key = (name, kind, number)
        for other, (_, held) in self.oldest():  # a program may keep what it has waited for
            done = held()
            if done is not None and done.is_completed():
                self.drop(other)
        text = (
            f'{{"process_group":{self.names[name]},"profiling_name":"{shown}","is_p2p":true,"noted":true,'
            f'"p2p_seq_id":{number},"time_created_ns":{time.time_ns()},"retired":'
        )
        self.open[key] = (text, weakref.ref(work, lambda _: self.end(key)))
        if len(self.open) > NOTES_HELD:
            self.drop(key)
        self.write()

    def oldest(self):  # type: ignore[no-untyped-def]
        import itertools

        return list(itertools.islice(self.open.items(), NOTES_OPEN))

    def drop(self, key: tuple[str, str, int]) -> None:
        text = self.open.pop(key, (None, None))[0]
        if text is not None:
            self.ended.pop(key[:2], None)
            self.ended[key[:2]] = text  # the latest last
            if len(self.ended) > NOTES_ENDED:
                del self.ended[next(iter(self.ended))]

    def end(self, key: tuple[str, str, int]) -> None:
        try:
            self.drop(key)
            self.write()
        except Exception:  # the interpreter is ending
            pass

    def write(self) -> None:
        entries = [text + "true}" for text in list(self.ended.values())]
        entries += [text + "false}" for _, (text, _) in self.oldest()]
        text = ('{"entries":[' + ",".join(entries) + "]}").encode()
        if len(text) < NOTES_BYTES:
            self.page[: len(text) + 1] = text + b"\0"


def watch_unrecorded(module, path: str) -> None:  # type: ignore[no-untyped-def]
    """Notes what gloo does not record where torch.distributed hands it over: its own functions stay as they are."""
    notes = Notes(path)
    methods = module.ProcessGroup

    def watch(method, arrow):  # type: ignore[no-untyped-def]
        call = getattr(methods, method, None)
        word = "send" if method == "send" else "recv"
        if call is None:
            return

        def noted(group, tensors, *args, **kwargs):  # type: ignore[no-untyped-def]
            work = call(group, tensors, *args, **kwargs)
            try:
                if tensors[0].device.type == "cpu":  # others are not gloo's
                    peer = "any" if method == "recv_anysource" else args[0]
                    pair = f"{group.rank()}{arrow}{peer}"
                    notes.begin(group, f"{word} {pair}", f"{blocking_prefix(word)}{word} {pair}", work)
            except Exception:
                pass
            return work

        setattr(methods, method, noted)

    watch("send", "->")
    watch("recv", "<-")
    watch("recv_anysource", "<-")

    barrier = getattr(methods, "monitored_barrier", None)
    if barrier is None:
        return

    def noted_barrier(group, *args, **kwargs):  # type: ignore[no-untyped-def]
        inside = Inside()
        try:
            notes.begin(group, "monitored_barrier", "monitored_barrier", inside)
        except Exception:
            pass
        return barrier(group, *args, **kwargs)

    methods.monitored_barrier = noted_barrier


class Inside:
    """Lives as long as the frame of a call."""

    def is_completed(self) -> bool:
        return False


def blocking_prefix(word: str) -> str:
    """"" if send() or recv() has called, which wait; else "i": whether the program waits for it is not known."""
    frame = sys._getframe(2)
    for _ in range(8):
        if frame is None:
            break
        if frame.f_code.co_name in (word, f"{word}_object_list") and frame.f_code.co_filename.endswith("distributed_c10d.py"):
            return ""
        frame = frame.f_back  # type: ignore[assignment]
    return "i"


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
        write_flight(prefix + os.environ.get("RANK", "0"), _dump_fr_trace(True, False, False))  # stacks would take seconds


def write_flight(path: str, text: "str | bytes") -> None:
    """Never half a file: the launcher may read at any time."""
    part = path + ".part"
    try:
        with open(part, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.replace(part, path)
    except OSError:
        pass
