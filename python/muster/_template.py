"""The template of warm workers: imports the modules once, then forks workers on request.

`muster run --preload` starts it as a child of the warden. muster sends this text as
the first message on standard input, a socket that stays the connection to muster. `argv` is then

    -c  MODULE,MODULE...  what follows `python -u` on the command line of a worker

muster asks for workers with one message per batch, which carries descriptors: a memory file, then for
each worker a gate, and its standard input, output and error. The file has NUL-terminated words, for
each worker: N and N arguments, N and N variables, its CPUs ("0,1,5"; "": all), and its memory policy
("SYSCALL MODE MASK" with the mask in hexadecimal bytes; "": as it is). Answers are

    R                ready: the modules are imported
    F PID PID...     forked, in the order of the request; the missing ones could not be forked
    E TEXT           there will be no worker, and why

A worker is forked twice, by the interpreter's own fork so that the fork handlers of every library run.
The process in between ends, and the warden inherits the worker. The worker prepares itself and waits at
its gate until the warden has adopted it: no user code runs before. All workers of a batch share the
process in between, which is forked ahead of the request, because forking and ending a process of this
size takes milliseconds.
"""

import builtins
import contextlib
import ctypes
import fcntl
import gc
import importlib
import importlib.machinery
import io
import os
import pkgutil
import runpy
import signal
import socket
import sys
import types
import warnings

DESCRIPTORS_MAX = 253  # in one message; the kernel's limit
DESCRIPTORS_EACH = 4  # gate, stdin, stdout, stderr
PR_SET_PDEATHSIG = 1
PAUSE_HARD = 2  # omp_pause_hard
MADV_COLLAPSE = 25
HUGE_PAGE = 2 << 20
HUNG_UP = 3  # exit code of the process in between when muster has closed the connection
DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel")
STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))

libc = ctypes.CDLL(None, use_errno=True)


class Start:
    """The request for one worker."""

    def __init__(self, words, descriptors):
        self.argv = take_list(words)
        self.environment = dict(pair.split(b"=", 1) for pair in take_list(words) if b"=" in pair[1:])
        self.cpus = [int(cpu) for cpu in next(words).split(b",") if cpu]
        self.memory = next(words).split()
        self.gate, *self.stdio = descriptors


def take_list(words):
    return [next(words) for _ in range(int(next(words)))]


# ---- the template ----


class Unfit(Exception):
    """No worker may be forked from this process."""


def import_all(names):
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as e:
            raise Unfit(f"cannot import {name}: {type(e).__name__}: {e}") from e


def check_accelerators():
    """A context of a device does not survive a fork."""
    torch = sys.modules.get("torch")
    for kind in ("cuda", "xpu"):
        module = getattr(torch, kind, None)
        if module and module.is_initialized():
            raise Unfit(f"a module has initialised {kind.upper()}, which a forked process cannot use")
    for name in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if path.startswith(DEVICES):
            raise Unfit(f"a module has opened {path}, which a forked process cannot use")


def check_threads():
    """A thread that a module relies on would be missing in the workers."""
    threading = sys.modules.get("threading")
    others = [t.name for t in threading.enumerate() if t is not threading.main_thread()] if threading else []
    if others:
        raise Unfit(f"a module has started the thread '{others[0]}', which a forked process has not")


def end_openmp_threads():
    """In a forked process GNU's OpenMP waits for threads that do not exist there. If it has none, it
    starts new ones. (Other libraries with threads, such as OpenBLAS, have fork handlers.)"""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "libgomp" in line}
    for path in paths:
        with contextlib.suppress(OSError, AttributeError):  # replaced on disk; older than OpenMP 5
            ctypes.CDLL(path).omp_pause_resource_all(PAUSE_HARD)


def collapse_memory():
    """Into huge pages, so that a fork copies a few hundred page table entries instead of tens of
    thousands: fork and exit take a third of the time. Kernels before 6.1 refuse."""
    with open("/proc/self/maps") as maps:
        areas = [line.split(maxsplit=5) for line in maps]
    for span, access, _, _, _, *name in areas:
        if "w" in access and (not name or name[0].startswith("[heap]")):
            first, end = (int(number, 16) for number in span.split("-"))
            first, end = -(-first // HUGE_PAGE) * HUGE_PAGE, end // HUGE_PAGE * HUGE_PAGE
            if first < end:
                libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), MADV_COLLAPSE)


