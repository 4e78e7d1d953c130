"""Lets PyTorch's own tests of 1.13.1 run on a later PyTorch, and, with the switch on, has muster where they construct parts of torch's
launcher: an agent, and the server of a store. It is loaded at the start of each interpreter of an environment (pytorch_tests.py)."""

import atexit
import os
import re
import subprocess
import sys
import types
import unittest

ON = os.environ.get("MUSTER_TORCHRUN") == "1"
TESTING = "torch.testing._internal.common_utils"  # all of them import it, after torch


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != TESTING:
            return None
        sys.meta_path.remove(self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in sys.meta_path)))
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            adapt(module)

        spec.loader.exec_module = exec_module
        return spec


def adapt(testing):
    testing.sandcastle_skip_if = unittest.skipIf
    sys.modules["torch._six"] = types.SimpleNamespace(string_classes=(str, bytes))
    if ON:
        import torch.distributed

        torch.distributed.TCPStore = store_of_muster(torch.distributed.TCPStore)
        replace_agent()


def store_of_muster(original):
    class Store(original):
        """A client, and for a master the server too."""

        def __init__(self, host_name, port, world_size=None, is_master=False, *args, **named):
            if is_master:
                self.server = subprocess.Popen([os.environ["MUSTER_PROGRAM"], "store", f"--listen={host_name}:{port}"], text=True,
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                atexit.register(self.server.kill)
                line = self.server.stdout.readline()
                if not line:
                    raise RuntimeError(self.server.stderr.read())
                port = int(re.search(r":(\d+)$", line)[1])
            named.pop("multi_tenant", None)
            super().__init__(host_name, port, world_size, False, *args, **named)

        def __del__(self):
            if server := self.__dict__.get("server"):
                server.kill()
                server.communicate()

    return Store


def replace_agent():
    import torch.distributed.elastic.agent.server.api as api
    import torch.distributed.elastic.agent.server.local_elastic_agent as local
    import torch.distributed.elastic.rendezvous.registry as registry

    from muster import _in_process, launcher

    class Handler:
        def __init__(self, params):
            self.params = params

        def shutdown(self):
            return True

    class Spec(types.SimpleNamespace):
        def get_entrypoint_name(self):
            return self.entrypoint.__name__

    class Agent:
        def __init__(self, spec, start_method="spawn", exit_barrier_timeout=300, log_dir=None):
            self.spec, self.start_method, self.log_dir = spec, start_method, log_dir

        def run(self):
            spec, meeting = self.spec, self.spec.rdzv_handler.params
            config = launcher.LaunchConfig(
                meeting.min_nodes, meeting.max_nodes, spec.local_world_size, run_id=meeting.run_id, role=spec.role,
                rdzv_backend=meeting.backend, rdzv_endpoint=meeting.endpoint, max_restarts=spec.max_restarts,
                logs_specs=launcher.DefaultLogsSpecs(self.log_dir, spec.redirects, spec.tee))
            kinds = _in_process._kinds()
            try:
                values = launcher.launch(config, spec.entrypoint, spec.args, kinds)
            except kinds.ChildFailedError as e:
                return api.RunResult(api.WorkerState.FAILED, failures=e.failures)
            return api.RunResult(api.WorkerState.SUCCEEDED, return_values=values)

    api.WorkerSpec, local.LocalElasticAgent, registry.get_rendezvous_handler = Spec, Agent, Handler


sys.meta_path.insert(0, Finder())
