"""LaunchConfig, and its translation into options of `muster run`."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any, Callable

DEFAULT_RDZV_TIMEOUT = 900
DEFAULT_SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
START_METHODS = ("spawn", "fork", "forkserver")


def signals_of(text: str) -> list[signal.Signals]:
    """Those of signals_to_handle."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in signal.Signals.__members__]
    if unknown:
        raise ValueError(f"signals_to_handle: no such signal: {', '.join(unknown)}")
    return [signal.Signals[name] for name in names]


class Std(IntFlag):
    """Which of a worker's streams."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR


class DefaultLogsSpecs:
    """Where the workers' output goes: torch's class of that name does as well.

    `redirects` go to files below `log_dir`, `tee` to files and to our own streams; one value for all
    workers, or one for each local rank in a dict. Only ranks in `local_ranks_filter` are shown.
    """

    def __init__(self, log_dir: str | None = None, redirects: Std | Mapping[int, Std] = Std.NONE,
                 tee: Std | Mapping[int, Std] = Std.NONE, local_ranks_filter: set[int] | None = None) -> None:
        self._root_log_dir = log_dir
        self._redirects = redirects
        self._tee = tee
        self._local_ranks_filter = local_ranks_filter

    @property
    def root_log_dir(self) -> str | None:
        return self._root_log_dir


@dataclass
class LaunchConfig:
    """How to run a job. Names and defaults are those of torch.distributed.launcher.api; those
    marked with a star are muster's own.

    min_nodes, max_nodes    how many nodes take part
    nproc_per_node          workers on each
    logs_specs              where their output goes: a DefaultLogsSpecs, ours or torch's
    run_id                  the name of the job; a random one is put here if it is empty
    role                    of the workers
    rdzv_endpoint, rdzv_backend, rdzv_configs, rdzv_timeout
                            how nodes find each other; a job on one node without an endpoint needs none
    max_restarts            of the group, over all nodes
    monitor_interval        accepted; nothing is polled
    start_method            accepted; workers always start in a fresh interpreter
    log_line_prefix_template  before each line that is tee'd
    metrics_cfg             accepted; see muster-run(1), --http
    local_addr              the address of this node
    event_log_handler       "null" or "console"
    numa_options            torch's NumaOptions, or one of the words of --numa-binding
    signals_to_handle       signals that end the job
    duplicate_stdout_filters, duplicate_stderr_filters
                            lines to copy to one file
    virtual_local_rank      every worker sees LOCAL_RANK=0 and its device alone
    shutdown_timeout        seconds between the stop signal and SIGKILL
    preload *               modules to import once, in a template that workers are forked from
    run_options *           more options of muster-run(1)
    on_event *              is called with each event of muster-events(7), a dict
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = DEFAULT_SIGNALS
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None
    preload: str | None = None
    run_options: list[str] = field(default_factory=list)
    on_event: Callable[[dict[str, Any]], None] | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        else:
            self.rdzv_configs.setdefault("timeout", DEFAULT_RDZV_TIMEOUT)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        elif self.shutdown_timeout < 0:
            raise ValueError(f"shutdown_timeout must be non-negative, got {self.shutdown_timeout}")

    def check(self) -> None:
        """Raises ValueError if this cannot be launched."""
        if self.min_nodes < 1 or self.max_nodes < self.min_nodes:
            raise ValueError(f"0 < min_nodes <= max_nodes is needed, got {self.min_nodes} and {self.max_nodes}")
        if self.nproc_per_node < 1:
            raise ValueError(f"nproc_per_node must be positive, got {self.nproc_per_node}")
        if self.max_restarts < 0:
            raise ValueError(f"max_restarts must be non-negative, got {self.max_restarts}")
        if self.monitor_interval <= 0:
            raise ValueError(f"monitor_interval must be positive, got {self.monitor_interval}")
        if not self.rdzv_backend:
            raise ValueError("rdzv_backend must not be empty")
        if self.start_method not in START_METHODS:
            raise ValueError(f"start_method must be one of {', '.join(START_METHODS)}, got {self.start_method!r}")
        self.signals()

    def signals(self) -> list[signal.Signals]:
        return signals_of(self.signals_to_handle)

    def options(self) -> list[str]:
        """The options of `muster run` that mean this."""
        specs = self.logs_specs
        pairs: list[tuple[str, Any]] = [
            ("nproc-per-node", self.nproc_per_node),
            ("max-restarts", self.max_restarts),
            ("role", self.role),
            ("event-log-handler", self.event_log_handler),
            ("signals-to-handle", ",".join(sig.name for sig in self.signals())),
            ("shutdown-timeout", self.shutdown_timeout),
            ("local-addr", self.local_addr),
            ("numa-binding", _numa_mode(self.numa_options)),
            ("preload", self.preload),
            ("log-dir", getattr(specs, "_root_log_dir", None)),
            ("redirects", _mask(specs._redirects, self.nproc_per_node)),
            ("tee", _mask(specs._tee, self.nproc_per_node)),
            ("local-ranks-filter", _list(specs._local_ranks_filter)),
            ("duplicate-stdout-filters", filters_text(self.duplicate_stdout_filters)),
            ("duplicate-stderr-filters", filters_text(self.duplicate_stderr_filters)),
            *self._rendezvous(),
        ]
        flags = ["--virtual-local-rank"] if self.virtual_local_rank else []
        return ["--report=none", *(f"--{name}={value}" for name, value in pairs if value is not None), *flags,
                *self.run_options]

    def _rendezvous(self) -> list[tuple[str, Any]]:
        """How nodes find each other; a job on one node without an endpoint has no other node to find."""
        nodes = [("rdzv-id", self.run_id), ("nnodes", f"{self.min_nodes}:{self.max_nodes}")]
        if self.rdzv_backend == "static" and not (self.max_nodes == 1 and self.rdzv_endpoint.endswith(":0")):
            return [*nodes, *self._master(), ("rdzv-conf", self._conf("rank"))]
        if self.max_nodes == 1 and (not self.rdzv_endpoint or self.rdzv_backend == "static"):
            return nodes  # port 0 is any
        return [*nodes, ("rdzv-backend", self.rdzv_backend), ("rdzv-endpoint", self.rdzv_endpoint or None),
                ("rdzv-conf", self._conf())]

    def _conf(self, *left_out: str) -> str:
        return ",".join(f"{key}={value}" for key, value in self.rdzv_configs.items() if key not in left_out)

    def _master(self) -> list[tuple[str, Any]]:
        host, colon, port = self.rdzv_endpoint.strip().rpartition(":")
        if not colon or not port.isdigit():
            raise ValueError(f"a static rendezvous needs the endpoint HOST:PORT, got {self.rdzv_endpoint!r}")
        if "rank" not in self.rdzv_configs:
            raise ValueError("a static rendezvous needs the rank of this node in rdzv_configs['rank']")
        return [("rdzv-backend", "static"), ("master-addr", host.strip("[]")), ("master-port", port),
                ("node-rank", self.rdzv_configs["rank"])]


def _mask(value: Any, nproc: int) -> str:
    """One mask for all, or RANK:MASK for each."""
    if isinstance(value, Mapping):
        return ",".join(f"{rank}:{int(value[rank])}" for rank in sorted(value) if rank < nproc) or "0"
    return str(int(value))


def _list(numbers: set[int] | None) -> str | None:
    return ",".join(map(str, sorted(numbers))) if numbers else None


def filters_text(texts: list[str] | None) -> str | None:
    return ",".join(text.replace(",", ",,") for text in texts) if texts else None


def _numa_mode(options: Any) -> str | None:
    mode = getattr(options, "affinity_mode", options)
    return getattr(mode, "value", mode)