def tell(link, answer):
    try:
        link.send(answer)
    except OSError:
        os._exit(0)  # muster is gone


def receive(link):
    """The next batch, with the descriptors that only its workers need."""
    data, descriptors, _, _ = socket.recv_fds(link, 1, DESCRIPTORS_MAX, socket.MSG_CMSG_CLOEXEC)
    if not data or not descriptors:
        os._exit(HUNG_UP)
    with open(descriptors[0], "rb") as file:
        file.seek(0)
        words = iter(file.read().split(b"\0"))
    rest = descriptors[1:]
    groups = [rest[i:i + DESCRIPTORS_EACH] for i in range(0, len(rest), DESCRIPTORS_EACH)]
    return [Start(words, group) for group in groups], rest


def fork():
    """0 in the child. Silences the warnings about forking with threads, which check_threads() covers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def fork_each(starts):
    """In the process in between: the pids of the forked workers. In a worker: its Start."""
    pids = b""
    try:
        for start in starts:
            pid = fork()
            if pid == 0:
                return start
            pids += b" %d" % pid
    except OSError:
        pass  # the rest is missing in the answer
    return pids


def serve(link):
    """Forks workers until muster closes the connection. Returns only in a worker, with its Start and all
    descriptors that it must not keep.

    The process in between is forked ahead of the request and reads it itself."""
    while True:
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            middle = fork()
        except OSError as e:
            raise Unfit(f"cannot fork: {e.strerror}") from e
        if middle == 0:
            starts, descriptors = receive(link)
            forked = fork_each(starts)
            if isinstance(forked, Start):
                return forked, [reader, writer, *descriptors]
            os.write(writer, forked)
            os._exit(0)
        check_end(os.waitpid(middle, 0)[1])  # from then on the warden is the workers' parent
        try:
            pids = os.read(reader, 1 << 16)
        except BlockingIOError:
            pids = b""  # it was killed
        os.close(reader)
        os.close(writer)
        tell(link, b"F" + pids)


def check_end(status):
    """Ends with muster; raises if the process in between failed."""
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0
    if code == HUNG_UP:
        os._exit(0)
    if code:
        raise Unfit("a request for workers could not be read")


# ---- becoming a worker ----


def set_environment(wanted):
    for name in list(os.environb):
        if name not in wanted:
            del os.environb[name]
    for name, value in wanted.items():
        if os.environb.get(name) != value:
            os.environb[name] = value


def set_placement(start):
    if start.cpus:
        os.sched_setaffinity(0, start.cpus)
    if start.memory:
        number, mode, mask = start.memory
        bits = bytes.fromhex(mask.decode())
        # The kernel reads one bit less than the length.
        if libc.syscall(int(number), int(mode), bits, len(bits) * 8 + 1) < 0:
            raise OSError(ctypes.get_errno(), "cannot bind to its memory nodes")


def open_streams():
    """As the interpreter does at its start with -u: these may be of another kind than the template's."""
    for number, (name, mode) in enumerate(STREAMS):
        old = getattr(sys, f"__{name}__")
        file = open(number, mode + "b", buffering=-1 if mode == "r" else 0, closefd=False)
        getattr(file, "raw", file).name = f"<{name}>"
        stream = io.TextIOWrapper(file, encoding=old.encoding, errors=old.errors, newline="\n",
                                  write_through=True)
        stream.mode = mode
        if getattr(sys, name) is old:
            setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def renew_randomness():
    """Modules that seed themselves on import would be alike in all workers. (`random` has a fork
    handler.)"""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random:
        numpy_random.seed()
    generator = getattr(sys.modules.get("torch"), "default_generator", None)
    if generator:
        generator.seed()
    process = sys.modules.get("multiprocessing.process")
    if process:
        process.current_process().authkey = os.urandom(32)


