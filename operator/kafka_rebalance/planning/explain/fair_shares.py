"""What is even in counts of replicas: over all target brokers, or else over those of a rack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning.explain.accounts import Share


class FairShares:
    """The shares that counts at the end amount to, of one topic or of everything.

    ``racks`` has the rack of each target broker (None: it has none). Of ``counts`` so many are ``pinned``.
    """

    def __init__(
        self,
        counts: Mapping[BrokerId, int],
        racks: Mapping[BrokerId, str | None],
        pinned: Mapping[BrokerId, int] | None = None,
    ) -> None:
        self._counts, self._racks, self._pinned = counts, racks, pinned or {}
        self.of_all = self._even(racks, everyone=True)
        """The share of every broker, where the counts differ by one at most."""
        self._of_rack: dict[str | None, Share | None] = {}

    def of(self, broker: BrokerId) -> Share | None:
        """The share of a target broker; None for another one, and where the counts around it are not even."""
        if broker not in self._racks:
            return None
        share = self.of_all or self._in_rack(self._racks[broker])
        return None if share is not None and share.pinned_full and self._full(broker) else share

    def _in_rack(self, rack: str | None) -> Share | None:
        if rack not in self._of_rack:
            alike = [b for b, found in self._racks.items() if found == rack]
            self._of_rack[rack] = self._even(alike, everyone=False, rack=rack)
        return self._of_rack[rack]

    def _even(self, brokers: Iterable[BrokerId], *, everyone: bool, rack: str | None = None) -> Share | None:
        """Pinned replicas cannot be evened out: who holds nothing else, and no fewer than the others, is left out."""
        counts = {b: self._counts.get(b, 0) for b in brokers}
        full = {b: count for b, count in counts.items() if self._full(b)}
        for among in (counts, {b: count for b, count in counts.items() if b not in full}):
            if among and max(among.values()) - min(among.values()) <= 1:
                out = len(counts) - len(among)
                share = Share(sum(among.values()), len(among), everyone, rack, pinned_full=out)
                return share if not out or min(full.values()) >= share.low else None
        return None

    def _full(self, broker: BrokerId) -> bool:
        return 0 < self._pinned.get(broker, 0) == self._counts.get(broker, 0)
