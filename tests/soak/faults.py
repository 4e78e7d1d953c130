"""What a chaos run does to a host. A fault begins, lasts for a while and ends; meanwhile the host counts as away."""

import concurrent.futures
import signal

from proc import children, name, warden_of


class Fault:
    """`world` is the Job of soak_chaos.py."""

    alone = False  # it harms other hosts, too: no second fault beside it

    def __init__(self, world, host, rng):
        self.world, self.host, self.rng = world, host, rng

    def __str__(self):
        return f"{type(self).__name__} {self.host.name}"

    @classmethod
    def possible(cls, world, host):
        return True

    def begin(self):
        raise NotImplementedError

    def end(self):
        raise NotImplementedError


class Cut(Fault):
    def begin(self):
        self.host.cut()

    def end(self):
        self.host.plug()


class Flap(Fault):
    """A cable with a loose contact: it ends up plugged in, or out."""

    def begin(self):
        for _ in range(self.rng.randint(1, 3)):
            self.host.cut()
            self.world.live(self.rng.uniform(0.1, 3))
            self.host.plug()
            self.world.live(self.rng.uniform(0.1, 2))
        self.host.cut()

    def end(self):
        self.host.plug()


class Mute(Fault):
    """What the host sends gets lost."""

    def others(self):
        return [host for host in self.world.lab.hosts if host is not self.host]

    def begin(self):
        self.host.mute(*self.others())

    def end(self):
        self.host.unmute(*self.others())


class Deafen(Mute):
    """What is sent to the host gets lost."""

    def others(self):
        return [host for host in super().others() if host.is_up()]

    def at_once(self, act):
        """On all others. If rounds formed in between, the host might be half of the last, and the others could not go on."""
        others = self.others()
        with concurrent.futures.ThreadPoolExecutor(len(others)) as pool:
            list(pool.map(act, others))

    def begin(self):
        self.at_once(lambda other: other.mute(self.host))

    def end(self):
        self.at_once(lambda other: other.unmute(self.host))


class MuteOne(Mute):
    """What the host sends to one other gets lost."""

    alone = True

    def others(self):
        self.other = getattr(self, "other", None) or self.rng.choice(super().others())
        return [self.other]


class Freeze(Fault):
    def begin(self):
        self.world.crew.freeze(self.host.name)
        self.host.freeze()

    def end(self):
        self.world.crew.thaw(self.host.name)
        self.host.thaw()


class KillAgent(Fault):
    def begin(self):
        self.world.lose(self.host)

    def end(self):
        self.world.start(self.host)


class KillAll(Fault):
    """All processes of the host at once; the others see connections end."""

    @classmethod
    def possible(cls, world, host):
        return not (world.service.keeps_data_at_home and host in world.service.hosts())

    def begin(self):
        self.world.agents.pop(self.host)
        self.host.kill()

    def end(self):
        self.host.boot()
        self.world.start(self.host)


class PowerOff(KillAll):
    """The same, and the others hear nothing of it."""

    def begin(self):
        self.host.cut()
        super().begin()


AWAY = [Cut, Cut, Flap, Mute, Deafen, MuteOne, Freeze, KillAgent, KillAgent, KillAll, PowerOff]


# ---- what costs no membership: a moment, on any host ----

def kill_worker(world, rng):
    workers = world.crew.alive()
    if workers:
        worker = rng.choice(sorted(workers, key=lambda w: w.host))
        world.note(f"kill the worker on {worker.host}")
        world.signal(worker.pid, signal.SIGKILL)


def kill_warden(world, rng):
    host = rng.choice(world.hosts)
    agent = world.agents.get(host)
    warden = warden_of(agent.pid) if agent and agent.pid else None
    if warden:
        world.note(f"kill the warden on {host.name}")
        world.signal(warden, signal.SIGKILL)


def kill_discovery(world, rng):
    """The program that tells the agent who coordinates."""
    host = rng.choice(world.hosts)
    agent = world.agents.get(host)
    for pid in children(agent.pid) if agent and agent.pid else []:
        if name(pid) not in ("heir", "muster"):
            world.note(f"kill {name(pid)} on {host.name}")
            world.signal(pid, signal.SIGKILL)


def restart_service(world, rng):
    """What serves the discovery dies and comes back."""
    if not world.service.can_be_killed():
        return
    host = rng.choice(world.service.hosts())
    world.note(f"kill the service on {host.name}")
    world.service.kill(host)
    world.live(rng.uniform(0, 4))
    world.service.start(host)
    world.note(f"start the service on {host.name}")


MOMENTS = [kill_worker, kill_worker, kill_warden, kill_discovery, restart_service]
