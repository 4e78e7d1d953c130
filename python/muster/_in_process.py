"""In torchrun's place, for programs that call torch's launcher (_switch.py): functions of the same name as
those that they replace, whose first argument is the replaced one. Errors are of torch's classes, and what muster
does not serve the replaced function does."""

from __future__ import annotations

import dataclasses
import functools
import pickle
import types
import uuid
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, Callable

from muster import launcher
from muster._config import LaunchConfig, filters_text, signals_of
from muster._program import find_program
from muster._switch import say

BACKENDS = ("static", "c10d", "etcd", "etcd-v2")  # and exec:PROGRAM
EVENT_LOGS = ("null", "console", "dynamic_rendezvous")
LOCAL_RANK = "--local-rank=${local_rank}"


def _missing() -> str | None:
    try:
        find_program()
    except FileNotFoundError as e:
        return str(e)
    return None


def _serves_backend(name: str) -> bool:
    return name in BACKENDS or name.startswith("exec:")


@functools.cache
def _kinds() -> types.SimpleNamespace:
    """torch's own classes of errors."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
    from torch.distributed.elastic.rendezvous import RendezvousTimeoutError

    def failure(local_rank: int, pid: int, exitcode: int, error_file: str) -> Any:
        try:
            return ProcessFailure(local_rank, pid, exitcode, error_file)
        except Exception:  # a broken error file must not hide the failure
            return ProcessFailure(local_rank, pid, exitcode, "")

    return types.SimpleNamespace(SignalException=SignalException, ChildFailedError=ChildFailedError, ProcessFailure=failure,
                                 RendezvousTimeoutError=RendezvousTimeoutError, UsageError=UsageError)


class UsageError(launcher.LaunchError, ValueError):
    """What muster refuses; torch's launcher raises ValueError for what it refuses."""


# -- torch.distributed.run.run(args) --


def run(original: Callable[..., Any], args: Namespace) -> Any:
    """What was typed, or put into the namespace by a program, is said to `muster run`."""
    backend = getattr(args, "rdzv_backend", None) or "static"
    if _missing() or getattr(args, "logs_specs", None) or not (getattr(args, "standalone", False) or _serves_backend(backend)):
        return original(args)  # comes to launch_agent(), which says why not
    options, env = _words(args)
    rank = [] if getattr(args, "use_env", True) else [LOCAL_RANK]  # torch.distributed.launch
    command = [args.training_script, *rank, *args.training_script_args]
    launcher.run([str(word) for word in command], options, signals_of(args.signals_to_handle), str(args.training_script),
                 _kinds(), {**launcher.own_environment(), **env})
    return None


def _words(args: Namespace) -> tuple[list[str], dict[str, str | None]]:
    """The options that mean the namespace, and changes to the environment: a value that is neither given nor the default
    has been taken back by the program, so the PET_ variable that has it must not bring it back."""
    from torch.distributed.run import determine_local_world_size, get_args_parser

    words: list[str] = []
    env: dict[str, str | None] = {}
    for action in get_args_parser()._actions:
        value = getattr(args, action.dest, action.default)
        if action.dest == "nproc_per_node":
            value = determine_local_world_size(str(value))  # devices, as the torch of this process counts them
        if not action.option_strings or action.dest == "help" or _is_same(value, action.default):
            continue
        name = next(option for option in action.option_strings if option.startswith("--"))
        if value is None or value is False:
            env[f"PET_{action.dest.upper()}"] = None
        elif value is True:
            words.append(name)
        else:
            words.append(f"{name}={filters_text(value) if isinstance(value, list) else value}")
    return words, env


def _is_same(value: Any, default: Any) -> bool:
    """Programs put numbers where torch's parser has texts."""
    return value == default or (None not in (value, default) and str(value) == str(default))


# -- torch.distributed.launcher.api.launch_agent(config, entrypoint, args), for elastic_launch too --


def launch_agent(original: Callable[..., Any], config: Any, entrypoint: Any, args: Sequence[Any], *more: Any, **named: Any) -> Any:
    config.run_id = config.run_id or str(uuid.uuid4().int)  # as torch's does
    why = _why_not(config, [*more, *named.values()])
    if not why:
        try:
            return launcher.launch(LaunchConfig(**_fields(config)), entrypoint, args, _kinds(), config.start_method == "fork")
        except pickle.PicklingError as e:
            why = f"{launcher._get_entrypoint_name(entrypoint, args)}() cannot be sent to other processes, {e}"
    say(why)
    return original(config, entrypoint, args, *more, **named)


def _fields(config: Any) -> dict[str, Any]:
    known = {field.name for field in dataclasses.fields(LaunchConfig)}
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config) if field.name in known}
    return {**values, "rdzv_configs": dict(config.rdzv_configs)}


def _why_not(config: Any, more: Sequence[Any]) -> str | None:
    """What of this only torch's launcher can do."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs

    specs = type(config.logs_specs)
    if specs.reify is not DefaultLogsSpecs.reify:
        return f"{specs.__module__}.{specs.__qualname__} decides where logs go"
    if not _serves_backend(config.rdzv_backend):
        return f"the rendezvous backend {config.rdzv_backend!r} is a Python plug-in"
    if config.event_log_handler not in EVENT_LOGS:
        return f"the event log handler {config.event_log_handler!r} is a Python plug-in"
    if any(value is not None for value in more):
        return "the health check server is a Python object"
    return _missing() or _unknown_field(config)


def _unknown_field(config: Any) -> str | None:
    """A setting of a torch newer than this, if it is used."""
    known = {field.name for field in dataclasses.fields(LaunchConfig)}
    for field in dataclasses.fields(config):
        if field.name not in known and getattr(config, field.name) != field.default:
            return f"LaunchConfig.{field.name} is not known"
    return None