def set_command_line(argv):
    """For ps and pgrep. The template's own was longer; fields 48 and 49 say where it lies."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    first, end = int(fields[45]), int(fields[46])
    text = b"".join(word + b"\0" for word in argv)
    if 0 < first < end and len(text) <= end - first:
        ctypes.memmove(first, text.ljust(end - first, b"\0"), end - first)


def pass_gate(gate, warden):
    """Waits until the warden has adopted this process; before that no process would end it."""
    if not os.read(gate, 1):
        os._exit(1)
    os.close(gate)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) < 0 or os.getppid() != warden:
        os._exit(1)


def become(start, descriptors, directory, warden):
    """Sets everything that the kernel and the interpreter set at the start of a program."""
    os.setsid()
    for number, descriptor in enumerate(start.stdio):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        if descriptor != start.gate:
            os.close(descriptor)
    os.fchdir(directory)
    os.close(directory)
    set_environment(start.environment)
    set_command_line(start.argv)
    open_streams()
    renew_randomness()
    pass_gate(start.gate, warden)
    set_placement(start)
    install_flight()  # noqa: F821 - from _flight.py, sent with this text


# ---- the user's program ----


def absolute(path):
    """As the interpreter does: prepends only the directory."""
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def has_main(path):
    """Whether it is a directory or an archive with a __main__."""
    return pkgutil.get_importer(absolute(path)) is not None


def first_path(words):
    """sys.path[0] for the words after `python -u`."""
    if words[0] == "-c":
        return ""
    if words[0] == "-m":
        return os.getcwd()
    return absolute(words[0]) if has_main(words[0]) else os.path.dirname(os.path.realpath(words[0]))


def set_path(words):
    """For the imports of the template and of its workers, which all run the same program."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, first_path(words))


def set_arguments(words):
    sys.argv[:] = words[:1] + words[2:] if words[0] in ("-c", "-m") else words


def new_main():
    """A __main__ module as the interpreter makes it."""
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    main.__loader__ = importlib.machinery.BuiltinImporter
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    return main


def load_script(main, path):
    """The code of a script file, source or compiled."""
    full = absolute(path)
    compiled = path.endswith(".pyc")
    kind = importlib.machinery.SourcelessFileLoader if compiled else importlib.machinery.SourceFileLoader
    main.__loader__ = kind("__main__", full)
    main.__file__ = full
    main.__cached__ = None
    if compiled:
        return main.__loader__.get_code("__main__")
    with io.open_code(full) as file:
        return compile(file.read(), full, "exec", dont_inherit=True)


def run(words):
    """What `python -u WORDS` runs."""
    main = new_main()
    if words[0] == "-m":
        runpy._run_module_as_main(words[1])
    elif words[0] == "-c":
        exec(compile(words[1], "<string>", "exec", dont_inherit=True), main.__dict__)
    elif has_main(words[0]):
        runpy._run_module_as_main("__main__", alter_argv=False)
    else:
        exec(load_script(main, words[0]), main.__dict__)


def run_and_show(words):
    """Handles an uncaught exception like the interpreter, but shows and records it without the frames
    below the user's."""
    try:
        run(words)
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_globals is globals():
            trace = trace.tb_next
        record_uncaught(error.with_traceback(trace))  # noqa: F821 - from _uncaught.py, sent with this text
        show = sys.excepthook

        def excepthook(kind, value, _):
            sys.excepthook = show
            sys.last_traceback = trace
            show(kind, value.with_traceback(trace), trace)

        sys.excepthook = excepthook
        raise


def main(link):
    warden = os.getppid()
    own = socket.socket(fileno=fcntl.fcntl(link.detach(), fcntl.F_DUPFD_CLOEXEC, 3))
    with open(os.devnull, "rb") as null:
        os.dup2(null.fileno(), 0)
    directory = os.open(".", os.O_PATH | os.O_DIRECTORY)
    modules, words = sys.argv[1].split(","), sys.argv[2:]
    set_path(words)
    set_arguments(words)
    try:
        if sys.version_info < (3, 9):
            raise Unfit("Python 3.9 or later is needed")
        import_all(modules)
        check_accelerators()
        check_threads()
        end_openmp_threads()
        gc.collect()
        gc.freeze()  # so that no collection writes to pages that all workers share
        collapse_memory()
        tell(own, b"R")
        start, descriptors = serve(own)
    except Unfit as e:
        tell(own, b"E" + str(e).encode(errors="replace"))
        os._exit(1)
    own.close()
    become(start, descriptors, directory, warden)
    argv = [os.fsdecode(word) for word in start.argv]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = argv
    set_arguments(argv[2:])
    run_and_show(argv[2:])
