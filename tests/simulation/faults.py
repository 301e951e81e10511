"""What goes wrong with requests and watches, drawn from the seed."""

from dataclasses import dataclass


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
