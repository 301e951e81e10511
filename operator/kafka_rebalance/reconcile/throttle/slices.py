"""Keeps the work for many lists of throttled replicas from blocking the event loop, which serves all clusters."""

import asyncio
from collections.abc import Collection, Iterable, Mapping

from kafka_rebalance.execution.reassignment_throttle import Claim
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

MANY = 300
"""Topics, brokers or entries. Less work than for this number takes a few milliseconds."""
TOPICS_OF_A_SLICE = 100
THROTTLES_OF_A_SLICE = 5
"""A status of one with thousands of rates takes milliseconds."""


def many_move(
    rebalances: Iterable[RebalanceView], submitted: Mapping[str, Collection[object]], foreign: Collection[object]
) -> bool:
    """Whether many partitions are in flight, wait or are about to move, those of other tools included.

    ``submitted``: by uid. Copies that a deletion cancels are not in flight by their status, but are looked at as well.
    """
    looked_at = (len(r.assessment.statuses.few) + len(r.assessment.sent) for r in rebalances)
    return len(foreign) + sum(looked_at) + sum(len(submitted.get(r.desired.uid, ())) for r in rebalances) > MANY


def are_many(claims: Mapping[str, Claim]) -> bool:
    """Whether these claims list many replicas."""
    lists = (items for claim in claims.values() for by_name in claim.entries.values() for items in by_name.values())
    count = 0
    return any((count := count + len(items)) > MANY for items in lists)


def length_of(texts: Iterable[str | None]) -> int:
    """Characters of the values of lists. Long lists take time, however few they are."""
    return sum(len(text or "") for text in texts)


class Slices:
    """Ends the slice of the event loop now and then in a long loop."""

    def __init__(self, most: int = TOPICS_OF_A_SLICE) -> None:
        self._most = most
        self._done = 0

    async def next(self, weight: int = 1) -> None:
        """One more topic or resource is looked at. ``weight``: for how many it counts."""
        self._done += weight
        if self._done >= self._most:
            self._done = 0
            await asyncio.sleep(0)
