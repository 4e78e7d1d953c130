"""A job of `muster run` on the hosts of a lab, with workers that report to the test (crew.py)."""

import signal

from tree import MUSTER, clean_env
from waits import DEADLINE
from crew import PROGRAM, Crew

PORT = 29400  # every host has all ports to itself


class Job:
    """The same command line on every host. Endpoints are hosts or names of theirs; `flags` are those of
    crew_worker.py."""

    def __init__(self, lab, nodes, endpoints, *options, flags=(), env=None):
        self.lab, self.crew = lab, Crew(lab.directory)
        names = [getattr(endpoint, "name", endpoint) for endpoint in endpoints]
        self.options = [f"--nnodes={nodes}", f"--rdzv-endpoint={','.join(f'{name}:{PORT}' for name in names)}", "--rdzv-id=job",
                        "--shutdown-timeout=1", *options]
        self.flags, self.env = flags, dict(LOGLEVEL="INFO", **(env or {}))
        self.patience = DEADLINE * (3 if "--torch" in flags else 1)  # to load it takes a while on a busy machine
        self.agents = {}  # the last one of each host
        self.now = None  # the round that was seen last

    def workers_command(self):
        """A script to be preloaded for, else a program."""
        if any(option.startswith("--preload") for option in self.options):
            return [PROGRAM, self.crew.path, *self.flags]
        return self.crew.command(*self.flags)

    def start(self, *hosts, env=None):
        for host in hosts:
            self.agents[host] = host.start(MUSTER, "run", f"--events={self.events(host)}", *self.options, *self.workers_command(),
                                           env=clean_env(**self.env, **(env or {})))
        return self

    def running(self):
        return [agent for agent in self.agents.values() if agent.running()]

    def round(self, world, of=None, restarts=None):
        """The next round, all of whose workers have started; `of` are the hosts that must be in it. No agent
        may end meanwhile."""
        self.now = self.crew.round(world, self.running(), self.patience)
        if "--keep" in self.flags:
            self.crew.wait(lambda: all(worker.kept is not ... for worker in self.now), "what was kept", agents=self.running())
        assert of is None or sorted(self.now.hosts) == sorted(host.name for host in of), self.now
        assert restarts is None or {worker.restarts for worker in self.now} == {restarts}, self.now
        return self.now

    def calculates(self, count=3):
        """Waits until every worker of the round has made this many steps."""
        self.crew.steps(self.now, count, self.running(), self.patience)

    def commits(self, *steps, of=None):
        """Has the workers (or those of some hosts) commit these steps, and waits until they have."""
        workers = self.now if of is None else [self.now.on(host) for host in of]
        for step in steps:
            for worker in workers:
                worker.order(f"commit {step}")
            self.crew.wait(lambda: all(worker.committed == step for worker in workers), f"commit {step}", agents=self.running())

    def events(self, host):
        return self.lab.directory / f"{host.name}.events"

    def happens(self, host, event):
        """Waits until an event has happened on a host (muster-events(7))."""
        self.crew.wait(lambda: f'"{event}"' in self.events(host).read_text(), f"{event} on {host.name}", DEADLINE, [self.agents[host]])

    def says(self, host, text, times=1):
        """Waits until the agent of a host has printed it."""
        agent = self.agents[host]
        self.crew.wait(lambda: agent.text().count(text) >= times, f"{host.name} to say '{text}'", DEADLINE, [agent])

    def signal(self, number, *hosts):
        for host in hosts:
            self.agents[host].signal(number)

    def kill(self, host):
        self.signal(signal.SIGKILL, host)
        self.agents[host].wait()

    def finish(self):
        """Lets the workers end well: through rank 0, if they calculate together."""
        for worker in self.now[:1] if "--torch" in self.flags else self.now:
            worker.order("finish")

    def ends(self, *statuses, hosts=None):
        """All agents (or those of `hosts`) end so, one status for all or one each, and if all have ended,
        nothing is left on any host."""
        agents = [self.agents[host] for host in hosts] if hosts else [a for a in self.agents.values() if a.popen.returncode is None]
        for agent in agents:
            self.crew.wait(lambda: not agent.running(), f"{agent.host.name} to end; it said:\n{agent.text()}\n")
        statuses = statuses if len(statuses) > 1 else statuses * len(agents)
        got = [agent.wait() for agent in agents]
        assert got == list(statuses), f"ended with {got}\n" + "\n".join(f"--- {a.host.name}\n{a.text()}" for a in agents)
        if not self.running():
            assert self.lab.left_behind() == {}
            self.crew.close()
