"""KAFKA-19048 as its ticket describes it: replicas move one at a time to brokers below their share; then leaders, then
second replicas.

The ticket does not define what happens when no replica can move or nothing improves; this implementation stops and
keeps the result so far. Rack violations come first, then the brokers furthest above their share; the destination is the
broker furthest below its share. The search for a movable replica resumes where the previous search on that broker
ended: this changes no rule and avoids the repeated passes of the ticket.
"""

from collections import Counter, defaultdict

import numpy as np

from benchmarks.clusters import NO_RACK, Cluster


def plan(given: Cluster) -> np.ndarray:
    """Replica lists after the plan."""
    rows = [row.tolist() for row in np.split(given.lists, np.cumsum(given.rf)[:-1])]
    _Mover(given, rows).run()
    _lead(rows)
    return np.array([b for row in rows for b in row], dtype=np.int64)


def shares(given: Cluster) -> np.ndarray:
    """Target number of replicas per broker [B]: over racks by their broker count, then evenly within each rack."""
    brokers = np.flatnonzero(given.targets)
    current = np.bincount(given.lists, minlength=len(given.racks))
    rack = np.where(given.racks == NO_RACK, -1 - np.arange(len(given.racks)), given.racks)
    names, sizes = np.unique(rack[brokers], return_counts=True)
    left, brokers_left, partitions = len(given.lists), len(brokers), len(given.rf)
    total = {}
    for name, size in sorted(zip(names.tolist(), sizes.tolist(), strict=True), key=lambda pair: -pair[1]):
        total[name] = partitions if size * left >= partitions * brokers_left else size * left // brokers_left
        left, brokers_left = left - total[name], brokers_left - size
    share = np.zeros(len(given.racks), dtype=np.int64)
    for name in names.tolist():
        members = brokers[rack[brokers] == name]
        low, more = divmod(total[name], len(members))
        share[members] = low
        share[members[np.argsort(-current[members], kind="stable")[:more]]] += 1
    return share


class _Mover:
    """Moves replicas one at a time."""

    def __init__(self, given: Cluster, rows: list[list[int]]) -> None:
        self._rows = rows
        self._rack = [b if r == NO_RACK else r + len(given.racks) for b, r in enumerate(given.racks.tolist())]
        self._want = (shares(given) - np.bincount(given.lists, minlength=len(given.racks))).tolist()
        self._gone = ~given.targets
        self._on: dict[int, list[int]] = defaultdict(list)
        for p, row in enumerate(rows):
            for b in row:
                self._on[b].append(p)

    def run(self) -> None:
        """Run until no rack violation and no surplus is left, or none of them can be fixed."""
        for p, row in enumerate(self._rows):
            seen: set[int] = set()
            for b in list(row):
                if self._rack[b] in seen:
                    self._send(p, b)
                seen.add(self._rack[b])
        stuck: set[int] = set()
        while True:
            above = [b for b, want in enumerate(self._want) if want < 0 and b not in stuck]
            if not above:
                return
            b = min(above, key=self._want.__getitem__)
            waiting, kept = self._on[b], []
            while waiting and self._want[b] < 0:
                p = waiting.pop()
                if b in self._rows[p] and not self._send(p, b):
                    kept.append(p)
            self._on[b] = waiting + kept
            if self._want[b] < 0:
                stuck.add(b)

    def _send(self, p: int, b: int) -> bool:
        """Move the replica of p on b to the broker furthest below its share whose rack holds no other replica of p."""
        row = self._rows[p]
        taken = {self._rack[other] for other in row if other != b}
        best = max(
            (d for d, want in enumerate(self._want) if want > 0 and d not in row and self._rack[d] not in taken),
            key=self._want.__getitem__,
            default=None,
        )
        if best is None:
            return False
        row[row.index(b)] = best
        self._want[b] += 1
        self._want[best] -= 1
        self._on[best].append(p)
        return True


def _lead(rows: list[list[int]]) -> None:
    """Lead from the broker furthest below its leader share; then order followers by the rarest leader-follower pair."""
    counts = Counter(b for row in rows for b in row)
    left, brokers = len(rows), dict(counts)
    target = {}
    while brokers:
        light = [b for b, n in brokers.items() if n * len(brokers) <= left]
        if not light:
            break
        for b in light:
            target[b] = brokers.pop(b)
            left -= target[b]
    target |= dict.fromkeys(brokers, -(-left // max(1, len(brokers))))
    led: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for row in rows:
        leader = max(row, key=lambda b: target[b] - led[b])
        led[leader] += 1
        rest = sorted((b for b in row if b != leader), key=lambda b, a=leader: pairs[a, b])
        row[:] = [leader, *rest]
        if rest:
            pairs[leader, rest[0]] += 1
