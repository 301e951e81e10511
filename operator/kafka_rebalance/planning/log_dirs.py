"""Which replicas move between the log dirs of a broker: every dir within a band of its share, for few bytes.

Each broker by itself, after it is known which replicas it holds. Replicas of dirs to be drained leave; replicas that
come to the broker are placed, which copies nothing more. Then a dir above its band gives replicas away, or exchanges
them. That is a knapsack problem, and solved greedily; the bound says how many bytes have to move in any case.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kafka_rebalance.model.topology import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class DirReplica:
    """A replica that the broker will hold. ``path``: the log dir that it is in now; None: it comes to the broker.

    A ``pinned`` one counts, and stays in its log dir or is left to Kafka to place.
    """

    tp: TopicPartition
    size: int
    path: str | None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class BrokerDirs:
    """The log dirs of a broker, by path their bytes in all (None: not known), those to be drained, and the replicas."""

    broker: BrokerId
    totals: Mapping[str, int | None]
    drained: frozenset[str]
    replicas: tuple[DirReplica, ...]


@dataclass(frozen=True, slots=True)
class DirMove:
    """``before`` None: the replica comes to the broker, and is placed in ``after``."""

    tp: TopicPartition
    before: str | None
    after: str
    size: int


class AboveReason(StrEnum):
    """Why a log dir stays above its band: one replica alone exceeds it, or no move or exchange was found."""

    REPLICA_TOO_LARGE = "ReplicaTooLarge"
    NO_EXCHANGE_FOUND = "NoExchangeFound"


@dataclass(frozen=True, slots=True)
class DirUse:
    """Bytes of the replicas in a log dir before and after, and the most that its band allows (None: it is drained)."""

    path: str
    before: int
    after: int
    allowed: int | None
    above: AboveReason | None = None


@dataclass(frozen=True, slots=True)
class DirPlan:
    """The moves of a broker, by partition. ``least``: none that leave no log dir further above its band copy fewer
    bytes."""

    broker: BrokerId
    moves: tuple[DirMove, ...]
    dirs: tuple[DirUse, ...]
    least: int

    @property
    def data(self) -> int:
        """Bytes that are copied from one log dir to another."""
        return sum(move.size for move in self.moves if move.before is not None)


def even_log_dirs(given: BrokerDirs, band: int) -> DirPlan:
    """The moves that bring every log dir to at most ``band`` percent above its share.

    Shares are in proportion to the totals if all are known, else equal. Replicas in a log dir that is not among
    ``totals`` (it is offline, say) are not counted and stay. At least one log dir must not be drained.
    """
    search = _DirSearch(given, band)
    search.place()
    for path in sorted(search.allowed):
        search.relieve(path)
        search.exchange(path)
    return search.plan()


class _DirSearch:
    def __init__(self, given: BrokerDirs, band: int) -> None:
        self._given = given
        held = [r for r in given.replicas if r.path is None or r.path in given.totals]
        self._replicas = sorted((r for r in held if not r.pinned), key=lambda r: (-r.size, r.tp))
        self._size = {r.tp: r.size for r in self._replicas}
        self._home = {r.tp: r.path for r in self._replicas}
        self._now: dict[TopicPartition, str] = {r.tp: r.path for r in self._replicas if r.path is not None}
        self._use = dict.fromkeys(given.totals, 0)
        for replica in held:
            if replica.path is not None:
                self._use[replica.path] += replica.size
        self._before = dict(self._use)
        kept = {path: total for path, total in given.totals.items() if path not in given.drained}
        known = all(kept.values())
        weights = {path: (total or 0) if known else 1 for path, total in kept.items()}
        stuck = sum(r.size for r in held if r.pinned and r.path not in kept)
        whole, parts = sum(r.size for r in held) - stuck, sum(weights.values())
        self.allowed = {path: whole * weight * (100 + band) // (100 * parts) for path, weight in weights.items()}

    def place(self) -> None:
        """Put what leaves a drained log dir, and what comes to the broker, where the most room is; large ones first."""
        for replica in self._replicas:
            if self._now.get(replica.tp) not in self.allowed:
                self._put(replica.tp, self._roomiest(self.allowed))

    def relieve(self, path: str) -> None:
        """Give replicas away until the log dir is within its band, if others have room for them."""
        mine = self._in(path) if self._over(path) > 0 else []
        while (over := self._over(path)) > 0:
            there = self._roomiest(other for other in self.allowed if other != path)
            chosen = self._cheapest(mine, over, self._room(there)) if there != path else None
            if chosen is None:
                return
            mine.remove(chosen)
            self._put(chosen, there)

    def exchange(self, path: str) -> None:
        """Exchange replicas for smaller ones until the log dir is within its band."""
        while (over := self._over(path)) > 0:
            best: tuple[int, int, TopicPartition, TopicPartition, str] | None = None
            mine = self._in(path)
            for other in sorted(self.allowed.keys() - {path}):
                theirs = self._in(other)
                sizes = [self._size[tp] for tp in theirs]
                for tp in mine:
                    size = self._size[tp]
                    # The smallest that leaves room for this one, rather one that brings the log dir within its band.
                    at = bisect_left(sizes, size - self._room(other))
                    if at < len(sizes) and sizes[at] < size:
                        gain = min(over, size - sizes[at])
                        found = (-gain, self._cost(tp, other) + self._cost(theirs[at], path), tp, theirs[at], other)
                        best = found if best is None else min(best, found)
            if best is None:
                return
            _, _, tp, back, other = best
            self._put(tp, other)
            self._put(back, path)

    def plan(self) -> DirPlan:
        """What was found."""
        placed = sorted((tp, self._home[tp], path) for tp, path in self._now.items() if path != self._home[tp])
        moves = (DirMove(tp, before, after, self._size[tp]) for tp, before, after in placed)
        drained = sum(self._size[tp] for tp, path in self._home.items() if path and path not in self.allowed)
        leaving = (self._before[path] - max(self._use[path], most) for path, most in self.allowed.items())
        least = drained + sum(size for size in leaving if size > 0)
        dirs = tuple(
            DirUse(path, self._before[path], self._use[path], self.allowed.get(path), self._reason(path))
            for path in sorted(self._use)
        )
        return DirPlan(self._given.broker, tuple(moves), dirs, least)

    def _reason(self, path: str) -> AboveReason | None:
        if path not in self.allowed or self._over(path) <= 0:
            return None
        largest = max((self._size[tp] for tp in self._in(path)), default=0)
        return AboveReason.REPLICA_TOO_LARGE if largest > self.allowed[path] else AboveReason.NO_EXCHANGE_FOUND

    def _cheapest(self, mine: list[TopicPartition], over: int, room: int) -> TopicPartition | None:
        """The replica to give away next: those that copy nothing first, then for the fewest bytes in all."""
        fits = [tp for tp in mine if 0 < self._size[tp] <= room]
        free = [tp for tp in fits if not self._cost(tp, "")]
        fits = free or fits
        sizes = [self._size[tp] for tp in fits]
        if not sizes:
            return None
        enough = bisect_left(sizes, over)
        below = bisect_right(sizes, over) - 1
        if enough == len(sizes):
            return fits[-1]
        if below < 0 or sizes[enough] <= self._in_parts(sizes, over):
            return fits[enough]
        return fits[below]

    @staticmethod
    def _in_parts(sizes: list[int], over: int) -> int:
        """The bytes if the largest that is not more than the rest leaves each time, and something more at last."""
        spent, end = 0, len(sizes)
        while over > 0:
            at = bisect_right(sizes, over, 0, end) - 1
            if at < 0:
                return spent + sizes[0] if end else 2**63
            spent, over, end = spent + sizes[at], over - sizes[at], at
        return spent

    def _cost(self, tp: TopicPartition, path: str) -> int:
        """Bytes that this move adds: what moves or is placed anyway costs nothing, and what returns is a credit."""
        home, now = self._home[tp], self._now[tp]
        if home is None or home not in self.allowed:
            return 0
        return self._size[tp] * ((path != home) - (now != home))

    def _in(self, path: str) -> list[TopicPartition]:
        """The replicas in a log dir, the smallest first."""
        return sorted((tp for tp, now in self._now.items() if now == path), key=lambda tp: (self._size[tp], tp))

    def _over(self, path: str) -> int:
        return self._use[path] - self.allowed[path]

    def _room(self, path: str) -> int:
        return self.allowed[path] - self._use[path]

    def _roomiest(self, paths: Iterable[str]) -> str:
        found: Collection[str] = sorted(paths) or sorted(self.allowed)
        return max(found, key=self._room)

    def _put(self, tp: TopicPartition, path: str) -> None:
        if tp in self._now:
            self._use[self._now[tp]] -= self._size[tp]
        self._use[path] += self._size[tp]
        self._now[tp] = path
