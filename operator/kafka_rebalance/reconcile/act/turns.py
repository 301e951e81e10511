"""Which rebalances a stage of the round serves, when a slow server leaves no time for all of them.

An edit, a deletion or a freeze is looked at when the next round begins: a round must not take as long as all calls for
all rebalances do.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from weakref import WeakKeyDictionary

from kafka_rebalance.clock import Clock
from kafka_rebalance.reconcile.state.rebalance import Rebalance

log = logging.getLogger(__name__)

STAGE_SECONDS = 30.0
"""How long a stage of a round begins to serve further rebalances."""


class Turns:
    """In each stage, those that have waited longest come first, and the first one is served in any case."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self.left = False
        """Whether some have been left for the next round, since this was last reset."""
        self._served: defaultdict[str, WeakKeyDictionary[Rebalance, int]] = defaultdict(WeakKeyDictionary)

    def of(self, stage: str, rebalances: Iterable[Rebalance]) -> Iterator[Rebalance]:
        """One after the other, until the time is over. The others are left for the next round."""
        return (rebalance for rebalance, in_time in self.marked(stage, rebalances) if in_time)

    def marked(
        self, stage: str, rebalances: Iterable[Rebalance], seconds: float = STAGE_SECONDS
    ) -> Iterator[tuple[Rebalance, bool]]:
        """All of them, and whether there is still time for each, or it is left for the next round."""
        served, until = self._served[stage], self._clock.monotonic() + seconds
        ordered = sorted(rebalances, key=lambda rebalance: served.get(rebalance, 0))
        in_time = True
        for number, rebalance in enumerate(ordered):
            if in_time and number and self._clock.monotonic() >= until:
                in_time, self.left = False, True
                left = len(ordered) - number
                log.info("calls take long: %d of %d rebalances wait for the next round", left, len(ordered))
            if in_time:
                self._count += 1
                served[rebalance] = self._count
            yield rebalance, in_time

    def after_others(
        self, stage: str, rebalances: Collection[Rebalance], may_wait: Callable[[Rebalance], bool]
    ) -> Iterator[Rebalance]:
        """All those that may not wait, in their order; then the others, as in ``of``."""
        waiting = [rebalance for rebalance in rebalances if may_wait(rebalance)]
        uids = {rebalance.uid for rebalance in waiting}
        yield from (rebalance for rebalance in rebalances if rebalance.uid not in uids)
        yield from self.of(stage, waiting)
