"""Even replica counts: over all target brokers, or else over those of a rack."""

from collections.abc import Iterable, Mapping

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning.explain.accounts import Share


class FairShares:
    """The shares in counts at the end of a plan, of one topic or in total.

    ``racks`` has the rack of each target broker (None: no rack). ``pinned`` replicas are included in ``counts``.
    """

    def __init__(
        self,
        counts: Mapping[BrokerId, int],
        racks: Mapping[BrokerId, str | None],
        pinned: Mapping[BrokerId, int] | None = None,
    ) -> None:
        self._counts, self._racks, self._pinned = counts, racks, pinned or {}
        self.of_all = self._even(racks, everyone=True)
        """The share of every broker if the counts differ by at most one."""
        self._of_rack: dict[str | None, Share | None] = {}

    def of(self, broker: BrokerId) -> Share | None:
        """The share of a target broker; None for other brokers, and if the counts are not even."""
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
        """Pinned replicas cannot move: brokers with only those, no fewer than the others have, are left out."""
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
