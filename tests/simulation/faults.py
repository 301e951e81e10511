"""What goes wrong with requests and watches, drawn from the seed."""

from dataclasses import dataclass

LATEST_SECONDS = 9.9
"""After this time, no request is carried out any more that got no answer."""


@dataclass(frozen=True)
class Fate:
    """Of one request: seconds on the way there and back, and whether it or its answer is lost.

    ``patience``: how long the sender waits for an answer that does not come; never beyond the ten seconds of a call.
    """

    there: float
    back: float
    lost_before: bool = False
    lost_after: bool = False
    patience: float = 0.0
    late: float | None = None
    """Seconds after which the request is carried out although its sender has given up; None: never."""
    busy: bool = False
    """Whether the API server answers 429."""


class Faults:
    """``calm``: from now on nothing goes wrong."""

    def __init__(self, world):
        self.world = world
        self.calm = False
        draw = world.random
        self.lost = {"kafka": draw.choice((0.0, 0.0, 0.01, 0.05)), "kube": draw.choice((0.0, 0.0, 0.01, 0.05))}
        self.slow = draw.choice((0.0, 0.01, 0.05))

    def fate(self, process, server, write):
        draw = self.world.random
        there, back = draw.uniform(0.0005, 0.01), draw.uniform(0.0005, 0.01)
        if server in process.cut_off:
            return Fate(there, back, lost_before=True, patience=draw.choice((0.0, 3.0, 8.0)))
        if self.calm:
            return Fate(there, back)
        if draw.random() < self.slow:
            there, back = draw.uniform(0, 4), draw.uniform(0, 4)
        if draw.random() < self.lost[server]:
            after = draw.random() < 0.5
            return Fate(there, back, lost_before=not after, lost_after=after, patience=draw.choice((0.0, 1.5)))
        return Fate(there, back)

    def stale(self):
        return not self.calm and self.world.random.random() < 0.3

    def watch_delay(self):
        return 0.001 if self.calm else self.world.random.choice((0.001, 0.001, 0.01, 0.3, 3.0))

    def rival(self):
        """Whether somebody changes a resource just before it is written."""
        return False


class LateFaults(Faults):
    """Also calls that are carried out after their sender has given up. These have a separate random stream."""

    def __init__(self, world):
        super().__init__(world)
        self.more = world.fault_random
        self.late = self.more.choice((0.0, 0.01, 0.05))

    def fate(self, process, server, write):
        fate = super().fate(process, server, write)
        if self.calm or fate.lost_before or not write or self.more.random() >= self.late:
            return fate
        patience = self.more.choice((0.0, 1.5, 4.0))
        late = self.more.uniform(patience, LATEST_SECONDS)
        return Fate(0.001, fate.back, lost_before=True, patience=patience, late=late)


class MoreFaults(Faults):
    """Also busy servers, rivals, and requests that are carried out late. These have a separate random stream."""

    def __init__(self, world):
        super().__init__(world)
        self.more = world.fault_random
        self.busy = self.more.choice((0.0, 0.0, 0.02, 0.2))
        self.rivals = self.more.choice((0.0, 0.05, 0.3))
        self.hung_until = 0.0
        """The controller answers nothing until then (`test_failures.py::TestControllerLost`)."""

    def fate(self, process, server, write):
        fate, more = super().fate(process, server, write), self.more
        if self.calm or fate.lost_before:
            return fate
        if server == "kube" and more.random() < self.busy:
            return Fate(fate.there, fate.back, busy=True)
        if server == "kafka" and write and self.world.loop.now < self.hung_until:
            left = self.hung_until - self.world.loop.now
            late = left + more.uniform(0, 0.5) if more.random() < 0.6 else None
            return Fate(fate.there, fate.back, lost_before=True, patience=more.uniform(3.0, 8.0), late=late)
        return fate

    def rival(self):
        return not self.calm and self.more.random() < self.rivals
